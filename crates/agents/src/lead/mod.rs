//! The lead's side: takes its agents through a run, and merges their reports.

mod checkpoints;
mod fate;
mod link;

use std::collections::VecDeque;
use std::time::Duration;

use engine::{Gathering, Progress};
use load::Plan;
use measure::agent_series::SeriesBuilder;
use measure::record::AgentClock;
use measure::{AgentSeries, Degraded, Interval, Intervals, RunRecord};
use proto::Instant;
use settings::OnAgentLoss;

use crate::message::{AgentError, FromAgent, Hello, ToAgent};
use crate::{DeadMan, STOP_MAX};
use checkpoints::{Checkpoints, Loss};
use fate::sent_max;
use link::{Armed, LeadLink, State};

/// How long all agents may take to greet.
const GREETING_MAX: Duration = Duration::from_secs(60);
/// How long an agent may send nothing in the run, and before it, not counting pauses of the lead
/// itself.
const SILENCE_MAX: Duration = Duration::from_secs(10);
const SILENCE_BEFORE_MAX: Duration = Duration::from_secs(30);
/// Longest time between two turns of the lead; anything longer was a pause of its own.
const TURN: Duration = Duration::from_millis(20);
/// Time until the common start, at least: proposal, confirmations and order have to travel between
/// hosts whose CPUs are busy.
const START_DELAY: Duration = Duration::from_millis(400);
/// The same in round trips to the agent that answers last.
const START_ROUND_TRIPS: u32 = 8;
/// Share (1 / this) of that time in which all have to confirm. The rest is for the order: an agent
/// that pauses for as long as the rest, at any instant, starts in time or postpones the start.
const ARMED_WITHIN: u32 = 4;
/// Most intervals of groups that all agents together send at a time (four groups of 1,000 agents,
/// which double the bytes of their intervals), and most groups.
const GROUP_INTERVALS_MAX: usize = 4_096;
const GROUPS_SHOWN_MAX: usize = 64;
/// How often a start is postponed; the delay doubles each time, up to a limit.
const PUT_OFF_MAX: u32 = 20;
const DOUBLINGS_MAX: u32 = 5;

/// Where an agent is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// On the host of its lead, whose clock it shares.
    Here,
    /// On this other host; it has to greet first.
    Host(String),
}

/// The run of a lead, as far as the lead needs to know it.
#[derive(Clone, Debug)]
pub struct RunShape {
    /// The plans of its groups, for all agents together.
    pub plans: Vec<Plan>,
    /// What happens when an agent is lost.
    pub on_loss: OnAgentLoss,
    /// It ends early if the first queries of all agents have failed.
    pub gives_up: bool,
    /// A reader shows the groups during the run, unless they have too many intervals.
    pub shows_groups: bool,
}

impl RunShape {
    /// True if there are several groups, and that number of agents can send the intervals of each.
    pub fn can_show_groups(&self, agents: usize) -> bool {
        let groups = self.plans.len();
        (2..=GROUPS_SHOWN_MAX).contains(&groups) && agents * groups <= GROUP_INTERVALS_MAX
    }
}

/// An event of a run.
#[derive(Debug)]
pub enum Event {
    /// All agents of other hosts have greeted: [`Lead::prepare`] is next.
    Greeted,
    /// All begin at this instant of the lead's clock.
    Starts(Instant),
    /// An interval is over at all agents.
    Progress(Box<Progress>),
    /// All agents have reported the checkpoint at the end of the interval that was shown last.
    Checkpoint,
    /// This agent is lost: its transport can be closed.
    Lost(usize),
}

/// Why there is no result; all agents are to be ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The agent that caused it.
    pub agent: usize,
    /// What it did.
    pub why: Why,
}

/// What an agent did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// It is another program.
    Refused(String),
    /// It did not greet within this time.
    NoGreeting(Duration),
    /// It reported an error.
    Reported(AgentError),
    /// It sent a message that is invalid in its state.
    Invalid(String),
    /// It sent nothing for this time.
    Silent(Duration),
    /// Its workers ended no interval for this time.
    Stalled(Duration),
    /// It never confirmed a start in time.
    NotAwake,
    /// The run was stopped before it began.
    Stopped,
    /// It received the start order this much too late.
    Late(Duration),
    /// It ended before its time.
    Ended(String),
    /// Its own host asked it to end (SIGTERM), and it has reported all that it did.
    Left,
}

