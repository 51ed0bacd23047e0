//! What a server says of itself over DNS: `version.bind` and `id.server` in class CH (RFC 4892),
//! and its NSID (RFC 5001). Asked once, before a run.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use measure::observation::ServerFacts;
use proto::query::{Edns, OPTION_NSID, QueryOptions, write_query};
use proto::response::{Header, option_in, question_matches, split_record};
use proto::rr::TYPE_OPT;

/// How long a server may take to answer a question; most that do not answer refuse.
const TIME_MAX: Duration = Duration::from_millis(500);
const TYPE_TXT: u16 = 16;
const CLASS_CHAOS: u16 = 3;
/// Octets of the header, and of QTYPE and QCLASS.
const HEADER_OCTETS: usize = 12;
/// Characters of a text that are kept: a version may be a joke, but not a long one.
const CHARACTERS_MAX: usize = 120;

/// Asks a server at this address over UDP. What it does not answer is none.
pub fn facts(server: SocketAddr) -> ServerFacts {
    // One that is silent is not asked twice.
    let Some((version_bind, of_version)) = ask(server, "version.bind") else {
        return ServerFacts::default();
    };
    let (identity, of_identity) = ask(server, "id.server").unwrap_or_default();
    ServerFacts {
        version_bind,
        identity: of_version.or(of_identity).or(identity),
        ..ServerFacts::default()
    }
}

/// The text of the answer, and the NSID.
type Said = (Option<String>, Option<String>);

fn ask(server: SocketAddr, name: &str) -> Option<Said> {
    let any = match server.is_ipv4() {
        true => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
        false => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
    };
    let socket = UdpSocket::bind(any).ok()?;
    socket.connect(server).ok()?;
    let query = query(name)?;
    socket.send(&query).ok()?;
    let deadline = Instant::now() + TIME_MAX;
    let mut response = [0; 4_096];
    loop {
        let left = deadline.checked_duration_since(Instant::now())?;
        socket
            .set_read_timeout(Some(left.max(Duration::from_millis(1))))
            .ok()?;
        let octets = socket.recv(&mut response).ok()?;
        let response = &response[..octets];
        let question_octets = question_octets(name);
        let is_ours = response.get(..2) == query.get(..2)
            && Header::parse(response).is_some_and(|header| header.is_response)
            && question_matches(&query, question_octets, response);
        if is_ours {
            return read(response, question_octets);
        }
    }
}

fn query(name: &str) -> Option<Vec<u8>> {
    let mut qname = Vec::new();
    proto::name::parse(name, &mut qname).ok()?;
    let options = QueryOptions {
        recursion_desired: false,
        edns: Some(Edns {
            options: vec![(OPTION_NSID, Vec::new())],
            ..Edns::default()
        }),
        ..QueryOptions::default()
    };
    let mut query = Vec::new();
    write_query(&qname, TYPE_TXT, CLASS_CHAOS, &options, &mut query).ok()?;
    getrandom::fill(&mut query[..2]).ok()?;
    Some(query)
}

/// A name without the final dot has two octets more on the wire; QTYPE and QCLASS have four.
fn question_octets(name: &str) -> usize {
    name.len() + 2 + 4
}

/// The first text among the records, and the NSID.
fn read(response: &[u8], question_octets: usize) -> Option<Said> {
    let Header { question_count, .. } = Header::parse(response)?;
    let start = match question_count {
        0 => HEADER_OCTETS,
        _ => HEADER_OCTETS + question_octets,
    };
    let mut rest = response.get(start..)?;
    let (mut text, mut nsid) = (None, None);
    while let Some((record, behind)) = split_record(rest) {
        match record.record_type {
            TYPE_TXT if text.is_none() => text = character_string(record.rdata),
            TYPE_OPT => nsid = option_in(record.rdata, OPTION_NSID).map(shown),
            _ => {}
        }
        rest = behind;
    }
    Some((text, nsid.filter(|nsid| !nsid.is_empty())))
}

/// The first string of a TXT record (RFC 1035, section 3.3).
fn character_string(rdata: &[u8]) -> Option<String> {
    let (length, rest) = rdata.split_first()?;
    let text = shown(rest.get(..usize::from(*length))?);
    (!text.is_empty()).then_some(text)
}

/// Octets of anybody's choice as text on one line.
fn shown(octets: &[u8]) -> String {
    let text = String::from_utf8_lossy(octets);
    let kept = text.chars().filter(|c| !c.is_control());
    kept.take(CHARACTERS_MAX)
        .collect::<String>()
        .trim()
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    /// Answers as many queries, each with a text and an NSID, after an answer to somebody else.
    fn server(answers: usize) -> (SocketAddr, thread::JoinHandle<()>) {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        let address = socket.local_addr().unwrap();
        let thread = thread::spawn(move || {
            for _ in 0..answers {
                let mut query = [0; 512];
                let (octets, client) = socket.recv_from(&mut query).unwrap();
                let end = query[12..octets]
                    .iter()
                    .position(|octet| *octet == 0)
                    .unwrap();
                let question = query[12..12 + end + 5].to_vec();
                let mut answer = vec![query[0] ^ 1, query[1], 0x84, 0, 0, 1, 0, 1, 0, 0, 0, 1];
                answer.extend(&question);
                answer.extend([0xc0, 12, 0, 16, 0, 3, 0, 0, 0, 0, 0, 5, 4]);
                answer.extend(b"1.2\n");
                answer.extend([0, 0, 41, 4, 0, 0, 0, 0, 0, 0, 6, 0, 3, 0, 2]);
                answer.extend(b"n1");
                socket.send_to(&answer, client).unwrap();
                answer[0] ^= 1;
                socket.send_to(&answer, client).unwrap();
            }
        });
        (address, thread)
    }

    #[test]
    fn version_and_nsid_are_asked_for() {
        let (address, thread) = server(2);
        let facts = facts(address);
        assert_eq!(facts.version_bind.as_deref(), Some("1.2"));
        assert_eq!(facts.identity.as_deref(), Some("n1"));
        thread.join().unwrap();
    }

    #[test]
    fn a_server_that_answers_nothing_has_no_facts() {
        let nobody = UdpSocket::bind("127.0.0.1:0").unwrap();
        assert_eq!(facts(nobody.local_addr().unwrap()), ServerFacts::default());
    }

    #[test]
    fn malformed_records_are_no_texts() {
        assert_eq!(character_string(&[5, b'a']), None);
        assert_eq!(character_string(&[]), None);
        assert_eq!(option_in(&[0, 3, 0, 9, 1], OPTION_NSID), None);
        assert_eq!(read(&[0; 11], 4), None);
    }
}
