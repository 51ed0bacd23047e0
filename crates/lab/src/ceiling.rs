//! The generator's own ceiling: what it could do if network, kernel and target took no time.
//!
//! The production engine in a closed loop against the production responder, on the two ends of
//! [`driver::null`]; both take turns on the calling thread, and only the generator's turns count.
//! So the result is what a query costs in the generator's own code: scheduling, building, matching,
//! timing, and encryption where there is some. System calls and what the kernel does for them are
//! not in it; at UDP and TCP they cost several times as much.
//!
//! `bench/run instructions` counts the instructions of [`Rig::counted_turn`] by its name.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use driver::Driver;
use driver::clock::Clock;
use driver::null::{NullDriver, NullTime, pair};
use engine::{Control, RunInputs, ThreadWorkers, TlsSettings};
use load::arrival::Arrival;
use load::{Plan, Resume, names_file};
use measure::Interval;
use proto::doh::{DohRequest, Method};
use proto::query::QueryOptions;
use proto::tls::rustls::pki_types::ServerName;
use proto::tls::{ClientTlsOptions, Roots, TlsVersions, client_config};
use proto::{Instant, Transport};
use responder::WorkerPlace;
use responder::certificate::{Identity, SelfSigned, self_signed};
use responder::{ResponderConfig, ResponderWorker};

use crate::run::RunError;

/// Questions asked in turn.
const NAMES: usize = 1_000;
/// Load offered before anything counts, if the run is measured by the clock.
const WARM_UP: Duration = Duration::from_millis(100);
/// Longest time without a response: that of a set-up is shorter, and every timer fires before.
const SILENCE_MAX: Duration = Duration::from_secs(30);

/// What is to be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CeilingRequest {
    /// Over what the queries go.
    pub transport: Transport,
    /// Simulated clients, at least 1.
    pub clients: u32,
    /// Queries in flight, at least 1.
    pub outstanding: u32,
    /// When it ends.
    pub until: Until,
}

/// When the measurement ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// After this time by the machine's clock, the responder's turns included.
    Passed(Duration),
    /// After this many counted queries, which follow half as many uncounted ones. Time is virtual,
    /// so that a program that counts instructions, and slows the run down, finds the same.
    Answered(u64),
}

/// What the generator took for the queries that counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ceiling {
    /// Over what they went.
    pub transport: Transport,
    /// Queries answered.
    pub queries: u64,
    /// CPU time of the generator's turns.
    pub busy: Duration,
}

impl Ceiling {
    /// Nanoseconds of the generator's CPU for one query.
    pub fn ns_per_query(&self) -> f64 {
        self.busy.as_nanos() as f64 / self.queries as f64
    }

    /// Queries that one core could ask in a second.
    pub fn queries_per_second(&self) -> f64 {
        1e9 / self.ns_per_query()
    }
}

/// Measures one transport on the calling thread.
///
/// # Errors
/// A certificate could not be made, or queries stayed without response, which on a network that
/// loses nothing is a defect.
pub fn measure(request: &CeilingRequest) -> Result<Ceiling, RunError> {
    let mut rig = Rig::open(request)
        .map_err(|error| RunError::plain(format!("{}: {error}", request.transport)))?;
    let warm_up = match request.until {
        Until::Passed(_) => 1,
        Until::Answered(queries) => queries / 2,
    };
    while rig.answered() < warm_up {
        rig.turn()?;
    }
    let clock = Clock::start();
    let (queries, busy) = match request.until {
        Until::Passed(span) => {
            let mut run_for = |span: Duration| {
                let end = clock.now() + span;
                rig.run_while(|_| clock.now() < end)
            };
            run_for(WARM_UP)?;
            run_for(span)?
        }
        Until::Answered(queries) => rig.run_while(|answered| answered < queries)?,
    };
    rig.finish()?;
    Ok(Ceiling {
        transport: request.transport,
        queries,
        busy,
    })
}

