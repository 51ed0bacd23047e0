//! A run of several agents.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use agents::{Event, FromAgent, Lead, Order, Outcome, Place, RunShape, ToAgent};
use driver::clock::Clock;
use engine::{Control, PartEvents, PartOfRun, Progress, RunOptions};
use measure::RunRecord;
use proto::Instant;
use serde_json::value::RawValue;

use super::carrier::{AgentsError, Carried, Carrier, TURN, Task};
use super::greeting::Greeted;
use super::merged::{Counted, merged};
use super::process::{Connection, Voice};
use super::serve::serve_all;
use crate::host::HostWatch;
use crate::live::{Live, Publisher, ShownAgent};
use crate::run::{RunError, RunRequest, note_responder};
use crate::run::{inputs, own_cpus, own_driver, record, setup_error};

/// Runs the share of an agent, and tells the lead of it.
///
/// # Errors
/// [`RunError`] if it could not be started.
pub fn run_share(
    connection: &mut Connection,
    groups: &[RunRequest],
    part: PartOfRun,
    is_elsewhere: bool,
) -> Result<(), RunError> {
    let inputs = inputs(groups);
    let voice = connection.voice();
    let workers = engine::ThreadWorkers::workers_on(&inputs, part.threads.clone());
    let (ready, vain) = (voice.clone(), voice.clone());
    let tells = PartEvents {
        on_ready: Arc::new(move || ready.say(FromAgent::Ready)),
        on_vain: Arc::new(move || vain.say(FromAgent::Vain)),
    };
    let control = Arc::new(Control::of_part(workers, tells));
    if let Some(orders) = connection.orders() {
        let control = Arc::clone(&control);
        std::thread::spawn(move || obey(&orders, &control));
    }
    // Raises the soft limit.
    driver::cpu::open_files_max();
    let options = RunOptions {
        cpus: own_cpus(groups),
        driver: own_driver(groups),
        part: Some(part),
    };
    let groups = by_position(groups);
    // Those of its lead's host are read there, once.
    let kernel_before = is_elsewhere.then(crate::host::counters);
    let surroundings = record::Surroundings {
        simulation: None,
        started: record::Started::now(),
        host: crate::host::facts(),
        kernel: BTreeMap::new(),
    };
    let surroundings = || record::Surroundings {
        kernel: kernel_before.as_ref().map_or_else(BTreeMap::new, |before| {
            crate::host::difference(before, &crate::host::counters())
        }),
        ..surroundings.clone()
    };
    let tell = |progress: &Progress| {
        voice.say(FromAgent::Interval(Box::new(progress.interval.clone())));
        if let Some(outcome) = &progress.checkpoint {
            let outcome = outcome.as_ref().clone();
            let record = record::of_part(&groups, outcome, surroundings());
            say_record(&voice, &record, FromAgent::Checkpoint);
        }
    };
    let outcome =
        engine::run(&inputs, &options, &control, tell).map_err(|error| setup_error(&error))?;
    let record = record::of_part(&groups, outcome, surroundings());
    say_record(&voice, &record, FromAgent::Record);
    Ok(())
}

fn say_record(voice: &Voice, record: &RunRecord, message: fn(Box<RawValue>) -> FromAgent) {
    let record = RawValue::from_string(record.to_json()).expect("a record is JSON");
    voice.say(message(record));
}

/// Does what the lead orders, as long as the process lives.
fn obey(orders: &Receiver<Order>, control: &Control) {
    for order in orders {
        match order {
            Order::StartAt(at) => control.start_at(at),
            Order::Stop => control.stop(),
            Order::Interrupt | Order::Abandon(_) => control.interrupt(),
            Order::GiveUp => control.give_up(),
            Order::Setup(..) | Order::Seated { .. } | Order::Refused(_) => {}
        }
    }
}

/// The groups, named by their positions: other than their own names, these are unique.
fn by_position(groups: &[RunRequest]) -> Vec<RunRequest> {
    let mut groups = groups.to_vec();
    for (position, group) in groups.iter_mut().enumerate() {
        group.group = position.to_string();
    }
    groups
}

