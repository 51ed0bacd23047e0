//! From a profile's file to clients and their questions.

use std::path::Path;
use std::sync::Arc;

use load::profile::{self, Population, ProfileError, ProfiledClients, RankNames};
use load::{Profile, QuestionSet, QuestionSource};
use measure::scenario::ProfileRecord;
use settings::{Arrival, Names, Run};
use sha2::{Digest, Sha256};

use super::message::query_options;
use super::names::read_questions;
use crate::failure::Failure;
use crate::records::read_input;

/// Below this zone the built-in responder is asked for the names of a profile.
const SELF_TEST_ZONE: &str = "throng.test";

/// What a profile decides of a run.
pub(super) struct Profiled {
    pub(super) clients: Arc<ProfiledClients>,
    /// How many there are, unless the user says so.
    pub(super) count: u32,
    pub(super) questions: QuestionSet,
    pub(super) source: QuestionSource,
    /// Where the names come from, in words.
    pub(super) words: String,
    pub(super) record: ProfileRecord,
}

/// The profile in a file, and the file's digest.
pub(crate) fn read(path: &Path) -> Result<(Profile, String), Failure> {
    let octets = read_input(path)?;
    let digest = data_encoding::HEXLOWER.encode(&Sha256::digest(&octets));
    let text = String::from_utf8(octets).map_err(|_| {
        let hint = "`throng fit CAPTURE -o FILE` writes one";
        Failure::usage(
            format!("{}: not a profile: no UTF-8 text", path.display()),
            hint,
        )
    })?;
    let profile = Profile::from_toml(&text).map_err(|error| fault(path, &error))?;
    Ok((profile, digest))
}

/// As many clients as were seen.
pub(crate) fn clients_seen(profile: &Profile) -> u32 {
    u32::try_from(profile.clients).unwrap_or(u32::MAX)
}

fn fault(path: &Path, error: &ProfileError) -> Failure {
    Failure::usage(format!("{}: {}", path.display(), error.what), error.hint)
}

/// What the profile of a run decides; none without one.
pub(super) fn of(run: &Run) -> Result<Option<Profiled>, Failure> {
    let Arrival::Profile {
        file,
        zone,
        rate_factor,
    } = &run.arrival
    else {
        return Ok(None);
    };
    let path = file.as_path();
    let (profile, sha256) = read(path)?;
    let (names, words) = names(run, (path, zone.as_deref()), &profile)?;
    let population = Population::new(&profile).map_err(|error| fault(path, &error))?;
    let options = query_options(run)?;
    let (questions, source) =
        profile::questions(&profile, &names, &options).map_err(|error| fault(path, &error))?;
    let rate_factor = rate_factor.unwrap_or(1.0);
    let record = ProfileRecord {
        file: path.display().to_string(),
        sha256,
        clients_seen: profile.clients,
        queries_seen: profile.queries,
        names_seen: profile.names.distinct,
        rate_factor,
    };
    Ok(Some(Profiled {
        clients: Arc::new(ProfiledClients::new(population, rate_factor)?),
        count: clients_seen(&profile),
        questions,
        source,
        words,
        record,
    }))
}

/// Where the names come from: the profile, a list, a zone, or one of the former and a zone.
fn names(
    run: &Run,
    (path, zone): (&Path, Option<&str>),
    profile: &Profile,
) -> Result<(RankNames, String), Failure> {
    let has_kept = !profile.names.kept.is_empty();
    let given = run.questions.names.as_ref();
    let list = given.and_then(|names| Some((names.file()?, matches!(names, Names::Text(_)))));
    let zone = match zone {
        None if has_kept || list.is_some() || !run.is_self_test() => None,
        None => Some(SELF_TEST_ZONE),
        zone => zone,
    };
    let below = |words: &str| match zone {
        Some(zone) => format!("{words}, and names made below {zone}"),
        None => words.to_owned(),
    };
    match list {
        Some((list, _)) if has_kept => Err(Failure::usage(
            format!("{}: the profile has names of its own", path.display()),
            format!(
                "leave out --names {}, or take `kept` out of the profile",
                list.as_path().display()
            ),
        )),
        Some((list, is_text)) => {
            let (questions, words) = read_questions(run, (list.as_path(), is_text))?;
            let names = RankNames::of_list(&questions, zone);
            let names = names.map_err(|error| fault(path, &error))?;
            Ok((names, below(&format!("names of {words}"))))
        }
        None if !has_kept && zone.is_none() => Err(Failure::usage(
            format!("{}: the profile has no names to query", path.display()),
            "make them below a zone of the server with --profile-zone ZONE, fit the profile with \
             --keep-names, or give --names FILE",
        )),
        None => {
            let names = RankNames::of(profile, zone).map_err(|error| fault(path, &error))?;
            let words = match has_kept {
                true => below("names of the profile"),
                false => format!("names made below {}", zone.unwrap_or_default()),
            };
            Ok((names, words))
        }
    }
}