/// Generator and responder on their null network, for [`measure()`] and for those that count
/// something else in the generator's turns.
///
/// Order of calls: [`Rig::open`], then [`Rig::counted_turn`] and [`Rig::turn_of_responder`] by
/// turns.
pub struct Rig {
    transport: Transport,
    workers: ThreadWorkers,
    driver: NullDriver,
    responder: ResponderWorker,
    responder_driver: NullDriver,
    control: Arc<Control>,
    /// What the generator has counted in the intervals that are over.
    total: Interval,
    /// Turns that were counted.
    turns: u64,
    /// When the last query was answered.
    answered_at: Instant,
}

impl Rig {
    /// Both ends, before the first connection.
    ///
    /// # Errors
    /// A certificate could not be made, or what is asked for contradicts itself.
    pub fn open(request: &CeilingRequest) -> io::Result<Rig> {
        let transport = request.transport;
        let time = match request.until {
            Until::Passed(_) => NullTime::Real,
            Until::Answered(_) => NullTime::Virtual,
        };
        let (mut driver, mut responder_driver) = pair(time);
        let identity = match transport.has_tls() {
            true => Some(self_signed(&SelfSigned::default()).map_err(io::Error::other)?),
            false => None,
        };
        let target = SocketAddr::from((Ipv4Addr::LOCALHOST, transport.default_port()));
        let config = ResponderConfig {
            listen: vec![(transport, target)],
            tls: (identity.as_ref()).map(|identity| Arc::clone(&identity.server_config)),
            ..ResponderConfig::default()
        };
        let mut responder = ResponderWorker::new(Arc::new(config), WorkerPlace::ONLY)
            .map_err(|error| io::Error::other(error.to_string()))?;
        responder.open(&mut responder_driver)?;
        let inputs = RunInputs {
            plan: Arc::new(plan(request, target)?),
            tls: identity.map(|it| tls(transport, &it)).transpose()?,
            observer: None,
        };
        let control = Arc::new(Control::new(1));
        let mut workers = ThreadWorkers::new(&[inputs], 0, &control);
        (workers.open(&mut driver)).map_err(|error| io::Error::other(error.to_string()))?;
        Ok(Rig {
            transport,
            workers,
            driver,
            responder,
            responder_driver,
            control,
            total: Interval::default(),
            turns: 0,
            answered_at: Instant::ZERO,
        })
    }

    /// Queries that the responder has answered.
    pub fn answered(&self) -> u64 {
        self.responder.counters().responses.get(self.transport)
    }

    /// A turn of each end; the generator's does not count.
    fn turn(&mut self) -> Result<(), RunError> {
        let until = self.workers.step(&mut self.driver);
        self.turn_of_responder(until)
    }

    /// The responder's turn, after which the time goes on; the generator wants its next `until`
    /// then at the latest.
    ///
    /// # Errors
    /// No query was answered for far too long.
    pub fn turn_of_responder(&mut self, until: Instant) -> Result<(), RunError> {
        let before = self.answered();
        let next = self.responder.step(&mut self.responder_driver);
        self.driver.wait(until.min(next));
        self.take_intervals();
        let now = self.driver.now();
        if self.answered() > before {
            self.answered_at = now;
        }
        match now > self.answered_at + SILENCE_MAX {
            true => Err(RunError::plain(format!(
                "{}: queries of the null driver got stuck",
                self.transport
            ))),
            false => Ok(()),
        }
    }

    /// The generator's turn, and nothing else: found by its name in the profile of a run.
    #[inline(never)]
    pub fn counted_turn(&mut self) -> Instant {
        let until = self.workers.step(&mut self.driver);
        // Keeps this from becoming a jump, which a profiler would not see.
        self.turns += 1;
        until
    }

    /// Takes turns for as long as `goes_on`, which is reported how many queries were answered
    /// meanwhile; returns their number, and the generator's CPU time.
    fn run_while(&mut self, goes_on: impl Fn(u64) -> bool) -> Result<(u64, Duration), RunError> {
        let (before, mut busy) = (self.answered(), Duration::ZERO);
        while goes_on(self.answered() - before) {
            let started = Clock::thread_cpu_time();
            let until = self.counted_turn();
            busy += Clock::thread_cpu_time().saturating_sub(started);
            self.turn_of_responder(until)?;
        }
        Ok((self.answered() - before, busy))
    }