/// Leads agents, each of which is to do `task`, through the run and merges what they measured;
/// publishes each interval when all agents have ended it. `responders` are the target of a
/// self-test, if that is in processes of its own. All of them are gone afterwards. If an agent was
/// lost, the result is the last checkpoint of all.
///
/// # Errors
/// An agent could not start, or it was lost before the first checkpoint, or that was to end the run
/// without a result.
pub fn lead_run(
    (greeted, task): (Greeted, Task),
    groups: &[RunRequest],
    responders: Option<Carrier>,
    control: &Control,
    live: &Live,
) -> Result<RunRecord, AgentsError> {
    let publisher = Publisher::begin(live, groups);
    let observing = crate::observing::begin(groups, control)?;
    let first = groups.first().map(|request| &request.asked.generator);
    let shape = RunShape {
        plans: groups.iter().map(|request| request.plan.clone()).collect(),
        on_loss: first.and_then(|it| it.on_agent_loss).unwrap_or_default(),
        gives_up: control.gives_up(),
    };
    let Greeted {
        mut carrier,
        mut lead,
        clock,
    } = greeted;
    carrier.give(&task.inputs)?;
    carrier.say_to_all(&ToAgent::Setup(task.setup))?;
    lead.prepare(shape);
    let meanwhile = Arc::new(Meanwhile {
        groups: groups.to_vec(),
        places: (0..carrier.count() as usize)
            .map(|agent| carrier.place(agent).clone())
            .collect(),
        watch: HostWatch::begin(groups),
        kernel_before: crate::host::counters(),
    });
    let mut leading = Leading {
        carrier,
        lead,
        clock,
        responders,
        kernel: None,
        meanwhile,
        starts: None,
        publisher,
    };
    leading.lead(control)?;
    let responders = leading.responders.take();
    let (mut record, publisher) = leading.result()?;
    if let Some(observing) = observing {
        observing.end(&mut record);
    }
    record.conclude();
    if let Some(responders) = responders {
        match serve_all(responders, |_| true) {
            Ok(counted) => note_responder(&mut record, &counted, None),
            // The run itself is over and complete.
            Err(AgentsError::Refused(error) | AgentsError::Broken(error)) => {
                let warning = format!("what the built-in responder counted is lost: {error}");
                record.warnings.push(warning);
            }
        }
    }
    publisher.end(&record);
    Ok(record)
}

/// What surrounds the agents of a run from its beginning on.
struct Meanwhile {
    groups: Vec<RunRequest>,
    places: Vec<Place>,
    watch: HostWatch,
    /// What this host's kernel had counted before.
    kernel_before: BTreeMap<String, u64>,
}

impl Meanwhile {
    /// What this host's kernel has counted until now.
    fn kernel(&self) -> BTreeMap<String, u64> {
        crate::host::difference(&self.kernel_before, &crate::host::counters())
    }

    /// The record of what the agents have measured, without a verdict.
    fn record(&self, outcome: Outcome, counted: Counted) -> Option<RunRecord> {
        let mut record = merged(&self.groups, &self.places, outcome, counted)?;
        if record.hosts.len() == 1 {
            self.watch.note(&mut record);
        }
        Some(record)
    }
}

/// The agents as snapshots have them.
fn shown(lead: &Lead) -> Vec<ShownAgent> {
    let agents = lead.agents();
    let agents = agents.map(|(place, is_at_work, is_lost)| ShownAgent {
        host: match place {
            Place::Here => None,
            Place::Host(name) => Some(name.clone()),
        },
        is_at_work,
        is_lost,
    });
    agents.collect()
}

/// The lead of a run, and what carries its messages.
struct Leading {
    carrier: Carrier,
    lead: Lead,
    clock: Clock,
    responders: Option<Carrier>,
    meanwhile: Arc<Meanwhile>,
    /// What this host's kernel counted until the last checkpoint of all.
    kernel: Option<BTreeMap<String, u64>>,
    /// When all start, by the lead's clock and since 1970.
    starts: Option<(Instant, Duration)>,
    publisher: Publisher,
}

