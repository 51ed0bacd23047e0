//! A thousand situations with random parameters and a known cause: the verdict names it, or says
//! that it cannot tell. It never names another one.

use load::question_source::Order;
use measure::{Limit, RunRecord};
use proto::Transport;
use responder::Delay;

use crate::sim::{Sim, ms, stall};

/// Situations of each cause.
const EACH: u64 = 72;
/// Verdicts that may leave a known cause open, of a hundred.
const OPEN_MAX: u64 = 10;

/// Random parameters, the same each time.
struct Draw(u64);

impl Draw {
    /// Of `from` to `to`, both included.
    fn between(&mut self, from: u64, to: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        from + (mixed ^ (mixed >> 31)) % (to - from + 1)
    }

    fn share(&mut self, from: u64, to: u64) -> f64 {
        self.between(from, to) as f64 / 100.0
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.between(0, all.len() as u64 - 1) as usize]
    }
}

/// What the cause is, how to make it, and what may be said of it: a limit, and a part of the
/// decisive evidence.
struct Cause {
    name: &'static str,
    make: fn(Sim, &mut Draw) -> Sim,
    right: &'static [(Limit, &'static str)],
}

const UDP: Transport = Transport::Udp;
const STREAMS: [Transport; 3] = [Transport::Tcp, Transport::Dot, Transport::Doh2];

/// Clients over streams of which the target serves 20 to 80 %, and their number.
fn with_capped_clients(sim: Sim, draw: &mut Draw) -> (Sim, u32) {
    let clients = draw.between(20, 60) as u32;
    let most = (clients * draw.between(20, 80) as u32) / 100;
    let sim = sim.over(draw.one_of(&STREAMS)).clients(clients);
    let sim = sim.behaviour(|it| it.tcp_clients_max = Some(most));
    (sim, clients)
}

