//! Queries a server over TCP: for one question, or for a zone transfer, as a secondary does (RFC
//! 5936).

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use anyhow::Context;
use domain::base::Message;
use domain::base::iana::Rtype;
use proto::query::{QueryOptions, write_query};
use proto::rr::rcode_to_text;

use super::RunningServer;

const AXFR: u16 = 252;
const CLASS_IN: u16 = 1;
const NOERROR: u16 = 0;
/// How long a server may take to accept the connection.
const CONNECT_MAX: Duration = Duration::from_secs(10);
/// How long it may take to answer.
const ANSWER_MAX: Duration = Duration::from_secs(60);
/// How often a wait for data checks whether it was cancelled.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Size of a read.
const OCTETS_AT_ONCE: usize = 1 << 16;

/// Transfers the zone from a server, from the generator's network, and reads it to its end.
///
/// # Errors
/// The server refuses it (with its error), or stopped in the middle.
pub(super) fn transfer(
    server: &RunningServer,
    origin: &str,
    until: (Duration, &dyn Fn() -> bool),
) -> anyhow::Result<()> {
    let mut ends = 0;
    // The zone begins and ends with its SOA RR (RFC 5936, section 2.2).
    read(server, (origin, AXFR), until, |message| {
        ends += soa_records(message)?;
        Ok(ends == 2)
    })
}

/// Sends one query over TCP, from the generator's network.
///
/// # Errors
/// It does not answer.
pub(super) fn ask(server: &RunningServer, question: (&str, u16)) -> anyhow::Result<Vec<u8>> {
    let mut response = Vec::new();
    read(server, question, (ANSWER_MAX, &|| false), |message| {
        response.extend_from_slice(message);
        Ok(true)
    })?;
    Ok(response)
}

/// Sends a query and passes on each message until the last.
fn read(
    server: &RunningServer,
    question: (&str, u16),
    (time_max, is_over): (Duration, &dyn Fn() -> bool),
    mut is_last: impl FnMut(&[u8]) -> anyhow::Result<bool>,
) -> anyhow::Result<()> {
    let address = server.endpoints().do53_all()[0];
    let connect = || TcpStream::connect_timeout(&address, CONNECT_MAX);
    let stream = server.near(connect)?;
    let mut stream = stream.with_context(|| format!("cannot connect to {address} over TCP"))?;
    stream.set_read_timeout(Some(LOOK_EVERY))?;
    stream.write_all(&query(question)?)?;
    let until = Instant::now() + time_max;
    let (mut received, mut octets) = (Vec::new(), vec![0; OCTETS_AT_ONCE]);
    loop {
        anyhow::ensure!(!is_over(), "it was interrupted");
        anyhow::ensure!(Instant::now() < until, "it was not done in {time_max:?}");
        match stream.read(&mut octets) {
            Ok(0) => anyhow::bail!("the server closed the connection before the end"),
            Ok(read) => received.extend_from_slice(&octets[..read]),
            Err(error) if is_no_end(error.kind()) => {}
            Err(error) => return Err(error).context("the connection broke"),
        }
        let mut taken = 0;
        while let Some(message) = next(&received[taken..]) {
            if is_last(message)? {
                return Ok(());
            }
            taken += 2 + message.len();
        }
        received.drain(..taken);
    }
}

fn is_no_end(kind: ErrorKind) -> bool {
    use ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(kind, Interrupted | TimedOut | WouldBlock)
}

/// The query, behind its length.
fn query((name, qtype): (&str, u16)) -> anyhow::Result<Vec<u8>> {
    let (mut qname, mut message) = (Vec::new(), Vec::new());
    proto::name::parse(name, &mut qname)?;
    let options = QueryOptions::default();
    write_query(&qname, qtype, CLASS_IN, &options, &mut message)?;
    let length = u16::try_from(message.len())?;
    Ok([&length.to_be_bytes()[..], &message].concat())
}

/// The first message of a stream, if all of it is there (RFC 1035, section 4.2.2).
fn next(stream: &[u8]) -> Option<&[u8]> {
    let (length, rest) = stream.split_first_chunk()?;
    rest.get(..usize::from(u16::from_be_bytes(*length)))
}

/// How many SOA RRs a message of it has.
fn soa_records(message: &[u8]) -> anyhow::Result<usize> {
    let rcode = proto::response::extended_rcode(message);
    anyhow::ensure!(
        rcode == NOERROR,
        "the server answers {} instead of the zone",
        rcode_to_text(rcode)
    );
    let message = Message::from_octets(message).context("a message that is too short")?;
    let mut count = 0;
    for record in message.answer()? {
        count += usize::from(record?.rtype() == Rtype::SOA);
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_taken_from_a_stream_when_they_are_whole() {
        assert_eq!(next(&[]), None);
        assert_eq!(next(&[0]), None);
        assert_eq!(next(&[0, 2, 7]), None);
        assert_eq!(next(&[0, 2, 7, 8, 9]), Some(&[7, 8][..]));
    }

    #[test]
    fn a_refusal_is_told_by_its_name() {
        let refused = [0, 0, 0x80, 5, 0, 0, 0, 0, 0, 0, 0, 0];
        let error = soa_records(&refused).unwrap_err().to_string();
        assert!(error.contains("REFUSED instead of the zone"), "{error}");
    }
}