impl Leading {
    fn lead(&mut self, control: &Control) -> Result<(), AgentsError> {
        while !self.lead.is_over() {
            if control.is_interrupted() {
                self.lead.interrupt();
            } else if control.is_stopped() {
                self.lead.stop();
            }
            if let Some(responders) = &mut self.responders {
                responders.check()?;
            }
            let carried = self.carrier.next(TURN);
            let now = self.clock.now();
            match carried {
                None => {}
                Some((agent, Carried::Message(message, at))) => self.lead.hear(agent, message, at),
                Some((agent, Carried::Piece)) => self.lead.moves(agent),
                Some((agent, Carried::Unreadable(error))) => {
                    self.carrier.end(agent);
                    self.lead.gone(agent, format!("it sent {error}"), now);
                }
                Some((agent, Carried::Closed(why))) => {
                    let how = self.carrier.end_of(agent, why);
                    self.lead.gone(agent, how, now);
                }
            }
            self.lead.pass(now);
            self.settle(control)?;
        }
        match self.lead.failure() {
            None => Ok(()),
            Some(failure) => Err(self.carrier.error(failure)),
        }
    }

    fn settle(&mut self, control: &Control) -> Result<(), AgentsError> {
        while let Some((agent, message)) = self.lead.poll_message() {
            self.carrier.say(agent, &message)?;
        }
        while let Some(event) = self.lead.poll_event() {
            match event {
                Event::Greeted => {}
                Event::Starts(at) => {
                    let wait = Duration::from_nanos(at.nanos_since(self.clock.now()));
                    self.starts = Some((at, Clock::unix_time() + wait));
                    // Signals and operations of experiments wait for the beginning.
                    control.start_at(at);
                }
                Event::Progress(progress) => {
                    self.publisher.note_agents(shown(&self.lead));
                    self.publisher.show(&progress);
                }
                Event::Checkpoint => {
                    self.kernel = Some(self.meanwhile.kernel());
                    self.judge();
                }
                Event::Lost(agent) => self.carrier.end(agent),
            }
        }
        Ok(())
    }

    /// Judges the last checkpoint of all.
    fn judge(&mut self) {
        let so_far = self.lead.so_far(self.clock.now());
        let Some(so_far) = so_far.filter(|_| self.publisher.judges()) else {
            return;
        };
        let meanwhile = Arc::clone(&self.meanwhile);
        let kernel = self.kernel.clone().unwrap_or_default();
        let starts = self.starts;
        self.publisher.judge(move |intervals| {
            let outcome = so_far.outcome(intervals)?;
            let counted = (began(starts, &outcome), kernel);
            let mut record = meanwhile.record(outcome, counted)?;
            record.conclude();
            Some(record)
        });
    }

    /// What the agents have measured together; or if one was lost, what all had until their last
    /// checkpoint.
    fn result(self) -> Result<(RunRecord, Publisher), AgentsError> {
        let kernel_now = self.meanwhile.kernel();
        let outcome = self.lead.finish(self.clock.now());
        let outcome = outcome.map_err(|failure| self.carrier.error(&failure))?;
        let kernel = match outcome.degraded {
            Some(_) => self.kernel.unwrap_or_default(),
            None => kernel_now,
        };
        let counted = (began(self.starts, &outcome), kernel);
        let record = self.meanwhile.record(outcome, counted);
        let none = || AgentsError::refused("there is no result of all agents");
        Ok((record.ok_or_else(none)?, self.publisher))
    }
}

/// When the measured run began, since 1970.
fn began(starts: Option<(Instant, Duration)>, outcome: &Outcome) -> Duration {
    starts.map_or(Duration::ZERO, |(at, unix_time)| {
        unix_time + Duration::from_nanos(outcome.run_start.nanos_since(at))
    })
}