    fn take_intervals(&mut self) {
        while let Some((_, interval)) = self.workers.poll_interval() {
            self.total.append_in_time(&interval);
        }
    }

    /// Waits for what is in flight; every query must have got its response.
    fn finish(mut self) -> Result<(), RunError> {
        self.control.stop();
        loop {
            let until = self.workers.step(&mut self.driver);
            if self.workers.is_finished() {
                break;
            }
            self.turn_of_responder(until)?;
        }
        self.take_intervals();
        let (sent, responses) = (self.total.counts.sent, self.total.counts.responses);
        match sent == responses && responses > 0 {
            true => Ok(()),
            false => Err(RunError::plain(format!(
                "{}: the null driver answered {responses} of {sent} queries",
                self.transport
            ))),
        }
    }
}

/// The load of the project's benchmarks: names in turn, a closed loop, everything else as a run
/// has it unless told otherwise.
fn plan(request: &CeilingRequest, target: SocketAddr) -> io::Result<Plan> {
    let transport = request.transport;
    let names = (0..NAMES).map(|number| format!("name-{number}.example A\n"));
    let text = names.collect::<String>();
    let questions = names_file::parse_text(text.as_bytes(), &QueryOptions::default())
        .map_err(|error| io::Error::other(error.to_string()))?;
    let doh = match transport.is_doh() {
        true => {
            let uri = "https://localhost/dns-query";
            let request = DohRequest::new(Method::Post, uri, &[]).map_err(io::Error::other)?;
            Some(Arc::new(request))
        }
        false => None,
    };
    Ok(Plan {
        arrival: Arrival::Closed {
            outstanding: request.outstanding,
            rate_qps_max: None,
        },
        clients: request.clients,
        duration: Some(Duration::from_secs(24 * 60 * 60)),
        doh,
        ..Plan::new(target, transport, Arc::new(questions))
    })
}

/// TLS that verifies the responder's certificate, with full handshakes.
fn tls(transport: Transport, identity: &Identity) -> io::Result<TlsSettings> {
    let options = ClientTlsOptions {
        roots: Roots::Pem(identity.certificate_pem.clone().into_bytes()),
        versions: match transport.is_quic() {
            true => TlsVersions::Tls13,
            false => TlsVersions::All,
        },
        alpn: load::tls::default_alpn(transport),
        ..ClientTlsOptions::default()
    };
    let config = client_config(&options).map_err(|error| io::Error::other(error.to_string()))?;
    let name = ServerName::try_from("localhost").map_err(io::Error::other)?;
    Ok(TlsSettings {
        config,
        name,
        resume: Resume::NEVER,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(transport: Transport, until: Until) -> Ceiling {
        let request = CeilingRequest {
            transport,
            clients: 5,
            outstanding: 25,
            until,
        };
        let ceiling = measure(&request).unwrap();
        assert_eq!(ceiling.transport, transport);
        assert!(ceiling.busy > Duration::ZERO, "{ceiling:?}");
        let product = ceiling.ns_per_query() * ceiling.queries_per_second();
        assert!((product - 1e9).abs() < 1.0, "{ceiling:?}");
        ceiling
    }

    #[test]
    fn every_transport_answers_as_many_queries_as_were_asked_for() {
        for transport in Transport::ALL {
            let ceiling = check(transport, Until::Answered(200));
            // The last turn answers what was outstanding.
            assert!((200..225).contains(&ceiling.queries), "{ceiling:?}");
        }
    }

    #[test]
    fn every_transport_ends_by_the_clock() {
        for transport in Transport::ALL {
            let ceiling = check(transport, Until::Passed(Duration::from_millis(20)));
            assert!(ceiling.queries > 0, "{ceiling:?}");
        }
    }
}
