//! A capture that nobody made: clients of two kinds, with everything about them known.

use std::net::{Ipv4Addr, SocketAddr};

use capture::{Observed, QueryFlags, Question};
use load::random::Draws;
use proto::Transport;

use crate::recorder::Seen;

/// Clients of each kind.
pub(crate) const CLIENTS_OF_A_KIND: u32 = 120;
/// How long they were watched.
pub(crate) const SPAN_S: f64 = 400.0;
/// Names that are asked for again and again, by Zipf's law.
const NAMES: u64 = 300;
/// Share of the queries for names that nobody asks for twice.
const NEW_SHARE: f64 = 0.2;

/// Half of the clients ask at any time, at rates that differ by a factor of 20; the others in
/// bursts of eight, with long pauses.
pub(crate) fn capture(seed: u64) -> Vec<Observed> {
    let mut queries = Vec::new();
    let mut new_names = NAMES;
    for client in 0..2 * CLIENTS_OF_A_KIND {
        let mut draws = Draws::of_client(seed, client);
        let step = f64::from(client % CLIENTS_OF_A_KIND) / f64::from(CLIENTS_OF_A_KIND);
        let rate_qps = 0.2 * 20_f64.powf(step);
        let mut burst = client % 8;
        let mut gap_s = |draws: &mut Draws| {
            if client < CLIENTS_OF_A_KIND {
                return draws.exponential(1.0 / rate_qps);
            }
            burst = (burst + 1) % 8;
            match burst {
                0 => 10.0 + draws.exponential(10.0),
                _ => draws.exponential(0.05),
            }
        };
        let mut at_s = gap_s(&mut draws) * draws.uniform();
        while at_s < SPAN_S {
            let number = match draws.uniform() < NEW_SHARE {
                true => {
                    new_names += 1;
                    new_names
                }
                // The logarithm of the rank is uniform: Zipf's law with exponent 1.
                false => (NAMES as f64).powf(draws.uniform()) as u64,
            };
            queries.push(observed((at_s * 1e9) as u64, client, number, &mut draws));
            at_s += gap_s(&mut draws);
        }
    }
    queries.sort_by_key(|query| query.at_ns);
    queries
}

fn observed(at_ns: u64, client: u32, number: u64, draws: &mut Draws) -> Observed {
    let mut name = Vec::new();
    proto::name::parse(&format!("name{number}.example"), &mut name).unwrap();
    let edns = draws.uniform() < 0.7;
    Observed {
        at_ns,
        client: SocketAddr::from((Ipv4Addr::from(0x0a00_0000 + client), 4_000)),
        server: None,
        transport: Transport::Udp,
        connection: None,
        question: Question {
            name: name.into(),
            qtype: match draws.uniform() {
                share if share < 0.6 => 1,
                share if share < 0.9 => 28,
                _ => 65,
            },
            qclass: 1,
        },
        flags: QueryFlags {
            recursion_desired: true,
            checking_disabled: false,
            edns,
            dnssec_ok: edns && draws.uniform() < 0.4,
        },
        response: None,
    }
}

/// What a capture at the target would have held of a run.
pub(crate) fn observed_again(seen: &[Seen]) -> Vec<Observed> {
    let again = |seen: &Seen| {
        let message = &seen.message;
        let name = proto::name::wire_length(&message[12..]).unwrap();
        let rest = &message[12 + name..];
        let edns = message[11] == 1;
        Observed {
            at_ns: seen.at.as_nanos(),
            client: SocketAddr::from((Ipv4Addr::from(0x0a00_0000 + seen.client), 4_000)),
            server: None,
            transport: Transport::Udp,
            connection: None,
            question: Question {
                name: message[12..12 + name].into(),
                qtype: u16::from_be_bytes([rest[0], rest[1]]),
                qclass: u16::from_be_bytes([rest[2], rest[3]]),
            },
            flags: QueryFlags {
                recursion_desired: message[2] & 1 == 1,
                checking_disabled: message[3] & 0x10 != 0,
                edns,
                dnssec_ok: edns && message[message.len() - 4] & 0x80 != 0,
            },
            response: None,
        }
    };
    seen.iter().map(again).collect()
}
