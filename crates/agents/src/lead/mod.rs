//! The lead's side: takes its agents through a run, and keeps what they say of it.

mod checkpoints;
mod fate;
mod link;

use std::collections::VecDeque;
use std::time::Duration;

use engine::{Gathering, Progress};
use load::Plan;
use measure::record::AgentClock;
use measure::{Degraded, Interval, Intervals, RunRecord};
use proto::Instant;
use settings::OnAgentLoss;

use crate::message::{FromAgent, Hello, ToAgent, Told};
use crate::{DEAD_MAN, STOP_MAX};
use checkpoints::{Checkpoints, Loss};
use fate::sent_max;
use link::{Armed, LeadLink, State};

/// How long all may take until they have said who they are.
const GREETING_MAX: Duration = Duration::from_secs(60);
/// For how long an agent may say nothing, while its lead is at work itself.
const SILENCE_MAX: Duration = Duration::from_secs(10);
/// How often the lead has its turn at least; what takes longer was its own pause.
const TURN: Duration = Duration::from_millis(20);
/// Time until the common start, at least: all have to hear of it, to say that they can and to hear
/// that all can, on hosts whose CPUs are busy.
const START_DELAY: Duration = Duration::from_millis(400);
/// The same in round trips to the agent that answers last.
const START_ROUND_TRIPS: u32 = 8;
/// The part of that time in which all have to say that they can. The rest is for hearing that all
/// can: an agent that pauses for as long as the rest, at any instant, starts in time or puts the
/// start off.
const ARMED_WITHIN: u32 = 4;
/// Most intervals of groups that agents send at a time, all agents together: four groups of 1,000
/// agents, which double the octets of their intervals. And most groups.
const GROUP_INTERVALS_MAX: usize = 4_096;
const GROUPS_SHOWN_MAX: usize = 64;
/// How often a start is put off: the time until the next one is twice as long, up to a limit.
const PUT_OFF_MAX: u32 = 20;
const DOUBLINGS_MAX: u32 = 5;

/// Where an agent is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// On the host of its lead, whose clock it shares.
    Here,
    /// On this other host; it says first who it is.
    Host(String),
}

/// What a lead knows of the run that it leads.
#[derive(Clone, Debug)]
pub struct RunShape {
    /// The plans of its groups, for all agents together.
    pub plans: Vec<Plan>,
    /// What happens when an agent is lost.
    pub on_loss: OnAgentLoss,
    /// It ends early where the first queries of all agents have failed.
    pub gives_up: bool,
    /// A reader shows the groups while the run goes on, as far as their intervals are not too many.
    pub shows_groups: bool,
}

/// What has come about.
#[derive(Debug)]
pub enum Event {
    /// All agents of other hosts have said who they are: [`Lead::prepare`] is next.
    Greeted,
    /// All begin at this instant of the lead's clock.
    Starts(Instant),
    /// An interval is over at all agents.
    Progress(Box<Progress>),
    /// There is a checkpoint of all agents, until the interval that was shown last.
    Checkpoint,
    /// Nothing more comes from this agent: whatever carries its messages can end.
    Lost(usize),
}

/// Why there is no result: all agents are to be ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The agent that it comes from.
    pub agent: usize,
    /// What it did.
    pub why: Why,
}

/// What an agent did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// It is another program.
    Refused(String),
    /// It did not say in time who it is.
    NoGreeting(Duration),
    /// It said why it could not.
    Told(Told),
    /// It said what has no place there.
    Invalid(String),
    /// It said nothing for this time.
    Silent(Duration),
    /// Its workers ended no interval for this time.
    Stalled(Duration),
    /// It never said in time that it could start.
    NotAwake,
    /// Nothing: the run was ended before it began.
    Stopped,
    /// It heard of the start this much too late.
    Late(Duration),
    /// It ended before its time.
    Ended(String),
    /// Its own host asked it to end (SIGTERM).
    Left,
}

impl Why {
    /// For a record.
    fn how(&self) -> String {
        let seconds = |time: &Duration| format!("{:.0} s", time.as_secs_f64());
        match self {
            Why::Silent(time) => format!("said nothing for {}", seconds(time)),
            Why::Stalled(time) => format!("its workers stood still for {}", seconds(time)),
            Why::Left => "it was asked to end (SIGTERM)".to_owned(),
            Why::Ended(how) | Why::Refused(how) | Why::Invalid(how) => how.clone(),
            Why::Told(told) => told.what.clone(),
            Why::NoGreeting(time) => format!("no answer within {}", seconds(time)),
            Why::Stopped => "the run was ended before it began".to_owned(),
            Why::NotAwake => "it did not answer in time before the start".to_owned(),
            Why::Late(by) => format!("heard of the start {} late", seconds(by)),
        }
    }
}

