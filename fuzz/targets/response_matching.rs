//! Datagrams of any content against the open queries of clients over UDP: each is counted once, as
//! what it is, and every query ends once.

#![no_main]

mod shared;

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use driver::{
    Accepted, Close, Datagram, Driver, DriverStats, Event, Outgoing, Received, SocketError,
    SocketId, SocketSpec,
};
use engine::{Control, RunInputs, ThreadWorkers};
use libfuzzer_sys::fuzz_target;
use load::arrival::Arrival;
use load::question_source::{Labels, QuestionSource};
use load::{Plan, names_file};
use measure::Counts;
use proto::query::QueryOptions;
use proto::{Instant, Transport};
use shared::messages::check_sections;

const CLIENTS: u32 = 2;
const QUERIES: u64 = 40;
const TIMEOUT: Duration = Duration::from_millis(100);
const LABEL_OCTETS: u8 = 12;
/// Steps until a run that nobody answers any more is over.
const STEPS_MAX: u32 = 1_000;

/// What the target has seen of a query, and what became of it.
struct Query {
    message: Vec<u8>,
    client: usize,
    sent_at: Instant,
    is_open: bool,
}

/// The network and the target: sends nothing but what it is told to.
#[derive(Default)]
struct Target {
    now: Instant,
    sockets: u32,
    queries: Vec<Query>,
    /// By client and ID: the latest query, which is the one that counts.
    latest: HashMap<(usize, u16), usize>,
    /// What is to be received: the client, and a datagram or an error.
    delivery: Option<(usize, Vec<u8>)>,
    is_from_peer: bool,
}

fn socket(client: usize) -> SocketId {
    let index = client as u32;
    SocketId {
        index,
        generation: 0,
    }
}

