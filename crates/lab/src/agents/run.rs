//! A run of several agents.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;
use std::time::Duration;

use agents::{Event, FromAgent, Lead, Order, Outcome, Place, RunShape};
use driver::clock::Clock;
use engine::{AgentEvents, AgentShare, Control, Progress, RunOptions};
use measure::absent;
use measure::{AbsentAgent, RunRecord};
use proto::Instant;
use serde_json::value::RawValue;

use super::carrier::{AgentsError, Carried, Carrier, TURN, Task};
use super::fleet::Fleet;
use super::merged::{Counted, merged};
use super::process::{Connection, Voice};
use super::serve::serve_all;
use crate::host::HostWatch;
use crate::live::{Live, Publisher, ShownAgent};
use crate::run::aborting::Aborting;
use crate::run::{RunError, RunRequest, note_responder};
use crate::run::{inputs, own_cpus, own_driver, record, setup_error};

/// Runs the share of an agent, and tells the lead of it. The connection is ready for the next run
/// then.
///
/// # Errors
/// [`RunError`] if it could not be started.
pub fn run_share(
    connection: &mut Connection,
    groups: &[RunRequest],
    share: AgentShare,
    is_elsewhere: bool,
) -> Result<(), RunError> {
    let inputs = inputs(groups);
    let voice = connection.voice();
    let workers = engine::ThreadWorkers::workers_on(&inputs, share.threads.clone());
    let (ready, vain) = (voice.clone(), voice.clone());
    let tells = AgentEvents {
        on_ready: Arc::new(move || ready.say(FromAgent::Ready)),
        on_vain: Arc::new(move || vain.say(FromAgent::Vain)),
    };
    let control = Arc::new(Control::for_agent(workers, tells));
    let shows_groups = Arc::new(AtomicBool::new(false));
    let obeying = connection.orders().map(|orders| {
        let (control, shows_groups) = (Arc::clone(&control), Arc::clone(&shows_groups));
        std::thread::spawn(move || obey(orders, &control, &shows_groups))
    });
    // Raises the soft limit.
    driver::cpu::open_files_max();
    let options = RunOptions {
        cpus: own_cpus(groups),
        driver: own_driver(groups),
        share: Some(share),
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
        let shows_groups = shows_groups.load(Ordering::Acquire);
        voice.say(FromAgent::of_progress(progress, shows_groups));
        if let Some(outcome) = &progress.checkpoint {
            let outcome = outcome.as_ref().clone();
            let record = record::assemble_agent_record(&groups, outcome, surroundings());
            say_record(&voice, &record, FromAgent::Checkpoint);
        }
    };
    let outcome =
        engine::run(&inputs, &options, &control, tell).map_err(|error| setup_error(&error))?;
    let record = record::assemble_agent_record(&groups, outcome, surroundings());
    say_record(&voice, &record, FromAgent::Record);
    if let Some(Ok(Some(orders))) = obeying.map(JoinHandle::join) {
        connection.give_back(orders);
    }
    Ok(())
}

fn say_record(voice: &Voice, record: &RunRecord, message: fn(Box<RawValue>) -> FromAgent) {
    let record = RawValue::from_string(record.to_json()).expect("a record is JSON");
    voice.say(message(record));
}