/// What a run came to.
#[derive(Debug)]
pub struct Outcome {
    /// What each agent has measured, or had until the last checkpoint of all.
    pub records: Vec<RunRecord>,
    /// The intervals of all together.
    pub intervals: Intervals,
    /// If agents were lost: what is known beside the last checkpoint of all.
    pub degraded: Option<Degraded>,
    /// What is known of the clocks of agents on other hosts.
    pub clocks: Vec<Option<AgentClock>>,
    /// When the measured run began, by the lead's clock.
    pub run_start: Instant,
}

/// The last checkpoint of all agents, while the run goes on.
#[derive(Debug)]
pub struct SoFar {
    records: Vec<String>,
    clocks: Vec<Option<AgentClock>>,
    run_start: Instant,
}

impl SoFar {
    /// The same as what a run comes to, with the intervals until then. Reads the records of all
    /// agents, which takes its time; none if one cannot be read.
    pub fn outcome(self, intervals: Intervals) -> Option<Outcome> {
        let read = self.records.iter().map(|it| RunRecord::from_json(it).ok());
        Some(Outcome {
            records: read.collect::<Option<_>>()?,
            intervals,
            degraded: None,
            clocks: self.clocks,
            run_start: self.run_start,
        })
    }
}

/// Leads agents through a run: messages, losses and instants go in; messages and events come out.
#[derive(Debug)]
pub struct Lead {
    links: Vec<LeadLink>,
    shape: RunShape,
    /// Who the lead is, as agents on other hosts have to be.
    own: Option<Hello>,
    began: Instant,
    passed: Instant,
    /// The start that agents are asked for.
    arming: Option<Arming>,
    put_off: u32,
    /// They were told what to do.
    is_prepared: bool,
    /// When the measured run starts.
    run_start: Option<Instant>,
    stops: bool,
    interrupts: bool,
    says: VecDeque<(usize, ToAgent)>,
    events: VecDeque<Event>,
    failure: Option<Failure>,
    /// The intervals that the agents have told.
    gathering: Gathering,
    /// Those of each group, if they are shown.
    groups: Option<Gathering>,
    checkpoints: Checkpoints,
}

/// A start that agents were asked for.
#[derive(Debug)]
struct Arming {
    start: Instant,
    /// If not all have said by then that they can, it is put off.
    decides: Instant,
}

/// Where the intervals of an agent are gathered: as those of one worker.
fn place(agent: usize) -> (usize, usize) {
    (agent, 0)
}