impl Why {
    /// For a record.
    fn how(&self) -> String {
        let seconds = |time: &Duration| format!("{:.0} s", time.as_secs_f64());
        match self {
            Why::Silent(time) => format!("said nothing for {}", seconds(time)),
            Why::Stalled(time) => format!("its workers were stopped for {}", seconds(time)),
            Why::Left => "it was asked to end (SIGTERM)".to_owned(),
            Why::Ended(how) | Why::Refused(how) | Why::Invalid(how) => how.clone(),
            Why::Reported(error) => error.what.clone(),
            Why::NoGreeting(time) => format!("no answer within {}", seconds(time)),
            Why::Stopped => "the run was ended before it began".to_owned(),
            Why::NotAwake => "it did not answer in time before the start".to_owned(),
            Why::Late(by) => format!("heard of the start {} late", seconds(by)),
        }
    }
}

/// The result of a run.
#[derive(Debug)]
pub struct Outcome {
    /// What each agent has measured; if one was lost, until the last checkpoint of all.
    pub records: Vec<RunRecord>,
    /// The intervals of all together.
    pub intervals: Intervals,
    /// If agents were lost: what is known beside the last checkpoint of all.
    pub degraded: Option<Degraded>,
    /// Clock offsets of agents on other hosts.
    pub clocks: Vec<Option<AgentClock>>,
    /// What each agent did over time, until the end of `intervals`; none while the run goes on.
    pub series: Vec<AgentSeries>,
    /// When the measured run began, by the lead's clock.
    pub run_start: Instant,
}

/// The last checkpoint of all agents, during the run.
#[derive(Debug)]
pub struct SoFar {
    records: Vec<String>,
    clocks: Vec<Option<AgentClock>>,
    run_start: Instant,
}

impl SoFar {
    /// The result so far, with the intervals until then. Slow, because it parses the records of all
    /// agents; none if one cannot be read.
    pub fn outcome(self, intervals: Intervals) -> Option<Outcome> {
        let read = self.records.iter().map(|it| RunRecord::from_json(it).ok());
        Some(Outcome {
            records: read.collect::<Option<_>>()?,
            intervals,
            degraded: None,
            clocks: self.clocks,
            series: Vec::new(),
            run_start: self.run_start,
        })
    }
}

/// Leads agents through a run: messages, losses and instants go in; messages and events come out.
#[derive(Debug)]
pub struct Lead {
    links: Vec<LeadLink>,
    shape: RunShape,
    /// The lead's identity, which agents on other hosts have to match.
    own: Option<Hello>,
    began: Instant,
    passed: Instant,
    /// The proposed start.
    arming: Option<Arming>,
    put_off: u32,
    /// They have their setup.
    is_prepared: bool,
    /// When the measured run starts.
    run_start: Option<Instant>,
    stops: bool,
    interrupts: bool,
    says: VecDeque<(usize, ToAgent)>,
    events: VecDeque<Event>,
    failure: Option<Failure>,
    /// The intervals that the agents have reported.
    gathering: Gathering,
    /// Those of each group, if they are shown.
    groups: Option<Gathering>,
    checkpoints: Checkpoints,
    /// What each agent did over time.
    series: Vec<SeriesBuilder>,
}

/// A start proposed to the agents.
#[derive(Debug)]
struct Arming {
    start: Instant,
    /// It is postponed if not all have confirmed by then.
    decides: Instant,
}

/// The key under which an agent's intervals are gathered, as if it were one worker.
fn place(agent: usize) -> (usize, usize) {
    (agent, 0)
}

impl Lead {
    /// A lead of agents at these places; `own` is the lead's identity, if some are on other hosts.
    pub fn new(places: &[Place], own: Option<Hello>, now: Instant) -> Self {
        let count = places.len();
        let greets = places.iter().any(|it| *it != Place::Here);
        let mut events = VecDeque::new();
        if !greets {
            events.push_back(Event::Greeted);
        }
        Lead {
            links: places.iter().map(LeadLink::new).collect(),
            shape: RunShape {
                plans: Vec::new(),
                on_loss: OnAgentLoss::default(),
                gives_up: false,
                shows_groups: false,
            },
            own,
            began: now,
            passed: now,
            arming: None,
            put_off: 0,
            is_prepared: false,
            run_start: None,
            stops: false,
            interrupts: false,
            says: VecDeque::new(),
            events,
            failure: None,
            gathering: Gathering::at((0..count).map(place), 1),
            groups: None,
            checkpoints: Checkpoints::new(count),
            series: vec![SeriesBuilder::new(count); count],
        }
    }

