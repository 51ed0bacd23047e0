//! Checks before measuring that a server's answers match its zone.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::Context;
use domain::base::iana::Rtype;
use domain::base::message::RecordSection;
use domain::base::name::ToName;
use domain::base::{Message, Ttl};
use domain::rdata::AllRecordData;
use proto::query::{QueryOptions, write_query};
use proto::rr::{rcode_to_text, type_to_text};
use responder::answer::{Answered, Instead, Limit, answer};

use super::Zone;

const CLASS_IN: u16 = 1;
const TYPE_A: u16 = 1;
const TYPE_SOA: u16 = 6;
const TYPE_RRSIG: u16 = 46;

/// Whether the server signs the zone, and whether queries request signatures (RFC 4034, section 3).
/// By default neither.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Signing {
    /// Queries request signatures (the DO bit, RFC 3225).
    pub is_asked: bool,
    /// The server signs the zone: each RRset has a signature, and the serial differs from the
    /// file's.
    pub by_server: bool,
}

/// A question with the zone's answer.
#[derive(Debug)]
pub struct Expectation {
    /// The question as a line of a names file.
    pub question: String,
    rcode: u16,
    answer: Records,
    signing: Signing,
}

/// The records of a response that answer the question, without their TTLs.
#[derive(Debug, Default, PartialEq, Eq)]
struct Records {
    /// Those of the answer section, or the NS records of a referral.
    all: BTreeSet<String>,
    /// Signatures of `all`, by the name and type that they cover.
    signatures: BTreeSet<(String, String)>,
    is_referral: bool,
}

impl Expectation {
    /// Up to `number` questions, spread over the whole zone.
    ///
    /// # Errors
    /// The zone cannot be read.
    pub fn sample(
        zone: &Zone,
        number: usize,
        signing: Signing,
    ) -> anyhow::Result<Vec<Expectation>> {
        let loaded = zone.load()?;
        let mut questions = loaded.questions();
        questions.extend(loaded.zone_cuts().into_iter().map(|cut| (cut, TYPE_A)));
        questions.retain(|(_, qtype)| !signing.by_server || *qtype != TYPE_SOA);
        questions.sort_unstable();
        let step = questions.len().div_ceil(number.max(1)).max(1);
        let sampled = questions.into_iter().step_by(step);
        sampled
            .map(|it| Expectation::of(&loaded, it, signing))
            .collect()
    }

    fn of(
        zone: &responder::Zone,
        (name, qtype): (&[u8], u16),
        signing: Signing,
    ) -> anyhow::Result<Expectation> {
        let (rcode, response) = ask(zone, (name, qtype))?;
        let name = proto::name::to_text(name).context("a name without text")?;
        let mut answer = Records::of(&response).context("an answer that cannot be read")?;
        if signing.is_asked && !signing.by_server {
            answer.add_signatures(zone)?;
        }
        Ok(Expectation {
            question: format!("{name} {}", type_to_text(qtype)),
            rcode,
            answer,
            signing,
        })
    }

    /// True if the answer is a referral.
    pub fn is_referral(&self) -> bool {
        self.answer.is_referral
    }

    /// Compares a response with the zone: RCODE, and the records of its answer or referral. Order,
    /// TTLs and case of names are ignored.
    ///
    /// # Errors
    /// What is different.
    pub fn check(&self, message: &[u8]) -> Result<(), String> {
        let rcode = proto::response::extended_rcode(message);
        let question = &self.question;
        if rcode != self.rcode {
            let (is, expected) = (rcode_to_text(rcode), rcode_to_text(self.rcode));
            return Err(format!("{question}: {is} instead of {expected}"));
        }
        let answer = Records::of(message);
        let answer = answer.ok_or_else(|| format!("{question}: its answer cannot be read"))?;
        let (wrong, missing) = (
            answer.all.difference(&self.answer.all).next(),
            self.answer.all.difference(&answer.all).next(),
        );
        match (wrong, missing) {
            (None, None) => self.check_signatures(&answer),
            (Some(wrong), Some(missing)) => {
                Err(format!("{question}: `{wrong}` instead of `{missing}`"))
            }
            (Some(wrong), None) => Err(format!("{question}: `{wrong}` is not in the zone")),
            (None, Some(missing)) => Err(format!("{question}: `{missing}` is missing")),
        }
    }