/// Does what the lead orders until the run is over; the orders that follow, if there is a lead.
fn obey(
    orders: Receiver<Order>,
    control: &Control,
    shows_groups: &AtomicBool,
) -> Option<Receiver<Order>> {
    loop {
        match orders.recv().ok()? {
            Order::ShowGroups => shows_groups.store(true, Ordering::Release),
            Order::StartAt(at) => control.start_at(at),
            Order::PauseAt(at) => control.pause_at(at),
            Order::Stop => control.stop(),
            Order::Interrupt | Order::Abandon(_) => control.interrupt(),
            Order::GiveUp => control.give_up(),
            Order::RunOver => return Some(orders),
            Order::Setup(..) | Order::Seated { .. } | Order::Refused(_) | Order::End => {}
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
/// self-test, if that is in processes of its own; they are gone afterwards. If an agent was lost,
/// the result is the last checkpoint of all. Agents that were not wait for the next run.
///
/// # Errors
/// An agent could not start, or it was lost before the first checkpoint, or that was to end the run
/// without a result.
pub fn lead_run(
    (mut fleet, task): (Fleet, Task),
    groups: &[RunRequest],
    responders: Option<Carrier>,
    control: &Control,
    live: &Live,
) -> Result<(RunRecord, Fleet), AgentsError> {
    let aborting = Aborting::of(groups)?;
    let mut publisher = Publisher::begin(live, groups);
    let observing = crate::observing::begin(groups, control)?;
    if let Some(observing) = &observing {
        publisher.note_observed(&observing.newest());
    }
    let first = groups.first().map(|request| &request.asked.generator);
    let shape = RunShape {
        plans: groups.iter().map(|request| request.plan.clone()).collect(),
        on_loss: first.and_then(|it| it.on_agent_loss).unwrap_or_default(),
        gives_up: control.gives_up(),
        shows_groups: live.wants_groups() || aborting.needs_groups(),
    };
    check_groups(&aborting, &shape, fleet.lead.agents().count())?;
    fleet.give(task)?;
    fleet.lead.prepare(shape);
    let meanwhile = Arc::new(Meanwhile {
        groups: groups.to_vec(),
        places: fleet
            .lead
            .agents()
            .map(|(place, ..)| place.clone())
            .collect(),
        absent: absent_agents(&fleet),
        watch: fleet
            .processes_here()
            .map(|agents| HostWatch::begin(groups, agents)),
        kernel_before: crate::host::counters(),
    });
    let mut leading = Leading {
        fleet,
        responders,
        kernel: None,
        meanwhile,
        starts: None,
        publisher,
        aborting,
    };
    leading.lead(control)?;
    let responders = leading.responders.take();
    let aborting = std::mem::take(&mut leading.aborting);
    let (mut record, publisher, fleet) = leading.result()?;
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
    aborting.note(&mut record, control);
    publisher.end(&record);
    Ok((record, fleet))
}

/// Refuses a condition on a group of clients where agents do not send the intervals of groups.
fn check_groups(aborting: &Aborting, shape: &RunShape, agents: usize) -> Result<(), RunError> {
    if !aborting.needs_groups() || shape.can_show_groups(agents) {
        return Ok(());
    }
    let groups = shape.plans.len();
    Err(RunError::new(
        format!(
            "--abort-if for a group: {agents} agents do not report {groups} groups each second"
        ),
        "use fewer groups or agents, or a condition on the whole run",
    ))
}

/// What surrounds the agents of a run from its beginning on.
struct Meanwhile {
    groups: Vec<RunRequest>,
    places: Vec<Place>,
    absent: Vec<AbsentAgent>,
    /// None if agents are not among the processes of this host: their CPU time is not that of other
    /// processes, and cannot be told from it.
    watch: Option<HostWatch>,
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
        let warning = absent::warning(&self.absent, record.agent_count);
        record.warnings.splice(0..0, warning);
        record.absent_agents.clone_from(&self.absent);
        if let (1, Some(watch)) = (record.hosts.len(), &self.watch) {
            watch.note(&mut record);
        }
        Some(record)
    }
}

fn absent_agents(fleet: &Fleet) -> Vec<AbsentAgent> {
    let absent = fleet.absent.iter().map(|index| AbsentAgent {
        index: *index,
        why: None,
    });
    absent.collect()
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

/// A run that is led.
struct Leading {
    fleet: Fleet,
    responders: Option<Carrier>,
    meanwhile: Arc<Meanwhile>,
    /// What this host's kernel counted until the last checkpoint of all.
    kernel: Option<BTreeMap<String, u64>>,
    /// When all start, by the lead's clock and since 1970.
    starts: Option<(Instant, Duration)>,
    publisher: Publisher,
    aborting: Aborting,
}

impl Leading {
    fn lead(&mut self, control: &Control) -> Result<(), AgentsError> {
        while !self.fleet.lead.is_over() {
            if control.is_interrupted() {
                self.fleet.lead.interrupt();
            } else if control.is_stopped() {
                self.fleet.lead.stop();
            }
            if let Some(responders) = &mut self.responders {
                responders.check()?;
            }
            let carried = self.fleet.carrier.next(TURN);
            let now = self.fleet.clock.now();
            match carried {
                None => {}
                Some((agent, Carried::Message(message, at))) => {
                    self.fleet.lead.hear(agent, message, at)
                }
                Some((agent, Carried::Piece)) => self.fleet.lead.moves(agent),
                Some((agent, Carried::Unreadable(error))) => {
                    self.fleet.carrier.end(agent);
                    self.fleet.lead.gone(agent, format!("it sent {error}"), now);
                }
                Some((agent, Carried::Closed(why))) => {
                    let how = self.fleet.carrier.end_of(agent, why);
                    self.fleet.lead.gone(agent, how, now);
                }
            }
            self.fleet.lead.pass(now);
            self.settle(control)?;
        }
        match self.fleet.lead.failure() {
            None => Ok(()),
            Some(failure) => Err(self.fleet.carrier.error(failure)),
        }
    }

    fn settle(&mut self, control: &Control) -> Result<(), AgentsError> {
        while let Some((agent, message)) = self.fleet.lead.poll_message() {
            self.fleet.carrier.say(agent, &message)?;
        }
        while let Some(event) = self.fleet.lead.poll_event() {
            match event {
                Event::Greeted => {}
                Event::Starts(at) => {
                    let wait = Duration::from_nanos(at.nanos_since(self.fleet.clock.now()));
                    self.starts = Some((at, Clock::unix_time() + wait));
                    // Signals and operations of experiments wait for the beginning.
                    control.start_at(at);
                }
                Event::Progress(progress) => {
                    self.aborting.look_at(&progress, control);
                    self.publisher.note_agents(shown(&self.fleet.lead));
                    self.publisher.show(&progress);
                }
                Event::Checkpoint => {
                    self.kernel = Some(self.meanwhile.kernel());
                    self.judge();
                }
                Event::Lost(agent) => self.fleet.carrier.end(agent),
            }
        }
        Ok(())
    }

    /// Judges the last checkpoint of all.
    fn judge(&mut self) {
        let so_far = self.fleet.lead.so_far(self.fleet.clock.now());
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
    fn result(self) -> Result<(RunRecord, Publisher, Fleet), AgentsError> {
        let kernel_now = self.meanwhile.kernel();
        let mut fleet = self.fleet;
        let (led, now) = (fleet.next_lead(), fleet.clock.now());
        let outcome = led.finish(now);
        let outcome = outcome.map_err(|failure| fleet.carrier.error(&failure))?;
        let kernel = match outcome.degraded {
            Some(_) => self.kernel.unwrap_or_default(),
            None => kernel_now,
        };
        let counted = (began(self.starts, &outcome), kernel);
        let record = self.meanwhile.record(outcome, counted);
        let none = || AgentsError::refused("there is no result of all agents");
        let record = record.ok_or_else(none)?;
        Ok((record, self.publisher, fleet))
    }
}

/// When the measured run began, since 1970.
fn began(starts: Option<(Instant, Duration)>, outcome: &Outcome) -> Duration {
    starts.map_or(Duration::ZERO, |(at, unix_time)| {
        unix_time + Duration::from_nanos(outcome.run_start.nanos_since(at))
    })
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn an_agent_sends_intervals_of_groups_before_its_load_starts_if_so_ordered() {
        let (orders, received) = channel();
        let events = AgentEvents {
            on_ready: Arc::new(|| {}),
            on_vain: Arc::new(|| {}),
        };
        let (control, shows_groups) = (Control::for_agent(1, events), AtomicBool::new(false));
        let start = Instant::from_nanos(1);
        for order in [Order::ShowGroups, Order::StartAt(start), Order::RunOver] {
            orders.send(order).unwrap();
        }
        assert!(obey(received, &control, &shows_groups).is_some());
        assert!(shows_groups.into_inner());
        assert_eq!(control.start(), Some(start));
    }
}