impl Lead {
    /// Of agents at these places; `own` is who the lead is, if some are on other hosts.
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
        }
    }

    /// Of the same agents, for the next run.
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

    /// Who the agents of other hosts are.
    pub fn hellos(&self) -> impl Iterator<Item = &Hello> {
        self.links.iter().filter_map(|link| link.hello.as_ref())
    }

    /// Where each agent is, whether more is expected of it, and whether it was lost.
    pub fn agents(&self) -> impl Iterator<Item = (&Place, bool, bool)> {
        let each = self.links.iter();
        each.map(|link| (&link.place, link.is_at_work(), link.state == State::Lost))
    }

    /// True while that agent has yet to say who it is.
    pub fn is_greeting(&self, agent: usize) -> bool {
        self.links[agent].state == State::Greeting
    }

    /// All agents have been sent what to do ([`ToAgent::Setup`], which whoever carries messages
    /// encodes once for all). `shape` is the run.
    pub fn prepare(&mut self, shape: RunShape) {
        (self.shape, self.is_prepared) = (shape, true);
        let (agents, groups) = (self.links.len(), self.shape.plans.len());
        let can_be_shown = (2..=GROUPS_SHOWN_MAX).contains(&groups);
        if self.shape.shows_groups && can_be_shown && agents * groups <= GROUP_INTERVALS_MAX {
            let places = (0..agents).flat_map(|agent| (0..groups).map(move |it| (agent, it)));
            self.groups = Some(Gathering::at(places, groups));
            self.say_to_all(|| ToAgent::ShowGroups);
        }
    }

    /// An agent says something, which was read at `now`.
    pub fn hear(&mut self, agent: usize, message: FromAgent, now: Instant) {
        self.links[agent].silence = Duration::ZERO;
        if self.failure.is_some() || !self.links[agent].is_at_work() {
            // What a lost agent had said before is of no use any more.
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
            // They have come in the same messages.
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

    /// Nothing more comes from an agent that is to be gathered.
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
            FromAgent::Failed(told) => return Err(Why::Told(told)),
            FromAgent::Listening(_) | FromAgent::Counters(_) => {
                return unexpected("what a responder says");
            }
        }
        Ok(())
    }

    /// A part of a long message has been written to an agent, or has come from it.
    pub fn moves(&mut self, agent: usize) {
        let link = &mut self.links[agent];
        (link.silence, link.stalled) = (Duration::ZERO, Duration::ZERO);
    }

    /// Nothing more comes from an agent: so ended its process, or what carried its messages.
    pub fn gone(&mut self, agent: usize, how: String, now: Instant) {
        if self.failure.is_some() || !self.links[agent].is_at_work() {
            return;
        }
        let why = match self.links[agent].is_leaving {
            true => Why::Left,
            false => Why::Ended(how),
        };
        self.lose(agent, why, now);
    }

    /// All are to end early, and report. Before the start there is nothing to report.
    pub fn stop(&mut self) {
        if self.run_start.is_none() {
            return self.fail(0, Why::Stopped);
        }
        if !std::mem::replace(&mut self.stops, true) {
            self.say_to_all(|| ToAgent::Stop);
        }
    }

    /// The same, and to wait for open queries for a second at most.
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

    /// The time goes on: to be called every 20 ms at least.
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

    /// Time in which the lead was stopped itself does not count.
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
            if silence > SILENCE_MAX {
                self.lose(agent, Why::Silent(silence), now);
            } else if stalled > stalled_max {
                self.lose(agent, Why::Stalled(stalled), now);
            }
        }
    }

    /// For how long an agent may end no interval: at the end it waits for responses.
    fn stalled_max(&self) -> Duration {
        let each = self.shape.plans.iter();
        let longest = each.map(|plan| plan.interval.max(plan.timeout)).max();
        SILENCE_MAX + 2 * longest.unwrap_or_default()
    }

    fn is_ready(&self) -> bool {
        let mut links = self.links.iter();
        links.all(|link| !matches!(link.state, State::Greeting | State::Preparing))
    }

    /// Asks all whether they can start at an instant, and at a later one if not all can.
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

    /// Once all have said that they can start, they do: all at the same instant of the lead's
    /// clock, each by its own clock.
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

    /// An agent says nothing more, though its run is not over.
    fn lose(&mut self, agent: usize, why: Why, now: Instant) {
        let has_result = self.checkpoints.is_there() && self.shape.on_loss != OnAgentLoss::Fail;
        let Some(run_start) = self.run_start.filter(|_| has_result) else {
            self.fail(agent, why);
            return;
        };
        let link = &mut self.links[agent];
        link.state = State::Lost;
        let noticed_ns = now.nanos_since(run_start);
        // One of another host goes on until it misses its lead.
        let goes_on = match (&link.place, &why) {
            (_, Why::Left) | (Place::Here, _) => Duration::ZERO,
            (Place::Host(_), _) => DEAD_MAN + STOP_MAX,
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

    /// Why there is no result, if that is so.
    pub fn failure(&self) -> Option<&Failure> {
        self.failure.as_ref()
    }

    /// True if nothing more is expected.
    pub fn is_over(&self) -> bool {
        self.failure.is_some() || !self.links.iter().any(LeadLink::is_at_work)
    }

    /// What is to be said next, and to which agent. The question for a clock is to have the instant
    /// at which it is written.
    pub fn poll_message(&mut self) -> Option<(usize, ToAgent)> {
        self.says.pop_front()
    }

    /// What has come about.
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

    /// What the agents have measured together, once it is over; if some were lost, what all had
    /// until their last checkpoint.
    ///
    /// # Errors
    /// What one has said cannot be read, or there is no result.
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
        Ok(Outcome {
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
        // What agents say meanwhile is of no use.
        lead.hear(
            1,
            FromAgent::Record(RawValue::from_string("{}".to_owned()).unwrap()),
            Instant::ZERO,
        );
        assert!(lead.is_over());
        assert!(lead.finish(Instant::ZERO).is_err());
    }
}