fn address(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

impl Driver for Target {
    fn now(&mut self) -> Instant {
        self.now
    }

    fn unix_time(&self) -> Duration {
        Duration::from_secs(1_800_000_000)
    }

    fn seed(&self) -> [u8; driver::random::SEED_OCTETS] {
        [7; driver::random::SEED_OCTETS]
    }

    fn open_udp(&mut self, _: &SocketSpec) -> io::Result<SocketId> {
        self.sockets += 1;
        Ok(socket(self.sockets as usize - 1))
    }

    fn connect_tcp(&mut self, _: &SocketSpec) -> Result<SocketId, SocketError> {
        Err(SocketError::Refused)
    }

    fn listen_tcp(&mut self, _: &SocketSpec) -> io::Result<SocketId> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn local_addr(&self, _: SocketId) -> io::Result<SocketAddr> {
        Ok(address("192.0.2.1:1024"))
    }

    fn send_datagrams(&mut self, socket: SocketId, outgoing: &Outgoing) -> Accepted {
        let client = socket.index as usize;
        let mut rest = &outgoing.octets[..];
        for datagram in &outgoing.datagrams {
            let (message, after) = rest.split_at(datagram.length as usize);
            rest = after;
            check_sections(message);
            let id = u16::from_be_bytes([message[0], message[1]]);
            self.latest.insert((client, id), self.queries.len());
            self.queries.push(Query {
                message: message.to_vec(),
                client,
                sent_at: self.now,
                is_open: true,
            });
        }
        Accepted {
            accepted: outgoing.datagrams.len(),
            error: None,
        }
    }

    fn send_bytes(&mut self, _: SocketId, _: &[u8]) -> Result<usize, SocketError> {
        Err(SocketError::Reset)
    }

    fn pause_reading(&mut self, _: SocketId, _: bool) {}

    fn finish_sending(&mut self, _: SocketId) {}

    fn close(&mut self, _: SocketId, _: Close) {}

    fn receive(&mut self, received: &mut Received) -> bool {
        let Some((client, octets)) = self.delivery.take() else {
            return false;
        };
        received.socket = socket(client);
        received.event = Event::Datagrams;
        received.at = self.now;
        received.is_from_peer = self.is_from_peer;
        received.datagrams = vec![Datagram {
            start: 0,
            length: octets.len() as u32,
            from: address(if self.is_from_peer { TARGET } else { STRANGER }),
        }];
        received.buffer = octets;
        true
    }

    fn wait(&mut self, _: Instant) {}

    fn stats(&self) -> DriverStats {
        DriverStats::default()
    }
}

const TARGET: &str = "192.0.2.53:53";
const STRANGER: &str = "192.0.2.66:53";

/// What the clients should have counted.
#[derive(Debug, Default)]
struct Expected {
    delivered: u64,
    responses: u64,
    timeouts: u64,
    malformed: u64,
    queries: u64,
    wrong_source: u64,
}

struct Run {
    workers: ThreadWorkers,
    target: Target,
    expected: Expected,
}

impl Run {
    fn new(has_labels: bool, keeps_statistics: bool) -> Run {
        let options = QueryOptions {
            label_octets: if has_labels { LABEL_OCTETS.into() } else { 0 },
            ..QueryOptions::default()
        };
        let text = b"a.example A\nWWW.b.example AAAA +do\nc.example TXT\n. NS\n";
        let questions = names_file::parse_text(text, &options).expect("it has names");
        let labels = Labels::unique(Some((LABEL_OCTETS, LABEL_OCTETS)), 1).expect("long enough");
        let plan = Plan {
            arrival: Arrival::Closed {
                outstanding: 8,
                rate_qps_max: None,
            },
            clients: CLIENTS,
            queries_max: Some(QUERIES),
            timeout: TIMEOUT,
            client_statistics: keeps_statistics,
            question_source: QuestionSource {
                labels: has_labels.then_some(labels),
                ..QuestionSource::default()
            },
            ..Plan::new(address(TARGET), Transport::Udp, Arc::new(questions))
        };
        let inputs = [RunInputs {
            plan: Arc::new(plan),
            tls: None,
            observer: None,
        }];
        let mut target = Target::default();
        let mut workers = ThreadWorkers::new(&inputs, 0, &Arc::new(Control::new(1)));
        workers.open(&mut target).expect("sockets cost nothing");
        let expected = Expected::default();
        let mut run = Run {
            workers,
            target,
            expected,
        };
        run.pass(Duration::ZERO);
        run.pass(Duration::from_millis(2));
        run
    }

    /// Lets time pass; queries that were sent too long ago have timed out then.
    fn pass(&mut self, time: Duration) {
        self.target.now = self.target.now + time;
        let now = self.target.now;
        for query in &mut self.target.queries {
            if query.is_open && query.sent_at + TIMEOUT <= now {
                query.is_open = false;
                self.expected.timeouts += 1;
            }
        }
        self.workers.step(&mut self.target);
    }

    /// Delivers a datagram while the run lasts, and notes what it should be taken for.
    fn deliver(&mut self, client: usize, octets: Vec<u8>, is_from_peer: bool) {
        if self.workers.is_finished() {
            return;
        }
        self.expected.delivered += 1;
        if !is_from_peer {
            self.expected.wrong_source += 1;
        } else if octets.len() < 12 {
            self.expected.malformed += 1;
        } else if octets[2] & 0x80 == 0 {
            self.expected.queries += 1;
        } else {
            let id = u16::from_be_bytes([octets[0], octets[1]]);
            let latest = self.target.latest.get(&(client, id));
            let query = latest.map(|&place| &mut self.target.queries[place]);
            if let Some(query) = query.filter(|query| query.is_open)
                && is_answer(&query.message, &octets)
            {
                query.is_open = false;
                self.expected.responses += 1;
            }
        }
        self.target.is_from_peer = is_from_peer;
        self.target.delivery = Some((client, octets));
        self.pass(Duration::ZERO);
    }

    /// Nobody answers any more.
    fn finish(mut self) -> (Counts, Expected) {
        for _ in 0..STEPS_MAX {
            if self.workers.is_finished() {
                break;
            }
            self.pass(TIMEOUT / 2);
        }
        assert!(
            self.workers.is_finished(),
            "queries time out, and the run ends"
        );
        let mut counts = Counts::default();
        while let Some((_, interval)) = self.workers.poll_interval() {
            counts.add(&interval.counts);
        }
        assert_eq!(counts.sent, self.target.queries.len() as u64);
        (counts, self.expected)
    }
}

/// RFC 5452, section 9.1, and what `question_matches` says of responses without a question.
fn is_answer(query: &[u8], response: &[u8]) -> bool {
    let count = |message: &[u8]| u16::from_be_bytes([message[4], message[5]]);
    if count(response) == 0 {
        return response[3] & 0x0f != 0;
    }
    let question = check_sections(query);
    let (asked, rest) = question.split_at(question.len() - 4);
    let echoed = response[12..].get(..question.len());
    let same = echoed.is_some_and(|echoed| {
        echoed[..asked.len()].eq_ignore_ascii_case(asked) && echoed[asked.len()..] == *rest
    });
    same && count(response) == 1
}

/// Each three octets are an event, and say of which query.
fn play(run: &mut Run, events: &[u8]) {
    for event in events.chunks_exact(3) {
        let &[kind, which, what] = event else {
            return;
        };
        let queries = &run.target.queries;
        let Some(query) = queries.get(usize::from(which) % queries.len().max(1)) else {
            return;
        };
        let (client, mut response) = (query.client, query.message.clone());
        response[2] |= 0x80;
        response[3] = what & 0x0f;
        match kind % 8 {
            0 => run.deliver(client, response, true),
            1 => {
                let place = usize::from(kind / 8) % response.len();
                response[place] ^= what;
                run.deliver(client, response, true);
            }
            2 => {
                response.truncate(usize::from(what));
                run.deliver(client, response, true);
            }
            3 => run.deliver(1 - client, response, true),
            4 => run.deliver(client, response, false),
            5 => {
                response[12..].make_ascii_uppercase();
                response[2] |= what & 0x02;
                run.deliver(client, response, true);
            }
            6 => {
                response.truncate(12);
                response[4..12].fill(0);
                run.deliver(client, response, true);
            }
            _ => run.pass(Duration::from_millis(what.into())),
        }
    }
}

fuzz_target!(|input: &[u8]| {
    let Some((&choice, rest)) = input.split_first() else {
        return;
    };
    let mut run = Run::new(choice & 1 != 0, choice & 2 != 0);
    // A datagram of any octets comes between two halves of the events.
    let (events, datagram) = rest.split_at(rest.len() / 2);
    play(&mut run, events);
    run.deliver(0, datagram.to_vec(), true);
    play(&mut run, datagram);
    let (counts, expected) = run.finish();
    counts.check_identity().expect("every query ends once");
    assert_eq!(
        counts.responses, expected.responses,
        "{expected:?} {counts:?}"
    );
    assert_eq!(
        counts.timeouts, expected.timeouts,
        "{expected:?} {counts:?}"
    );
    assert_eq!(counts.unexpected.malformed, expected.malformed);
    assert_eq!(counts.unexpected.queries, expected.queries);
    assert_eq!(counts.unexpected.wrong_source, expected.wrong_source);
    let of_old = counts.late + counts.duplicate;
    let all = counts.responses + of_old + counts.unexpected.total();
    assert_eq!(all, expected.delivered, "each is counted once: {counts:?}");
});
