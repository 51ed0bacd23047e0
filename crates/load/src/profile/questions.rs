//! Questions of clients that are drawn from a profile.
//!
//! Which name a query asks for is a rank, drawn by the popularity that was seen. Names are those
//! that the profile kept, those of a list, or numbers below a zone. A name that was queried once in
//! the capture stands for all names that are never repeated: if names are generated, each query for
//! such a rank gets a new one. So a cache sees the same share of names that it cannot know as in
//! the capture, however long the run is and however many clients it has.

use std::sync::Arc;

use proto::name;
use proto::query::{Edns, QueryOptions, write_query};
use proto::rr::{self, CLASS_IN, TYPE_A};
use rand_core::Rng;

use super::sampler::{Ranks, Steps, uniform};
use super::{FlagCounts, Profile, ProfileError};
use crate::names_file::edns_uses;
use crate::question_source::{Labels, QtypeMix, QuestionSource};
use crate::questions::QuestionSet;

/// Digits of generated names: enough for a million queries a second over 11 days.
const DIGITS: u8 = 12;
/// Octets that a generated label adds to the zone's name.
const LABEL_OCTETS: u16 = DIGITS as u16 + 1;
/// Templates that a set may have.
const TEMPLATES_MAX: usize = u32::MAX as usize;

/// Where the names of a profile's ranks come from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RankNames {
    /// Names in wire format, the most popular first.
    pub listed: Vec<Box<[u8]>>,
    /// The zone, in wire format, below which names are generated for ranks beyond the list; without
    /// it the list wraps around.
    pub zone: Option<Vec<u8>>,
}

impl RankNames {
    /// The names that the profile kept, and those below `zone` for ranks beyond them.
    ///
    /// # Errors
    /// One of them is not a name.
    pub fn of(profile: &Profile, zone: Option<&str>) -> Result<Self, ProfileError> {
        let kept = profile.names.kept.iter();
        let listed = kept.map(|text| wire(text).map(Into::into));
        Ok(RankNames {
            listed: listed.collect::<Result<_, _>>()?,
            zone: zone.map(wire).transpose()?,
        })
    }

    /// The names of a list of questions, whatever their types, in its order.
    pub fn of_list(questions: &QuestionSet, zone: Option<&str>) -> Result<Self, ProfileError> {
        let names = questions.iter().filter_map(|template| {
            let question = &template.message[super::HEADER_OCTETS..][..template.question_octets];
            name::wire_length(question).map(|octets| question[..octets].into())
        });
        Ok(RankNames {
            listed: names.collect(),
            zone: zone.map(wire).transpose()?,
        })
    }
}

fn wire(text: &str) -> Result<Vec<u8>, ProfileError> {
    let mut wire = Vec::new();
    name::parse(text, &mut wire).map_err(|error| ProfileError {
        what: format!("`{text}`: {error}"),
        hint: "write a domain name, such as example.com",
    })?;
    Ok(wire)
}

/// Draws the templates of questions by the popularity of a profile's names.
#[derive(Clone, Debug, PartialEq)]
pub struct RankedNames {
    ranks: Ranks,
    /// Names that were seen.
    distinct: u64,
    /// Ranks from here on are of names queried once.
    once_from: u64,
    /// Names of the list.
    listed: u64,
    /// After the listed names each variant has a template for the names of the zone.
    has_zone: bool,
    /// Bits and EDNS of queries, by their shares; each has all names.
    variants: Steps,
}

impl RankedNames {
    /// The template of the next query, and the number of its label; 0 for none. `fresh` returns
    /// numbers of names that were never queried.
    #[inline]
    pub(crate) fn draw(&self, generator: &mut impl Rng, fresh: impl FnOnce() -> u64) -> (u32, u64) {
        let rank = self.ranks.at(uniform(generator));
        let (variant, _) = self.variants.find(uniform(generator));
        let (name, label) = match rank {
            _ if rank <= self.listed => (rank - 1, 0),
            _ if !self.has_zone => ((rank - 1) % self.listed.max(1), 0),
            _ if rank < self.once_from => (self.listed, rank),
            _ => (self.listed, self.distinct + fresh()),
        };
        let template = variant as u64 * self.names() + name;
        (template as u32, label)
    }

    /// Names that were seen.
    pub fn distinct(&self) -> u64 {
        self.distinct
    }

    /// Templates of each variant.
    fn names(&self) -> u64 {
        self.listed + u64::from(self.has_zone)
    }

    /// True if labels are put before the name of this template.
    pub(crate) fn is_labelled(&self, template: usize) -> bool {
        self.has_zone && template as u64 % self.names() == self.listed
    }
}