const CAUSES: [Cause; 16] = [
    Cause {
        name: "a target that keeps up",
        make: |sim, draw| {
            let transport = draw.one_of(&[UDP, Transport::Tcp, Transport::Dot, Transport::Doq]);
            let delay = ms(draw.between(0, 20));
            let sim = sim.over(transport).rate(draw.between(200, 2_000) as f64);
            sim.behaviour(|it| it.delay = Delay::Constant(delay))
        },
        right: &[(Limit::Rate, "on time")],
    },
    Cause {
        name: "few slots",
        make: |sim, draw| {
            let transport = draw.one_of(&[UDP, Transport::Tcp, Transport::Dot]);
            sim.over(transport).outstanding(draw.between(1, 20) as u32)
        },
        right: &[(Limit::Outstanding, "nothing queued")],
    },
    Cause {
        name: "a queue that grows",
        make: |sim, draw| {
            let most = draw.between(300, 1_000) as f64;
            let sim = sim.over(UDP).rate(most * draw.share(140, 300));
            sim.behaviour(|it| {
                it.rate_qps_max = Some(most);
                it.rate_queue_max = 100_000;
            })
        },
        right: &[
            (Limit::Server, "latency grew"),
            (Limit::Server, "waited at the target"),
        ],
    },
    Cause {
        name: "a limit on the rate that drops",
        make: |sim, draw| {
            let most = draw.between(200, 1_000) as f64;
            let burst = draw.between(1, 50);
            let sim = sim.over(UDP).rate(most * draw.share(120, 400));
            sim.duration_ms(9_000).behaviour(|it| {
                it.rate_qps_max = Some(most);
                it.rate_queue_max = 0;
                it.rate_burst = Some(ms(burst));
            })
        },
        // Names are asked in turn: a limit that admits half of the queries meets half of the names.
        right: &[
            (Limit::Unknown, "cannot tell a limit of "),
            (Limit::Policy, "admits a fixed rate"),
            (Limit::Unknown, "or a limit of "),
        ],
    },
    Cause {
        name: "losses at random",
        make: |sim, draw| {
            let loss = draw.share(2, 30);
            let sim = sim.over(UDP).rate(draw.between(500, 2_000) as f64);
            sim.behaviour(|it| it.faults.loss = loss)
        },
        right: &[(Limit::Unknown, "nothing shows that the load is the cause")],
    },
    Cause {
        name: "a name that is dropped",
        make: |sim, draw| {
            let names = draw.between(2, 20) as u32;
            let silent = draw.between(1, (u64::from(names) / 3).max(1)) as u32;
            let first = draw.between(0, u64::from(names - silent)) as u32;
            let order = draw.one_of(&[Order::InOrder, Order::Shuffled]);
            let rate = draw.between(200, 2_000) as f64;
            let sim = match draw.between(0, 1) {
                0 => sim.over(UDP).rate(rate),
                _ => sim.over(draw.one_of(&STREAMS)).poisson(rate),
            };
            let sim = sim.plan(|plan| plan.question_source.order = order);
            sim.names(names).silent_names(first..first + silent)
        },
        right: &[
            (Limit::Server, "names got no response, the others did"),
            // Where names are asked in order, back-ends in turn look the same.
            (Limit::Unknown, "in turn without responses"),
        ],
    },
    Cause {
        name: "a target that is down for a while",
        make: |sim, draw| {
            let sim = sim.over(UDP).rate(draw.between(300, 2_000) as f64);
            sim.target_dead(draw.between(500, 1_500), draw.between(300, 1_000))
        },
        right: &[(Limit::Server, "an outage of")],
    },
    Cause {
        name: "errors",
        make: |sim, draw| {
            let transport = draw.one_of(&[UDP, Transport::Tcp]);
            let (rcode, share) = (draw.one_of(&[1_u8, 2, 4, 5]), draw.share(12, 100));
            let sim = sim.over(transport).rate(draw.between(500, 2_000) as f64);
            sim.behaviour(|it| it.faults.rcodes = vec![(rcode, share)])
        },
        right: &[
            (Limit::Unknown, "of the responses were"),
            (Limit::Server, "response was an error"),
        ],
    },
    Cause {
        name: "truncation",
        make: |sim, draw| {
            let share = draw.share(12, 100);
            let sim = sim.over(UDP).rate(draw.between(500, 2_000) as f64);
            sim.behaviour(|it| it.faults.truncated = share)
        },
        right: &[(Limit::Unknown, "were truncated")],
    },
    Cause {
        name: "names or records that none has",
        make: |sim, draw| {
            let rcode = draw.one_of(&[0_u8, 3]);
            let sim = sim.over(UDP).rate(draw.between(500, 2_000) as f64);
            sim.behaviour(|it| it.faults.rcodes = vec![(rcode, 1.0)])
        },
        right: &[
            (Limit::Unknown, "were NXDOMAIN"),
            (Limit::Unknown, "were NODATA"),
        ],
    },
    Cause {
        name: "responses that fit no query",
        make: |sim, draw| {
            let (share, is_id) = (draw.share(20, 100), draw.between(0, 1) == 0);
            let sim = sim.over(UDP).rate(draw.between(500, 2_000) as f64);
            sim.behaviour(|it| match is_id {
                true => it.faults.wrong_id = share,
                false => it.faults.wrong_question = share,
            })
        },
        right: &[(Limit::Unknown, "matched no query")],
    },
    Cause {
        name: "a cap on TCP clients",
        make: |sim, draw| {
            let (sim, clients) = with_capped_clients(sim, draw);
            sim.outstanding(clients)
        },
        right: &[(Limit::Server, "clients at once")],
    },
    Cause {
        name: "a cap on TCP clients in the open loop",
        make: |sim, draw| {
            let (sim, _) = with_capped_clients(sim, draw);
            let (rate, is_reset) = (draw.between(500, 2_000), draw.between(0, 1) == 0);
            // Longer than the load lasts: who waits may be served after it.
            let timeout = draw.one_of(&[500, 2_000, 10_000]);
            sim.rate(rate as f64)
                .timeout_ms(timeout)
                .behaviour(|it| it.excess_is_reset = is_reset)
        },
        right: &[(Limit::Server, "clients at once")],
    },
    Cause {
        name: "a path that loses",
        make: |sim, draw| {
            let loss = draw.share(2, 15);
            let sim = sim.over(UDP).rate(draw.between(500, 2_000) as f64);
            sim.link(|link| link.loss_share = loss)
        },
        right: &[(Limit::Network, "the modelled network lost")],
    },
    Cause {
        name: "a target that stalls every second",
        make: |sim, draw| {
            let text = format!("at=400ms,for={}ms,every=1s", draw.between(200, 300));
            let sim = sim.over(UDP).rate(draw.between(500, 2_000) as f64);
            sim.duration_ms(5_000)
                .behaviour(|it| it.stalls = vec![stall(&text)])
        },
        right: &[
            (Limit::Unknown, "spans, one every 1.00 s"),
            (Limit::Server, "an outage of"),
        ],
    },
    Cause {
        name: "connections that the target resets",
        make: |sim, draw| {
            let (queries, delay) = (draw.between(20, 60), ms(draw.between(4, 10)));
            let sim = sim
                .over(Transport::Tcp)
                .rate(draw.between(1_500, 3_000) as f64);
            sim.behaviour(|it| {
                it.delay = Delay::Constant(delay);
                it.end_after = Some((queries, responder::behaviour::ConnectionEnd::Reset));
            })
        },
        right: &[
            (Limit::Server, "the target ended"),
            (Limit::Server, "an outage of"),
        ],
    },
];