    /// A lead of the same agents, for the next run.
    #[must_use]
    pub fn next(&self, now: Instant) -> Lead {
        let places: Vec<Place> = self.links.iter().map(|link| link.place.clone()).collect();
        let mut next = Lead::new(&places, self.own.clone(), now);
        for (link, before) in next.links.iter_mut().zip(&self.links) {
            link.hello.clone_from(&before.hello);
            if link.hello.is_some() {
                link.state = State::Preparing;
            }
        }
        next
    }

    /// The greetings of agents on other hosts.
    pub fn hellos(&self) -> impl Iterator<Item = &Hello> {
        self.links.iter().filter_map(|link| link.hello.as_ref())
    }

    /// For each agent: its place, whether more reports are expected, whether it was lost.
    pub fn agents(&self) -> impl Iterator<Item = (&Place, bool, bool)> {
        let each = self.links.iter();
        each.map(|link| (&link.place, link.is_at_work(), link.state == State::Lost))
    }

    /// True while that agent has not greeted.
    pub fn is_greeting(&self, agent: usize) -> bool {
        self.links[agent].state == State::Greeting
    }

    /// Records that all agents have been sent [`ToAgent::Setup`], which the transport encodes once
    /// for all. `shape` is the run.
    pub fn prepare(&mut self, shape: RunShape) {
        (self.shape, self.is_prepared) = (shape, true);
        let (agents, groups) = (self.links.len(), self.shape.plans.len());
        if self.shape.shows_groups && self.shape.can_show_groups(agents) {
            let places = (0..agents).flat_map(|agent| (0..groups).map(move |it| (agent, it)));
            self.groups = Some(Gathering::at(places, groups));
            self.say_to_all(|| ToAgent::ShowGroups);
        }
    }

    /// Handles a message of an agent that was read at `now`.
    pub fn hear(&mut self, agent: usize, message: FromAgent, now: Instant) {
        self.links[agent].silence = Duration::ZERO;
        if self.failure.is_some() || !self.links[agent].is_at_work() {
            // Messages that a lost agent sent before are ignored.
            return;
        }
        let heard = self.take(agent, message, now);
        if let Err(why) = heard {
            self.fail(agent, why);
        }
        self.settle();
        self.start_when_armed(now);
    }

    /// Shows the intervals that have become complete.
    fn settle(&mut self) {
        let mut of_groups = VecDeque::new();
        if let Some(groups) = &mut self.groups {
            groups.settle(|progress| of_groups.push_back(progress.groups.clone()));
        }
        self.gathering.settle(|progress| {
            let mut progress = Box::new(progress.clone());
            // These came in the same messages.
            progress.groups = of_groups.pop_front().unwrap_or_default();
            self.events.push_back(Event::Progress(progress));
        });
    }

    /// Takes the intervals that an agent has ended of each group.
    fn add_groups(&mut self, agent: usize, intervals: Vec<Interval>) -> Result<(), Why> {
        let (Some(groups), count) = (&mut self.groups, self.shape.plans.len()) else {
            return Ok(());
        };
        if intervals.len() != count {
            let sent = intervals.len();
            let what = format!("intervals of {sent} groups where there are {count}");
            return Err(Why::Invalid(what));
        }
        for (group, interval) in intervals.into_iter().enumerate() {
            groups.add((agent, group), interval);
        }
        Ok(())
    }

    /// Ends the gathering of an agent's intervals.
    fn end_gathering(&mut self, agent: usize) {
        self.gathering.end(place(agent));
        if let Some(groups) = &mut self.groups {
            (0..self.shape.plans.len()).for_each(|group| groups.end((agent, group)));
        }
    }