/// The templates of the profile's questions, and how each query chooses one. `options` apply to
/// every query; EDNS and DO come from the profile unless `options` set them.
///
/// # Errors
/// There are no names, too many, or names that are too long for a label; or the profile has an
/// invalid QTYPE, or more than 255 of them.
pub fn questions(
    profile: &Profile,
    names: &RankNames,
    options: &QueryOptions,
) -> Result<(QuestionSet, QuestionSource), ProfileError> {
    if names.listed.is_empty() && names.zone.is_none() {
        return Err(ProfileError {
            what: "it has no names to query".into(),
            hint: "say below which zone to make them, fit it with --keep-names, or give a list",
        });
    }
    let variants = variants(&profile.flags, profile.queries, options);
    let in_each = names.listed.len() + usize::from(names.zone.is_some());
    if in_each.saturating_mul(variants.len()) > TEMPLATES_MAX {
        return Err(ProfileError {
            what: format!("{} names are too many", names.listed.len()),
            hint: "leave out those least asked for",
        });
    }
    let mut set = QuestionSet::new();
    let mut message = Vec::new();
    for (variant, _) in &variants {
        let labelled = QueryOptions {
            label_octets: LABEL_OCTETS,
            ..variant.clone()
        };
        let listed = names.listed.iter().map(|name| (&name[..], variant));
        let zone = names.zone.iter().map(|zone| (&zone[..], &labelled));
        for (qname, options) in listed.chain(zone) {
            message.clear();
            write_query(qname, TYPE_A, CLASS_IN, options, &mut message).map_err(|error| {
                ProfileError {
                    what: error.to_string(),
                    hint: "give fewer or shorter EDNS options",
                }
            })?;
            set.push(&message, qname.len() + 4);
            if let Some(edns) = &options.edns {
                set.note_edns_uses(edns_uses(edns));
            }
        }
    }
    let ranked = RankedNames {
        ranks: Ranks::new(&profile.names),
        distinct: profile.names.distinct,
        once_from: profile.names.distinct.saturating_sub(profile.names.once) + 1,
        listed: names.listed.len() as u64,
        has_zone: names.zone.is_some(),
        variants: Steps::new(variants.iter().map(|(_, share)| *share)),
    };
    let labels = names.zone.is_some().then(|| {
        Labels::counted(Some((DIGITS, DIGITS))).expect("numbers of labels have up to 15 digits")
    });
    let source = QuestionSource {
        qtypes: Some(qtypes(profile)?),
        labels,
        ranked: Some(Arc::new(ranked)),
        ..QuestionSource::default()
    };
    Ok((set, source))
}

fn qtypes(profile: &Profile) -> Result<QtypeMix, ProfileError> {
    let mut weights = Vec::new();
    for (text, &count) in profile.qtypes.iter().filter(|(_, count)| **count > 0) {
        let qtype = rr::type_from_text(text).ok_or_else(|| super::unknown_type(text))?;
        weights.push((qtype, count as f64));
    }
    QtypeMix::new(weights).map_err(|error| ProfileError {
        what: format!("`qtypes`: {}", error.what),
        hint: "leave out those least asked for",
    })
}

/// Bits and EDNS of queries with their shares. The profile counts each of them by itself, so they
/// are drawn independent of one another, but for DO, which needs EDNS.
fn variants(flags: &FlagCounts, queries: u64, base: &QueryOptions) -> Vec<(QueryOptions, f64)> {
    let share = |count: u64, of: u64| (count as f64 / of.max(1) as f64).min(1.0);
    let rd = match base.recursion_desired {
        true => share(flags.recursion_desired, queries),
        false => 0.0,
    };
    let cd = share(flags.checking_disabled, queries);
    let edns = match base.edns {
        Some(_) => 1.0,
        None => share(flags.edns, queries),
    };
    let dnssec_ok = match &base.edns {
        Some(edns) if edns.dnssec_ok => 1.0,
        Some(_) => share(flags.dnssec_ok, queries),
        None => share(flags.dnssec_ok, flags.edns),
    };
    let either = |share: f64| [(true, share), (false, 1.0 - share)];
    let mut variants = Vec::new();
    for (recursion_desired, of_rd) in either(rd) {
        for (checking_disabled, of_cd) in either(cd) {
            for (edns, dnssec_ok, of_edns) in [
                (false, false, 1.0 - edns),
                (true, false, edns * (1.0 - dnssec_ok)),
                (true, true, edns * dnssec_ok),
            ] {
                let options = QueryOptions {
                    recursion_desired,
                    checking_disabled,
                    edns: edns.then(|| Edns {
                        dnssec_ok,
                        ..base.edns.clone().unwrap_or_default()
                    }),
                    ..base.clone()
                };
                variants.push((options, of_rd * of_cd * of_edns));
            }
        }
    }
    variants.retain(|(_, share)| *share > 0.0);
    variants
}