/// What the verdict was of the known cause.
#[derive(PartialEq)]
enum Judged {
    Right,
    Open,
    Wrong,
}

fn judge(cause: &Cause, record: &RunRecord) -> Judged {
    let verdict = &record.verdict;
    let is_right = |(limit, evidence): &(Limit, &str)| {
        verdict.limit == *limit && verdict.evidence[0].contains(evidence)
    };
    match cause.right.iter().any(is_right) {
        true => Judged::Right,
        false if verdict.limit == Limit::Unknown => Judged::Open,
        false => Judged::Wrong,
    }
}

/// Judges all situations of some causes; the causes share the open verdicts that are allowed.
fn check(causes: &[Cause]) {
    let (mut open, mut wrong) = (Vec::new(), Vec::new());
    for (number, cause) in causes.iter().enumerate() {
        for situation in 0..EACH {
            let seed = (number as u64 + 1) * 1_000 + situation;
            let mut draw = Draw(seed);
            let sim = Sim::seed(seed).clients(10).timeout_ms(400);
            let sim = sim.one_way_delay_ms(draw.between(1, 15)).duration_ms(3_000);
            let record = (cause.make)(sim, &mut draw).run().record;
            let told = || format!("{}, {situation}: {:#?}", cause.name, record.verdict);
            match judge(cause, &record) {
                Judged::Right => {}
                Judged::Open => open.push(told()),
                Judged::Wrong => wrong.push(told()),
            }
        }
    }
    let all = EACH * causes.len() as u64;
    assert!(
        wrong.is_empty(),
        "{} of {all} wrong: {}",
        wrong.len(),
        wrong.join("\n")
    );
    let most = (all * OPEN_MAX / 100) as usize;
    assert!(
        open.len() <= most,
        "{} of {all} open: {}",
        open.len(),
        open.join("\n")
    );
}

#[test]
fn random_loads_are_judged_by_their_cause() {
    check(&CAUSES[..6]);
}

#[test]
fn random_responses_are_judged_by_their_cause() {
    check(&CAUSES[6..11]);
}

#[test]
fn random_connections_and_paths_are_judged_by_their_cause() {
    check(&CAUSES[11..]);
}