    fn take(&mut self, agent: usize, message: FromAgent, now: Instant) -> Result<(), Why> {
        let link = &mut self.links[agent];
        let state = link.state;
        let unexpected = |what: &str| Err(Why::Invalid(format!("{what} while {state:?}")));
        match message {
            FromAgent::Hello(hello) => {
                if state != State::Greeting {
                    return unexpected("a greeting");
                }
                let own = self.own.as_ref().unwrap_or(&hello);
                hello.check(own).map_err(Why::Refused)?;
                (link.hello, link.state) = (Some(hello), State::Preparing);
                if !self.links.iter().any(|it| it.state == State::Greeting) {
                    self.events.push_back(Event::Greeted);
                }
            }
            _ if state == State::Greeting => return unexpected("no greeting"),
            FromAgent::Join(_) => return unexpected("a greeting"),
            FromAgent::Beat => {}
            FromAgent::Clock {
                asked_ns,
                theirs_ns,
            } => link.note_clock(asked_ns, theirs_ns, now),
            FromAgent::Ready if state == State::Preparing => link.state = State::Ready,
            FromAgent::Ready => return unexpected("ready"),
            FromAgent::Armed { at_ns } => link.armed.hear(at_ns, true),
            FromAgent::Late { at_ns, now_ns } if state == State::Running => {
                let by = now_ns.saturating_sub(at_ns);
                return Err(Why::Late(Duration::from_nanos(by)));
            }
            FromAgent::Late { at_ns, .. } => link.armed.hear(at_ns, false),
            FromAgent::Vain => {
                link.is_vain = true;
                if self.shape.gives_up && self.links.iter().all(|it| it.is_vain) {
                    self.say_to_all(|| ToAgent::GiveUp);
                }
            }
            FromAgent::Leaving => link.is_leaving = true,
            FromAgent::Record(_) if link.is_leaving => self.lose(agent, Why::Left, now),
            FromAgent::Interval { .. } | FromAgent::Checkpoint(_) | FromAgent::Record(_)
                if state != State::Running =>
            {
                return unexpected("a result");
            }
            FromAgent::Interval { all, groups } => {
                link.stalled = Duration::ZERO;
                self.add_groups(agent, groups)?;
                self.checkpoints.add(agent, &all);
                self.series[agent].push(&all);
                self.gathering.add(place(agent), *all);
            }
            FromAgent::Checkpoint(record) => {
                self.settle();
                let intervals = || self.gathering.so_far();
                if self.checkpoints.note(agent, record.get(), intervals) {
                    self.events.push_back(Event::Checkpoint);
                }
            }
            FromAgent::Record(record) => {
                link.state = State::Ended;
                self.checkpoints.end(agent, record.get());
                self.end_gathering(agent);
            }
            FromAgent::Failed(error) => return Err(Why::Reported(error)),
            FromAgent::Listening(_) | FromAgent::Counters(_) => {
                return unexpected("what a responder says");
            }
        }
        Ok(())
    }

    /// Records that part of a long message has been written to an agent, or has come from it.
    pub fn moves(&mut self, agent: usize) {
        let link = &mut self.links[agent];
        (link.silence, link.stalled) = (Duration::ZERO, Duration::ZERO);
    }

    /// An agent's process or transport has ended; `how` describes it.
    pub fn gone(&mut self, agent: usize, how: String, now: Instant) {
        if self.failure.is_some() || !self.links[agent].is_at_work() {
            return;
        }
        let why = match self.links[agent].is_leaving {
            // Its record did not come: it was killed before it had ended its run.
            true => Why::Ended(format!(
                "{}, and ended before it was ready: {how}",
                Why::Left.how()
            )),
            false => Why::Ended(how),
        };
        self.lose(agent, why, now);
    }

    /// Makes all agents end early and report. Before the start there is nothing to report.
    pub fn stop(&mut self) {
        if self.run_start.is_none() {
            return self.fail(0, Why::Stopped);
        }
        if !std::mem::replace(&mut self.stops, true) {
            self.say_to_all(|| ToAgent::Stop);
        }
    }

    /// The same, but they wait for open queries for a second at most.
    pub fn interrupt(&mut self) {
        if self.run_start.is_none() {
            return self.fail(0, Why::Stopped);
        }
        self.stops = true;
        if !std::mem::replace(&mut self.interrupts, true) {
            self.say_to_all(|| ToAgent::Interrupt);
        }
    }

    fn say_to_all(&mut self, message: impl Fn() -> ToAgent) {
        for (agent, link) in self.links.iter().enumerate() {
            if link.is_at_work() {
                self.says.push_back((agent, message()));
            }
        }
    }

