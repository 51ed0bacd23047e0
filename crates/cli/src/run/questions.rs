//! From flags to what is asked, and to how it is chosen.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use load::question_source::{
    Labels, Order, QuestionSource, Repeats, parse_label_octets, zone_question,
};
use load::{PlanError, QuestionSet};
use proto::query::QueryOptions;
use settings::DriverKind;

use crate::args::RunArguments;
use crate::args::questions::QuestionOrder;
use crate::failure::Failure;

/// Names that can be repeated unless told otherwise: few beside what a cache holds, and many beside
/// the threads of a server.
const HOT_NAMES: u32 = 10_000;

/// How each question is chosen.
pub(super) fn source(arguments: &RunArguments) -> Result<QuestionSource, Failure> {
    let flags = &arguments.choice;
    let order = match (flags.zipf, flags.question_order) {
        (Some(exponent), _) => Order::Zipf { exponent },
        (None, QuestionOrder::InOrder) => Order::InOrder,
        (None, QuestionOrder::Uniform) => Order::Uniform,
        (None, QuestionOrder::Shuffled) => Order::Shuffled,
    };
    let qtypes = flags.qtypes.as_deref().map(str::parse).transpose()?;
    Ok(QuestionSource {
        order,
        qtypes,
        labels: labels(arguments)?,
        repeats: flags.cache_hit_ratio.map(|share| Repeats {
            share,
            ttl: flags.cache_ttl,
            names_max: flags.hot_names.unwrap_or(HOT_NAMES),
        }),
        ranked: None,
        part: None,
    })
}

fn labels(arguments: &RunArguments) -> Result<Option<Labels>, PlanError> {
    let flags = &arguments.choice;
    let octets = flags.label_octets.as_deref().map(parse_label_octets);
    let octets = octets.transpose()?;
    let labels = match (flags.zone(), flags.water_torture) {
        (Some(("walk", _)), _) => Labels::counted(octets),
        (Some(_), _) => Labels::unique(octets, label_seed(arguments)),
        (None, true) => Labels::random(octets, label_seed(arguments)),
        (None, false) => return Ok(None),
    };
    labels.map(Some)
}

/// Decides the seed of random labels, if there are any and nobody has.
pub(super) fn decide_seed(arguments: &mut RunArguments) {
    let flags = &arguments.choice;
    if flags.random_labels.is_some() || flags.water_torture {
        arguments.choice.label_seed = Some(label_seed(arguments));
    }
}

/// A server may still know the names of an earlier run; the built-in responder knows none.
fn label_seed(arguments: &RunArguments) -> u64 {
    let has_cache = !arguments.server.is_empty() && arguments.driver != Some(DriverKind::Sim);
    let given = arguments.choice.label_seed;
    given.unwrap_or_else(|| match has_cache {
        true => seed_of_now(),
        false => arguments.seed,
    })
}

/// The time in microseconds, another one each time: groups of clients that are made ready within
/// one microsecond must not ask for the same names. As large as that, seeds survive readers of JSON
/// that know no integers.
fn seed_of_now() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = since_epoch.map_or(0, |time| time.as_micros() as u64);
    let after = |last: u64| now.max(last + 1);
    let last = LAST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| {
        Some(after(last))
    });
    after(last.unwrap_or_default())
}

/// What the padding of a list's queries has to count: a label before each name.
pub(super) fn label_octets(arguments: &RunArguments) -> Result<u16, PlanError> {
    if !arguments.choice.water_torture {
        return Ok(0);
    }
    let labels = labels(arguments)?;
    Ok(labels.map_or(0, |labels| labels.wire_octets_max()))
}

/// The questions that are asked with these flags, and words for them: those of a zone whose names
/// are generated, those of `list`, or both.
pub(super) fn with_zone(
    arguments: &RunArguments,
    options: &QueryOptions,
    list: impl FnOnce() -> Result<(QuestionSet, String), Failure>,
) -> Result<(QuestionSet, String), Failure> {
    let Some((flag, zone)) = arguments.choice.zone() else {
        return list();
    };
    let options = QueryOptions {
        label_octets: labels(arguments)?.map_or(0, |labels| labels.wire_octets_max()),
        ..options.clone()
    };
    let generated = zone_question(flag, zone, &options)?;
    let words = match flag {
        "walk" => format!("a walk through {zone}"),
        _ => format!("random labels under {zone}"),
    };
    if arguments.names.is_none() {
        return Ok((generated, words));
    }
    let (mut questions, name) = list()?;
    questions.append(&generated);
    Ok((questions, format!("{name}, and {words}")))
}

/// Refuses what contradicts the choice of questions, or has no effect on it.
pub(super) fn reject(arguments: &RunArguments) -> Result<(), Failure> {
    let flags = &arguments.choice;
    let is_generated = flags.zone().is_some() || flags.water_torture;
    if let Some((flag, _)) = flags.zone()
        && arguments.names.is_some()
        && flags.cache_hit_ratio.is_none()
    {
        return Err(Failure::usage(
            format!("--names has no effect on --{flag}, which makes the names"),
            "leave out one of them, or put labels before the names with --water-torture",
        ));
    }
    let unused = [
        (
            "--label-octets",
            flags.label_octets.is_some() && !is_generated,
        ),
        (
            "--label-seed",
            flags.label_seed.is_some() && (!is_generated || flags.walk.is_some()),
        ),
    ];
    if let Some((flag, _)) = unused.iter().find(|(_, is_unused)| *is_unused) {
        return Err(Failure::usage(
            format!("{flag} has no effect: no labels are made at random"),
            format!("add --random-labels ZONE, or leave out {flag}"),
        ));
    }
    let is_chosen = flags.zipf.is_some() || flags.question_order == QuestionOrder::Uniform;
    let has_no_rounds = is_chosen || flags.zone().is_some();
    if arguments.loops.is_some() && has_no_rounds {
        return Err(Failure::usage(
            "--loops counts how often each question is asked, which chance decides here",
            "give the number of queries with --queries",
        ));
    }
    Ok(())
}