    fn check_signatures(&self, answer: &Records) -> Result<(), String> {
        let (question, expected) = (&self.question, &self.answer.signatures);
        if !self.signing.is_asked && !answer.signatures.is_empty() {
            return Err(format!("{question}: a signature that was not asked for"));
        }
        if !self.signing.is_asked || self.is_referral() {
            return Ok(());
        }
        let is_there = |of: &str| answer.signatures.iter().any(|it| it.0 == of);
        let mut wrong = answer.signatures.difference(expected);
        let without = match self.signing.by_server {
            true => {
                let all = answer.all.iter().map(|record| name_and_type(record));
                all.into_iter().find(|of| !is_there(of))
            }
            false if expected.is_empty() => None,
            false => match wrong.next() {
                Some((of, signature)) => {
                    return Err(format!(
                        "{question}: `{signature}` of {of} is not the zone's"
                    ));
                }
                None => {
                    let mut missing = expected.difference(&answer.signatures);
                    missing.next().map(|(of, _)| of.clone())
                }
            },
        };
        match without {
            Some(of) => Err(format!("{question}: the signature of {of} is missing")),
            None => Ok(()),
        }
    }
}

/// A zone's answer, with its RCODE.
fn ask(zone: &responder::Zone, (name, qtype): (&[u8], u16)) -> anyhow::Result<(u16, Vec<u8>)> {
    let (mut query, mut response) = (Vec::new(), Vec::new());
    write_query(name, qtype, CLASS_IN, &QueryOptions::default(), &mut query)?;
    match answer(zone, &query, Limit::Stream, Instead::Nothing, &mut response) {
        Answered::Response { rcode, .. } => Ok((rcode, response)),
        Answered::Ignored => anyhow::bail!("no answer to a question of the zone itself"),
    }
}

/// The first two words of a record.
fn name_and_type(record: &str) -> String {
    let words: Vec<&str> = record.splitn(3, ' ').take(2).collect();
    words.join(" ")
}

impl Zone {
    fn load(&self) -> anyhow::Result<responder::Zone> {
        Ok(responder::Zone::from_text(&self.text, Some(&self.origin))?)
    }

    /// The least TTL of the records that answer its questions.
    ///
    /// # Errors
    /// The zone cannot be read.
    pub fn ttl_min(&self) -> anyhow::Result<Duration> {
        let loaded = self.load()?;
        let mut least = Ttl::CAP;
        for question in loaded.questions() {
            let (_, response) = ask(&loaded, question)?;
            let message = Message::from_octets(&response[..])?;
            let records = message.answer()?.flatten();
            least = records.map(|record| record.ttl()).fold(least, Ord::min);
        }
        Ok(Duration::from_secs(least.as_secs().into()))
    }

    /// True if it has signatures.
    ///
    /// # Errors
    /// The zone cannot be read.
    pub(super) fn is_signed(&self) -> anyhow::Result<bool> {
        if !self.text.to_ascii_uppercase().contains("RRSIG") {
            return Ok(false);
        }
        let (loaded, mut apex) = (self.load()?, Vec::new());
        proto::name::parse(&self.origin, &mut apex)?;
        let (_, response) = ask(&loaded, (&apex, TYPE_RRSIG))?;
        let signatures = Records::of(&response).map_or(0, |it| it.signatures.len());
        Ok(signatures > 0)
    }

    /// True if it delegates parts to other servers.
    ///
    /// # Errors
    /// The zone cannot be read.
    pub(super) fn has_delegations(&self) -> anyhow::Result<bool> {
        Ok(!self.load()?.zone_cuts().is_empty())
    }
}

impl Records {
    fn of(message: &[u8]) -> Option<Records> {
        let message = Message::from_octets(message).ok()?;
        let mut records = Records::default();
        records.add(message.answer().ok()?, |_| true)?;
        let is_answered = !records.all.is_empty() || !records.signatures.is_empty();
        let is_authoritative = message.header().aa();
        if !is_answered && !is_authoritative && message.no_error() {
            records.add(message.authority().ok()?, |rtype| rtype == Rtype::NS)?;
            records.is_referral = !records.all.is_empty();
        }
        Some(records)
    }