    /// Handles the passing of time; to be called every 20 ms at least.
    pub fn pass(&mut self, now: Instant) {
        let passed = Duration::from_nanos(now.nanos_since(self.passed));
        self.passed = now;
        self.note_silence(passed.min(2 * TURN), now);
        if !self.is_prepared {
            return;
        }
        let is_before = self.is_ready() && self.run_start.is_none();
        for (agent, link) in self.links.iter_mut().enumerate() {
            if let Some(message) = link.beat(now, is_before) {
                self.says.push_back((agent, message));
            }
        }
        self.arm_if_due(now);
    }

    /// Adds to the agents' silence; time in which the lead itself was stopped does not count.
    fn note_silence(&mut self, passed: Duration, now: Instant) {
        let greeting = Duration::from_nanos(now.nanos_since(self.began));
        let stalled_max = self.stalled_max();
        let is_measured = self.run_start.is_some_and(|it| it <= now);
        for agent in 0..self.links.len() {
            let link = &mut self.links[agent];
            if self.failure.is_some() || !link.is_at_work() {
                continue;
            }
            if link.state == State::Greeting {
                if greeting > GREETING_MAX {
                    self.fail(agent, Why::NoGreeting(GREETING_MAX));
                }
                continue;
            }
            if self.is_prepared {
                link.silence += passed;
            }
            if is_measured {
                link.stalled += passed;
            }
            let (silence, stalled) = (link.silence, link.stalled);
            let silence_max = match link.state {
                State::Running => SILENCE_MAX,
                _ => SILENCE_BEFORE_MAX,
            };
            if silence > silence_max {
                self.lose(agent, Why::Silent(silence), now);
            } else if stalled > stalled_max {
                self.lose(agent, Why::Stalled(stalled), now);
            }
        }
    }

    /// How long an agent may end no interval: at the end it waits for responses.
    fn stalled_max(&self) -> Duration {
        let each = self.shape.plans.iter();
        let longest = each.map(|plan| plan.interval.max(plan.timeout)).max();
        SILENCE_MAX + 2 * longest.unwrap_or_default()
    }

    fn is_ready(&self) -> bool {
        let mut links = self.links.iter();
        links.all(|link| !matches!(link.state, State::Greeting | State::Preparing))
    }

    /// Proposes a start to all, and a later one if not all confirm.
    fn arm_if_due(&mut self, now: Instant) {
        if self.run_start.is_some() || self.failure.is_some() || !self.is_ready() {
            return;
        }
        if let Some(arming) = &self.arming {
            let mut links = self.links.iter();
            if now < arming.decides && !links.any(|link| link.armed == Armed::Late) {
                return;
            }
            self.put_off += 1;
            if self.put_off > PUT_OFF_MAX {
                let mut links = self.links.iter();
                let late = links.position(|link| link.armed != Armed::Yes);
                return self.fail(late.unwrap_or_default(), Why::NotAwake);
            }
        } else if !self.links.iter().all(|link| link.clock_is_known(now)) {
            return;
        }
        let round_trips = self.links.iter().filter_map(LeadLink::round_trip);
        let delay = START_DELAY.max(START_ROUND_TRIPS * round_trips.max().unwrap_or_default());
        let delay = delay * 2_u32.pow(self.put_off.min(DOUBLINGS_MAX));
        let start = now + delay;
        for (agent, link) in self.links.iter_mut().enumerate() {
            let at_ns = link.arm(start, now);
            self.says.push_back((agent, ToAgent::Arm { at_ns }));
        }
        self.arming = Some(Arming {
            start,
            decides: now + delay / ARMED_WITHIN,
        });
    }

    /// Orders the start once all have confirmed: at one instant of the lead's clock, sent to each
    /// by its own clock.
    fn start_when_armed(&mut self, now: Instant) {
        let can_start = |arming: &mut Arming| {
            let is_armed = self.links.iter().all(|link| link.armed == Armed::Yes);
            is_armed && now < arming.decides
        };
        let Some(arming) = self.arming.take_if(can_start) else {
            return;
        };
        for (agent, link) in self.links.iter_mut().enumerate() {
            if let Some(at_ns) = link.go() {
                self.says.push_back((agent, ToAgent::Go { at_ns }));
            }
        }
        let warmups = self.shape.plans.iter().map(|plan| plan.warmup);
        self.run_start = Some(arming.start + warmups.max().unwrap_or_default());
        self.events.push_back(Event::Starts(arming.start));
    }

