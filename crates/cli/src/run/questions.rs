//! What is asked, and how it is chosen.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use load::question_source::{Labels, Order, QuestionSource, Repeats, zone_question};
use load::{PlanError, QuestionSet};
use proto::query::QueryOptions;
use settings::questions::LabelOctets;
use settings::{QuestionOrder, Run};

use crate::args::RunArguments;
use crate::args::questions::QuestionOrder as OrderFlag;
use crate::failure::Failure;

/// Names that can be repeated unless told otherwise: few beside what a cache holds, and many beside
/// the threads of a server.
const HOT_NAMES: u32 = 10_000;

/// How each question is chosen.
pub(super) fn source(run: &Run) -> Result<QuestionSource, Failure> {
    let asked = &run.questions;
    let order = match asked.order {
        QuestionOrder::InOrder => Order::InOrder,
        QuestionOrder::Uniform => Order::Uniform,
        QuestionOrder::Shuffled => Order::Shuffled,
        QuestionOrder::Zipf { exponent } => Order::Zipf { exponent },
    };
    let qtypes = asked.qtypes.as_deref().map(str::parse).transpose()?;
    Ok(QuestionSource {
        order,
        qtypes,
        labels: labels(run)?,
        repeats: asked.repeats.map(|repeats| Repeats {
            share: repeats.share,
            ttl: repeats.ttl,
            names_max: repeats.names_max.unwrap_or(HOT_NAMES),
        }),
        ranked: None,
        part: None,
    })
}

fn labels(run: &Run) -> Result<Option<Labels>, PlanError> {
    use settings::Labels as Asked;
    let octets = |given: &Option<LabelOctets>| given.map(|it| (it.min, it.max));
    let seed = |given: &Option<u64>| given.unwrap_or_else(|| label_seed(run));
    let labels = match &run.questions.labels {
        None => return Ok(None),
        Some(Asked::Walk { octets: given, .. }) => Labels::counted(octets(given)),
        Some(Asked::Random {
            octets: given,
            seed: own,
            ..
        }) => Labels::unique(octets(given), seed(own)),
        Some(Asked::WaterTorture {
            octets: given,
            seed: own,
        }) => Labels::random(octets(given), seed(own)),
    };
    labels.map(Some)
}

/// Decides the seed of random labels, if there are any and none is given.
pub(super) fn decide_seed(run: &mut Run) {
    let seed = label_seed(run);
    if let Some(given) = run.questions.labels.as_mut().and_then(|it| it.seed_mut()) {
        given.get_or_insert(seed);
    }
}

/// A server may still know the names of an earlier run; the built-in responder knows none.
fn label_seed(run: &Run) -> u64 {
    match run.is_self_test() || run.is_simulated() {
        true => run.generator.seed,
        false => seed_of_now(),
    }
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
pub(super) fn label_octets(run: &Run) -> Result<u16, PlanError> {
    match &run.questions.labels {
        Some(settings::Labels::WaterTorture { .. }) => {
            Ok(labels(run)?.map_or(0, |labels| labels.wire_octets_max()))
        }
        _ => Ok(0),
    }
}

/// The questions that are asked, and words for them: those of a zone whose names are generated,
/// those of `list`, or both.
pub(super) fn with_zone(
    run: &Run,
    options: &QueryOptions,
    list: impl FnOnce() -> Result<(QuestionSet, String), Failure>,
) -> Result<(QuestionSet, String), Failure> {
    let Some((flag, zone)) = run.questions.zone() else {
        return list();
    };
    let options = QueryOptions {
        label_octets: labels(run)?.map_or(0, |labels| labels.wire_octets_max()),
        ..options.clone()
    };
    let generated = zone_question(flag, zone, &options)?;
    let words = match flag {
        "walk" => format!("a walk through {zone}"),
        _ => format!("random labels under {zone}"),
    };
    if run.questions.names.is_none() {
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
    let is_chosen = flags.zipf.is_some() || flags.question_order == OrderFlag::Uniform;
    let has_no_rounds = is_chosen || flags.zone().is_some();
    if arguments.loops.is_some() && has_no_rounds {
        return Err(Failure::usage(
            "--loops counts how often each question is asked, and their order is random here",
            "give the number of queries with --queries",
        ));
    }
    Ok(())
}