    fn add(
        &mut self,
        section: RecordSection<'_, &[u8]>,
        is_meant: impl Fn(Rtype) -> bool,
    ) -> Option<()> {
        for record in section {
            let record = record.ok()?;
            if !is_meant(record.rtype()) {
                continue;
            }
            let record = record.into_record::<AllRecordData<_, _>>().ok()??;
            let (name, data) = (record.owner().to_bytes(), record.data());
            let text = format!("{name} {} {data}", record.rtype()).to_lowercase();
            match data {
                AllRecordData::Rrsig(it) => {
                    let of = format!("{name} {}", it.type_covered()).to_lowercase();
                    self.signatures.insert((of, text));
                }
                _ => {
                    self.all.insert(text);
                }
            }
        }
        Some(())
    }

    /// Adds the signatures in the zone.
    fn add_signatures(&mut self, zone: &responder::Zone) -> anyhow::Result<()> {
        if self.is_referral {
            return Ok(());
        }
        let signed: BTreeSet<String> = self.all.iter().map(|it| name_and_type(it)).collect();
        for of in signed {
            let (name, _) = of.split_once(' ').unwrap_or((&of, ""));
            let mut wire = Vec::new();
            proto::name::parse(name, &mut wire)?;
            let (_, response) = ask(zone, (&wire, TYPE_RRSIG))?;
            let found = Records::of(&response).context("signatures that cannot be read")?;
            self.signatures
                .extend(found.signatures.into_iter().filter(|it| it.0 == of));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use domain::base::MessageBuilder;
    use domain::base::iana::Rcode;

    use super::*;
    use crate::target::Data;

    fn zone(address: &str) -> Zone {
        let text = format!(
            "$ORIGIN lab.test.\n$TTL 5\n@ IN SOA ns hostmaster 1 3600 600 86400 1\n@ IN NS ns\n\
             ns IN A 127.0.0.1\nwww IN A {address}\nwww IN A 192.0.2.2\nalias IN CNAME www\n\
             sub IN NS ns.sub\nns.sub IN A 127.0.0.1\n"
        );
        Zone {
            origin: "lab.test.".to_owned(),
            text,
        }
    }

    /// The responses of a server with that zone.
    fn responses(zone: &Zone, expected: &[Expectation]) -> Vec<Vec<u8>> {
        let loaded = responder::Zone::from_text(&zone.text, Some(&zone.origin)).unwrap();
        let of_one = |expected: &Expectation| {
            let (name, qtype) = expected.question.split_once(' ').unwrap();
            let (mut wire, mut query, mut response) = (Vec::new(), Vec::new(), Vec::new());
            proto::name::parse(name, &mut wire).unwrap();
            let qtype = proto::rr::type_from_text(qtype).unwrap();
            write_query(&wire, qtype, CLASS_IN, &QueryOptions::default(), &mut query).unwrap();
            let limit = Limit::Stream;
            answer(&loaded, &query, limit, Instead::Nothing, &mut response);
            response
        };
        expected.iter().map(of_one).collect()
    }

    #[test]
    fn the_same_zone_passes_and_one_changed_record_is_named() {
        let good = zone("192.0.2.1");
        let expected = Expectation::sample(&good, 200, Signing::default()).unwrap();
        // SOA and NS; A of ns and www; CNAME of alias, and A through it; the delegation.
        assert_eq!(expected.len(), 7, "{expected:?}");
        for (each, response) in expected.iter().zip(responses(&good, &expected)) {
            each.check(&response).unwrap();
        }
        let bad = responses(&zone("192.0.2.9"), &expected);
        let wrong: Vec<String> = (expected.iter().zip(bad))
            .filter_map(|(each, response)| each.check(&response).err())
            .collect();
        // The alias has that target too.
        assert_eq!(wrong.len(), 2, "{wrong:?}");
        assert!(wrong.iter().all(|it| it.contains("192.0.2.9")), "{wrong:?}");
        assert!(wrong.iter().all(|it| it.contains("192.0.2.1")), "{wrong:?}");
    }

    const AS_IT_IS: Signing = Signing {
        is_asked: true,
        by_server: false,
    };
    const BY_SERVER: Signing = Signing {
        is_asked: true,
        by_server: true,
    };

    #[test]
    fn signatures_are_those_of_the_zone_or_there_at_all() {
        let signed = |number| Data::parse(&format!("zone:{number},signed")).unwrap().zone;
        let (zone, other) = (signed(3), signed(3));
        let plain = Zone::with_records(3, 3_600);
        let check = |asked: Signing, of: &Zone, answers: &dyn Fn(&Expectation) -> Vec<u8>| {
            let expected = Expectation::sample(of, 100, asked).unwrap();
            let checked = expected.iter().map(|it| it.check(&answers(it)).unwrap());
            checked.count()
        };
        let of = |zone: &Zone| {
            let loaded = zone.load().unwrap();
            move |it: &Expectation| with_signatures(&loaded, it)
        };
        let refused =
            |asked: Signing, of_zone: &Zone, answers: &dyn Fn(&Expectation) -> Vec<u8>| {
                let expected = Expectation::sample(of_zone, 100, asked).unwrap();
                let mut wrong = expected
                    .iter()
                    .filter_map(|it| it.check(&answers(it)).err());
                wrong.next().unwrap()
            };
        // SOA, NS and DNSKEY of the apex, A of four names.
        assert_eq!(check(AS_IT_IS, &zone, &of(&zone)), 7);
        assert_eq!(check(AS_IT_IS, &plain, &of(&plain)), 6);
        assert_eq!(check(BY_SERVER, &zone, &of(&zone)), 6);
        assert!(refused(AS_IT_IS, &zone, &of(&other)).contains("is not"));
        assert!(refused(Signing::default(), &zone, &of(&zone)).contains("not asked for"));
        assert!(refused(BY_SERVER, &plain, &of(&plain)).contains("is missing"));
        let stripped = |it: &Expectation| responses(&zone, std::slice::from_ref(it)).remove(0);
        assert!(refused(AS_IT_IS, &zone, &stripped).contains("signature of"));
    }

    /// The response of a server that adds signatures to the records of a name.
    fn with_signatures(zone: &responder::Zone, expected: &Expectation) -> Vec<u8> {
        let (name, qtype) = expected.question.split_once(' ').unwrap();
        let mut wire = Vec::new();
        proto::name::parse(name, &mut wire).unwrap();
        let qtype = proto::rr::type_from_text(qtype).unwrap();
        let (_, plain) = ask(zone, (&wire, qtype)).unwrap();
        let (_, signatures) = ask(zone, (&wire, TYPE_RRSIG)).unwrap();
        let [plain, signatures] =
            [&plain, &signatures].map(|it| Message::from_octets(&it[..]).unwrap());
        let builder = MessageBuilder::new_vec();
        let mut answer = builder.start_answer(&plain, Rcode::NOERROR).unwrap();
        for message in [plain, signatures] {
            for record in message.answer().unwrap() {
                let record = record.unwrap().into_record::<AllRecordData<_, _>>();
                let record = record.unwrap().unwrap();
                let is_of_it = match record.data() {
                    AllRecordData::Rrsig(it) => it.type_covered().to_int() == qtype,
                    _ => true,
                };
                if is_of_it {
                    answer.push(record).unwrap();
                }
            }
        }
        answer.finish()
    }

    #[test]
    fn a_sample_is_taken_from_all_of_the_zone() {
        let zone = Zone::with_records(1_000, 1);
        let expected = Expectation::sample(&zone, 200, Signing::default()).unwrap();
        assert!((150..=200).contains(&expected.len()), "{}", expected.len());
        let refused = expected[0].check(&[0, 0, 0x80, 5, 0, 1, 0, 0, 0, 0, 0, 0]);
        assert!(refused.unwrap_err().contains("REFUSED instead of NOERROR"));
    }
}