    fn fail(&mut self, agent: usize, why: Why) {
        self.failure.get_or_insert(Failure { agent, why });
    }

    /// Declares an agent lost whose run is not over.
    fn lose(&mut self, agent: usize, why: Why, now: Instant) {
        let has_result = self.checkpoints.is_there() && self.shape.on_loss != OnAgentLoss::Fail;
        let Some(run_start) = self.run_start.filter(|_| has_result) else {
            self.fail(agent, why);
            return;
        };
        let link = &mut self.links[agent];
        link.state = State::Lost;
        let noticed_ns = now.nanos_since(run_start);
        // An agent on another host sends queries until it pauses.
        let goes_on = match (&link.place, &why) {
            (_, Why::Left) | (Place::Here, _) => Duration::ZERO,
            (Place::Host(_), _) => DeadMan::FAR.pauses + STOP_MAX,
        };
        let how = match &link.place {
            Place::Host(host) => format!("{} on {host}", why.how()),
            Place::Here => why.how(),
        };
        let until = Duration::from_nanos(noticed_ns) + goes_on;
        let known = match self.checkpoints.known(agent, until) {
            Ok(known) => known,
            Err(reason) => return self.fail(agent, Why::Invalid(reason)),
        };
        let sent_unknown_max = match why {
            Why::Left => 0,
            _ => sent_max(&self.shape.plans, self.links.len(), &known),
        };
        let loss = Loss {
            how,
            noticed_ns,
            sent_unknown_max,
        };
        self.checkpoints.lose(agent, loss);
        self.end_gathering(agent);
        self.events.push_back(Event::Lost(agent));
        if self.shape.on_loss == OnAgentLoss::End {
            self.stop();
        }
    }

    /// Why there is no result, if there is none.
    pub fn failure(&self) -> Option<&Failure> {
        self.failure.as_ref()
    }

    /// True if nothing more is expected.
    pub fn is_over(&self) -> bool {
        self.failure.is_some() || !self.links.iter().any(LeadLink::is_at_work)
    }

    /// The next message, and its agent. A clock question has to carry the instant at which it is
    /// written.
    pub fn poll_message(&mut self) -> Option<(usize, ToAgent)> {
        self.says.pop_front()
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// The last checkpoint of all agents; none before the first.
    pub fn so_far(&self, now: Instant) -> Option<SoFar> {
        Some(SoFar {
            records: self.checkpoints.common()?,
            clocks: self.links.iter().map(|link| link.clock(now)).collect(),
            run_start: self.run_start?,
        })
    }

    /// The merged result, once the run is over; if agents were lost, until the last checkpoint of
    /// all.
    ///
    /// # Errors
    /// A record cannot be read, or there is no result.
    pub fn finish(mut self, now: Instant) -> Result<Outcome, Failure> {
        let failed = |(agent, reason): (usize, String)| Failure {
            agent,
            why: Why::Invalid(reason),
        };
        let clocks = self.links.iter().map(|link| link.clock(now)).collect();
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        let none = || failed((0, "there is no result of all agents".to_owned()));
        let run_start = self.run_start.ok_or_else(none)?;
        let ended = self.checkpoints.finish().map_err(failed)?;
        let end_ns = ended.intervals.as_ref().map_or(u64::MAX, Intervals::end_ns);
        let series = self.series.iter().map(|it| it.until(end_ns));
        Ok(Outcome {
            series: series.collect(),
            records: ended.records,
            intervals: match ended.intervals {
                Some(intervals) => intervals,
                None => self.gathering.finish().0,
            },
            degraded: ended.degraded,
            clocks,
            run_start,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::*;

    #[test]
    fn a_run_that_is_interrupted_before_its_start_has_no_result() {
        let mut lead = Lead::new(&[Place::Here, Place::Here], None, Instant::ZERO);
        lead.hear(0, FromAgent::Ready, Instant::ZERO);
        assert!(!lead.is_over());
        lead.interrupt();
        let why = lead.failure().map(|failure| failure.why.clone());
        assert_eq!(why, Some(Why::Stopped));
        // Messages of agents in between are ignored.
        lead.hear(
            1,
            FromAgent::Record(RawValue::from_string("{}".to_owned()).unwrap()),
            Instant::ZERO,
        );
        assert!(lead.is_over());
        assert!(lead.finish(Instant::ZERO).is_err());
    }
}
