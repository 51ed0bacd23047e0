//! Whether a server answers as its zone says, before it is timed.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::Context;
use domain::base::name::ToName;
use domain::base::{Message, Ttl};
use domain::rdata::AllRecordData;
use proto::query::{QueryOptions, write_query};
use proto::rr::{rcode_to_text, type_to_text};
use responder::answer::{Answered, Instead, Limit, answer};

use super::Zone;

const CLASS_IN: u16 = 1;

/// A question, and what the zone says.
#[derive(Debug)]
pub struct Expectation {
    /// The question as a line of a names file.
    pub question: String,
    rcode: u16,
    records: BTreeSet<String>,
}

impl Expectation {
    /// Up to so many questions about a zone, from all of it.
    ///
    /// # Errors
    /// The zone cannot be read.
    pub fn sample(zone: &Zone, number: usize) -> anyhow::Result<Vec<Expectation>> {
        let loaded = responder::Zone::from_text(&zone.text, Some(&zone.origin))?;
        let mut questions = loaded.questions();
        questions.sort_unstable();
        let step = questions.len().div_ceil(number.max(1)).max(1);
        let sampled = questions.into_iter().step_by(step);
        sampled.map(|it| Expectation::of(&loaded, it)).collect()
    }

    fn of(zone: &responder::Zone, (name, qtype): (&[u8], u16)) -> anyhow::Result<Expectation> {
        let (mut query, mut response) = (Vec::new(), Vec::new());
        write_query(name, qtype, CLASS_IN, &QueryOptions::default(), &mut query)?;
        let answered = answer(zone, &query, Limit::Stream, Instead::Nothing, &mut response);
        let Answered::Response { rcode, .. } = answered else {
            anyhow::bail!("no answer to a question of the zone itself");
        };
        let name = proto::name::to_text(name).context("a name without text")?;
        Ok(Expectation {
            question: format!("{name} {}", type_to_text(qtype)),
            rcode,
            records: answers(&response).context("an answer that cannot be read")?,
        })
    }

    /// Compares a response with the zone: RCODE, and the records of its answer, whatever their
    /// order, their TTLs, and the case of their names.
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
        let records = answers(message);
        let records = records.ok_or_else(|| format!("{question}: its answer cannot be read"))?;
        let (wrong, missing) = (
            records.difference(&self.records).next(),
            self.records.difference(&records).next(),
        );
        match (wrong, missing) {
            (None, None) => Ok(()),
            (Some(wrong), Some(missing)) => {
                Err(format!("{question}: `{wrong}` instead of `{missing}`"))
            }
            (Some(wrong), None) => Err(format!("{question}: `{wrong}` is not in the zone")),
            (None, Some(missing)) => Err(format!("{question}: `{missing}` is missing")),
        }
    }
}

impl Zone {
    /// The least TTL of what answers its questions.
    ///
    /// # Errors
    /// The zone cannot be read.
    pub fn ttl_min(&self) -> anyhow::Result<Duration> {
        let loaded = responder::Zone::from_text(&self.text, Some(&self.origin))?;
        let (mut query, mut response) = (Vec::new(), Vec::new());
        let mut least = Ttl::CAP;
        for (name, qtype) in loaded.questions() {
            query.clear();
            response.clear();
            write_query(name, qtype, CLASS_IN, &QueryOptions::default(), &mut query)?;
            answer(
                &loaded,
                &query,
                Limit::Stream,
                Instead::Nothing,
                &mut response,
            );
            let message = Message::from_octets(&response[..])?;
            let records = message.answer()?.flatten();
            least = records.map(|record| record.ttl()).fold(least, Ord::min);
        }
        Ok(Duration::from_secs(least.as_secs().into()))
    }
}

/// The records of the answer section as text, without their TTLs.
fn answers(message: &[u8]) -> Option<BTreeSet<String>> {
    let message = Message::from_octets(message).ok()?;
    let records = message.answer().ok()?;
    let text = |record: domain::base::ParsedRecord<'_, &[u8]>| {
        let record = record.into_record::<AllRecordData<_, _>>().ok()??;
        let (name, data) = (record.owner().to_bytes(), record.data());
        Some(format!("{name} {} {data}", record.rtype()).to_lowercase())
    };
    records.map(|record| text(record.ok()?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

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

    /// What a server with that zone answers.
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
        let expected = Expectation::sample(&good, 200).unwrap();
        // SOA and NS; A of ns and www; CNAME of alias, and A through it; none of the delegation.
        assert_eq!(expected.len(), 6, "{expected:?}");
        for (each, response) in expected.iter().zip(responses(&good, &expected)) {
            each.check(&response).unwrap();
        }
        let bad = responses(&zone("192.0.2.9"), &expected);
        let wrong: Vec<String> = (expected.iter().zip(bad))
            .filter_map(|(each, response)| each.check(&response).err())
            .collect();
        // The alias leads there too.
        assert_eq!(wrong.len(), 2, "{wrong:?}");
        assert!(wrong.iter().all(|it| it.contains("192.0.2.9")), "{wrong:?}");
        assert!(wrong.iter().all(|it| it.contains("192.0.2.1")), "{wrong:?}");
    }

    #[test]
    fn a_sample_is_taken_from_all_of_the_zone() {
        let zone = Zone::with_records(1_000, 1);
        let expected = Expectation::sample(&zone, 200).unwrap();
        assert!((150..=200).contains(&expected.len()), "{}", expected.len());
        let refused = expected[0].check(&[0, 0, 0x80, 5, 0, 1, 0, 0, 0, 0, 0, 0]);
        assert!(refused.unwrap_err().contains("REFUSED instead of NOERROR"));
    }
}
