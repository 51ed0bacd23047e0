//! The agent's side.

use std::collections::VecDeque;
use std::time::Duration;

use proto::Instant;
use serde_json::Value;

use crate::inputs::{Incoming, Inputs, Part};
use crate::message::{AgentError, FromAgent, ToAgent};
use crate::seats::Refusal;
use crate::{BEAT_EVERY, DeadMan};

/// How long an agent keeps reading before it considers its lead gone. It is the last part of the
/// allowed silence. After a pause of the agent or of its host the agent reads for this long again,
/// because a lead on the same host needs time to get a CPU.
const LAST_LOOK: Duration = Duration::from_secs(2);
/// By how much the order to start may be late. An agent that begins then is behind its schedule, as
/// one that is stopped later in its run is, and its record says so: first queries that left late.
const LATE_MAX: Duration = Duration::from_secs(1);
/// How long it waits for its lead while it sends no queries: for its setup, which the lead sends
/// once all agents have been started, and for the start.
const IDLE_MAX: Duration = Duration::from_secs(120);

/// An order for an agent.
#[derive(Debug, PartialEq)]
pub enum Order {
    /// It has dialled its lead and takes part in the run, with this number.
    Seated {
        /// Its number, from 0.
        index: u32,
        /// How many agents there are.
        count: u32,
    },
    /// It has dialled its lead, which refused it.
    Refused(Refusal),
    /// Prepare this setup, with these inputs.
    Setup(Value, Inputs),
    /// Send the intervals of each group too.
    ShowGroups,
    /// Start at this instant of its own clock.
    StartAt(Instant),
    /// Send nothing from this instant of its own clock on, unless a later order says otherwise: its
    /// lead may consider it lost by then.
    PauseAt(Instant),
    /// End early, and report.
    Stop,
    /// The same, and wait for open queries for a second at most.
    Interrupt,
    /// The same as `Stop`, because no query was answered.
    GiveUp,
    /// Its record was sent: further orders belong to the next run.
    RunOver,
    /// There is no further run: the process ends.
    End,
    /// Stop sending at once, and end with this reason's exit code.
    Abandon(Abandoned),
}

/// Why an agent ends early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Abandoned {
    /// It has received nothing from its lead for too long.
    Unheard,
    /// It received the start order after the start.
    Late,
}

impl Abandoned {
    /// The exit code of the agent's process.
    pub fn exit_code(self) -> i32 {
        match self {
            Abandoned::Unheard => 97,
            Abandoned::Late => 98,
        }
    }

    /// The reason for this exit code of an agent's process.
    pub fn of_exit_code(code: i32) -> Option<Abandoned> {
        let mut all = [Abandoned::Unheard, Abandoned::Late].into_iter();
        all.find(|it| it.exit_code() == code)
    }
}

/// An agent's side of the connection with its lead: messages and instants go in; messages, orders
/// and the next deadline come out.
#[derive(Debug)]
pub struct AgentLink {
    dead_man: DeadMan,
    /// When the lead last sent something.
    heard: Instant,
    /// The longest allowed silence of the lead; none if there is no limit.
    silence_max: Option<Duration>,
    /// Until when it keeps reading, since its lead seems to be gone.
    looks_until: Option<Instant>,
    /// When it last sent a heartbeat, since its setup.
    beaten: Option<Instant>,
    /// The start that it has confirmed, until the lead orders it.
    armed: Option<Instant>,
    incoming: Incoming,
    /// It has a run, from its setup to its record.
    has_run: bool,
    is_leaving: bool,
    is_over: bool,
    says: VecDeque<FromAgent>,
    orders: VecDeque<Order>,
}

impl AgentLink {
    /// An agent that waits for its setup.
    pub fn new(now: Instant, dead_man: DeadMan) -> Self {
        AgentLink {
            dead_man,
            heard: now,
            silence_max: Some(IDLE_MAX),
            looks_until: None,
            beaten: None,
            armed: None,
            incoming: Incoming::default(),
            has_run: false,
            is_leaving: false,
            is_over: false,
            says: VecDeque::new(),
            orders: VecDeque::new(),
        }
    }

    /// Handles a message of the lead that was read at `now`.
    pub fn hear(&mut self, message: ToAgent, now: Instant) {
        if self.is_over {
            return;
        }
        self.moves(now);
        match message {
            ToAgent::Seated { index, count } => {
                self.orders.push_back(Order::Seated { index, count });
            }
            ToAgent::Refused(refusal) => self.orders.push_back(Order::Refused(refusal)),
            ToAgent::Input(part) => self.take(part),
            ToAgent::Forget => self.incoming.forget(),
            ToAgent::Setup(setup) => self.prepare(setup, Some(IDLE_MAX), now),
            ToAgent::Serve(setup) => self.prepare(setup, None, now),
            ToAgent::Clock { asked_ns, heard_ns } => {
                if let Some(heard_ns) = heard_ns {
                    let until = Instant::from_nanos(heard_ns) + self.dead_man.pauses;
                    self.of_run(Order::PauseAt(until));
                }
                self.say(FromAgent::Clock {
                    asked_ns,
                    theirs_ns: now.as_nanos(),
                });
            }
            ToAgent::ShowGroups => self.of_run(Order::ShowGroups),
            ToAgent::Beat => {}
            ToAgent::Arm { at_ns } => self.arm(at_ns, now),
            ToAgent::Go { at_ns } => self.start(Instant::from_nanos(at_ns), now),
            ToAgent::Stop => self.of_run(Order::Stop),
            ToAgent::Interrupt => self.of_run(Order::Interrupt),
            ToAgent::GiveUp => self.of_run(Order::GiveUp),
            ToAgent::End => self.orders.push_back(Order::End),
        }
    }

    /// Drops orders sent before the lead had its record: they must not reach the next run.
    fn of_run(&mut self, order: Order) {
        if self.has_run {
            self.orders.push_back(order);
        }
    }

    /// Records that part of a long message has come.
    pub fn moves(&mut self, now: Instant) {
        (self.heard, self.looks_until) = (now, None);
    }

    fn take(&mut self, part: Part) {
        if let Err(what) = self.incoming.take(part) {
            self.say(FromAgent::Failed(AgentError {
                what,
                hint: None,
                code: 1,
            }));
        }
    }

    fn prepare(&mut self, setup: Value, silence_max: Option<Duration>, now: Instant) {
        (self.silence_max, self.beaten, self.has_run) = (silence_max, Some(now), true);
        self.say(FromAgent::Beat);
        let inputs = self.incoming.whole();
        self.orders.push_back(Order::Setup(setup, inputs));
    }

    fn arm(&mut self, at_ns: u64, now: Instant) {
        let at = Instant::from_nanos(at_ns);
        self.armed = Some(at).filter(|at| *at > now);
        self.say(match self.armed {
            Some(_) => FromAgent::Armed { at_ns },
            None => late(at, now),
        });
    }

    /// Once it has confirmed, a late order is the same as a stopped agent; all queries of a long
    /// time at once would be another load.
    fn start(&mut self, at: Instant, now: Instant) {
        self.armed = None;
        match now < at + LATE_MAX {
            true => {
                self.silence_max = Some(self.dead_man.ends);
                self.orders.push_back(Order::StartAt(at));
            }
            false => {
                self.say(late(at, now));
                self.abandon(Abandoned::Late);
            }
        }
    }

    /// Sends a message.
    pub fn say(&mut self, message: FromAgent) {
        if self.is_over {
            return;
        }
        let is_record = matches!(message, FromAgent::Record(_));
        self.says.push_back(message);
        if is_record {
            self.wait_for_next();
        }
    }

    /// Ends its run. Until the next one it sends nothing, because the lead may not be reading.
    fn wait_for_next(&mut self) {
        (self.silence_max, self.beaten) = (Some(IDLE_MAX), None);
        (self.armed, self.has_run) = (None, false);
        self.orders.push_back(Order::RunOver);
        if self.is_leaving {
            self.orders.push_back(Order::End);
        }
    }

    /// Its host asks this agent to end (SIGTERM): it sends its lead what it has measured.
    pub fn leave(&mut self) {
        self.is_leaving = true;
        self.say(FromAgent::Leaving);
        self.orders.push_back(Order::Interrupt);
    }

    /// Its lead does not read its messages.
    pub fn overflow(&mut self) {
        self.abandon(Abandoned::Unheard);
    }

    /// Handles the passing of time.
    pub fn pass(&mut self, now: Instant) {
        if self.is_over {
            return;
        }
        if let Some(at) = self.armed.take_if(|at| now >= *at + LATE_MAX) {
            // The other agents have started if the lead considers this one able to.
            self.say(late(at, now));
        }
        match (self.silence_max, self.looks_until) {
            (_, Some(until)) if now >= until => self.abandon(Abandoned::Unheard),
            // Messages that came while this process was stopped have yet to be read.
            (Some(most), None) if now >= self.heard + (most - LAST_LOOK) => {
                self.looks_until = Some(now + LAST_LOOK);
            }
            _ => {}
        }
        if self.beaten.is_some_and(|at| now >= at + BEAT_EVERY) {
            self.beaten = Some(now);
            self.say(FromAgent::Beat);
        }
    }

    /// Ends the agent. It sends nothing more, so that its lead considers it lost.
    fn abandon(&mut self, why: Abandoned) {
        if std::mem::replace(&mut self.is_over, true) {
            return;
        }
        self.orders.push_back(Order::Abandon(why));
    }

    /// When [`AgentLink::pass`] is to be called next, at the latest.
    pub fn next_due(&self) -> Instant {
        if self.is_over {
            return Instant::FAR_FUTURE;
        }
        let most = self.silence_max.map(|most| self.heard + (most - LAST_LOOK));
        let looks = self.looks_until.or(most);
        let beats = self.beaten.map(|at| at + BEAT_EVERY);
        let starts = self.armed.map(|at| at + LATE_MAX);
        let each = looks.into_iter().chain(beats).chain(starts);
        each.min().unwrap_or(Instant::FAR_FUTURE)
    }

    /// The next message to its lead.
    pub fn poll_message(&mut self) -> Option<FromAgent> {
        self.says.pop_front()
    }

    /// The next order.
    pub fn poll_order(&mut self) -> Option<Order> {
        self.orders.pop_front()
    }
}

fn late(at: Instant, now: Instant) -> FromAgent {
    FromAgent::Late {
        at_ns: at.as_nanos(),
        now_ns: now.as_nanos(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use serde_json::value::RawValue;

    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn orders(link: &mut AgentLink) -> Vec<Order> {
        std::iter::from_fn(|| link.poll_order()).collect()
    }

    fn says(link: &mut AgentLink) -> usize {
        std::iter::from_fn(|| link.poll_message()).count()
    }

    /// Gives it a run that begins now.
    fn begin(link: &mut AgentLink, now: Instant) {
        let at_ns = now.as_nanos();
        link.hear(ToAgent::Setup(Value::Null), now);
        link.hear(ToAgent::Go { at_ns }, now);
        let setup = Order::Setup(Value::Null, Inputs::default());
        assert_eq!(orders(link), [setup, Order::StartAt(now)]);
    }

    #[test]
    fn an_agent_that_hears_nothing_stops() {
        let mut link = AgentLink::new(at(0), DeadMan::FAR);
        link.pass(at(60_000));
        assert_eq!((orders(&mut link), says(&mut link)), (vec![], 0));
        let mut serves = AgentLink::new(at(0), DeadMan::FAR);
        serves.hear(ToAgent::Serve(Value::Null), at(1));
        serves.pass(at(100_000));
        serves.pass(at(200_000));
        assert_eq!(
            orders(&mut serves),
            [Order::Setup(Value::Null, Inputs::default())]
        );
        begin(&mut link, at(60_000));
        let mut now = at(60_000);
        while now < at(90_000) {
            link.pass(now);
            now = link.next_due();
        }
        assert_eq!(orders(&mut link), []);
        // Twice a second, and once at its setup.
        assert_eq!(says(&mut link), 1 + 59);
        assert_eq!(now, at(90_000));
        link.pass(now);
        assert_eq!(orders(&mut link), [Order::Abandon(Abandoned::Unheard)]);
        link.hear(ToAgent::Stop, at(91_000));
        link.say(FromAgent::Vain);
        assert_eq!((orders(&mut link), says(&mut link)), (vec![], 0));
    }

    /// On its lead's host it is more patient, and before the start everywhere: there it sends no
    /// queries.
    #[test]
    fn an_agent_waits_longer_on_its_leads_host_and_before_the_start() {
        let silence = |link: &mut AgentLink| {
            let mut now = at(0);
            while orders(link) != [Order::Abandon(Abandoned::Unheard)] {
                now = link.next_due();
                link.pass(now);
            }
            now
        };
        let mut here = AgentLink::new(at(0), DeadMan::HERE);
        begin(&mut here, at(0));
        assert_eq!(silence(&mut here), at(60_000));
        let mut prepares = AgentLink::new(at(0), DeadMan::FAR);
        prepares.hear(ToAgent::Setup(Value::Null), at(0));
        orders(&mut prepares);
        assert_eq!(silence(&mut prepares), at(120_000));
    }

    /// Each question says how long it may send: not how late it was read.
    #[test]
    fn an_agent_pauses_after_the_last_answer_that_its_lead_has_read() {
        let mut link = AgentLink::new(at(0), DeadMan::FAR);
        let question = |heard_ns| ToAgent::Clock {
            asked_ns: 0,
            heard_ns,
        };
        // It has no run yet.
        link.hear(question(Some(1_000_000)), at(1));
        link.hear(ToAgent::Setup(Value::Null), at(2));
        link.hear(question(None), at(500));
        orders(&mut link);
        link.hear(question(Some(500_000_000)), at(1_000));
        link.hear(question(Some(1_000_000_000)), at(61_000));
        assert_eq!(
            orders(&mut link),
            [Order::PauseAt(at(10_500)), Order::PauseAt(at(11_000))]
        );
    }

    /// Having been stopped for a minute, it finds the messages that its lead has sent meanwhile.
    #[test]
    fn an_agent_that_was_stopped_looks_once_more() {
        let mut link = AgentLink::new(at(0), DeadMan::FAR);
        begin(&mut link, at(0));
        // It gets the CPU before its lead does.
        for now in [60_000, 60_500, 61_900] {
            link.pass(at(now));
        }
        link.hear(ToAgent::Beat, at(61_999));
        link.pass(at(89_900));
        assert_eq!(orders(&mut link), []);
    }

    #[test]
    fn a_start_that_is_long_past_is_refused() {
        let mut link = AgentLink::new(at(0), DeadMan::FAR);
        // The lead tries a later start.
        link.hear(ToAgent::Arm { at_ns: 10_000_000 }, at(25));
        assert!(matches!(link.poll_message(), Some(FromAgent::Late { .. })));
        assert_eq!(orders(&mut link), []);
        let at_ns = 100_000_000;
        link.hear(ToAgent::Arm { at_ns }, at(30));
        assert!(matches!(link.poll_message(), Some(FromAgent::Armed { .. })));
        // The others have begun.
        link.hear(ToAgent::Go { at_ns }, at(1_100));
        assert!(matches!(link.poll_message(), Some(FromAgent::Late { .. })));
        assert_eq!(orders(&mut link), [Order::Abandon(Abandoned::Late)]);
        for heard in [99, 101, 1_099] {
            let mut link = AgentLink::new(at(0), DeadMan::FAR);
            link.hear(ToAgent::Arm { at_ns }, at(30));
            link.pass(at(heard));
            link.hear(ToAgent::Go { at_ns }, at(heard));
            assert_eq!(orders(&mut link), [Order::StartAt(at(100))], "{heard}");
            assert_eq!(says(&mut link), 1, "{heard}");
        }
    }

    #[test]
    fn an_agent_does_one_run_after_the_other() {
        let mut link = AgentLink::new(at(0), DeadMan::FAR);
        let mut inputs = Inputs::default();
        inputs.add(Arc::new(b"names".to_vec()));
        for part in inputs.messages(&BTreeSet::new()) {
            link.hear(part, at(0));
        }
        let record = || RawValue::from_string("{}".to_owned()).unwrap();
        for run in 0..2 {
            let now = at(200_000 * run);
            link.hear(ToAgent::Setup(Value::Null), now);
            let setup = Order::Setup(Value::Null, inputs.clone());
            assert_eq!(orders(&mut link), [setup]);
            link.hear(ToAgent::Stop, now);
            assert_eq!(orders(&mut link), [Order::Stop]);
            link.say(FromAgent::Record(record()));
            assert_eq!(orders(&mut link), [Order::RunOver]);
            says(&mut link);
            // These were on their way when the record was sent.
            for stale in [ToAgent::Stop, ToAgent::Interrupt, ToAgent::GiveUp] {
                link.hear(stale, now);
            }
            // The lead is busy otherwise, and sends heartbeats.
            for beat in 1..200 {
                link.hear(ToAgent::Beat, now + Duration::from_secs(beat));
                link.pass(now + Duration::from_secs(beat));
            }
            assert_eq!((orders(&mut link), says(&mut link)), (vec![], 0));
        }
        link.hear(ToAgent::Forget, at(400_000));
        link.hear(ToAgent::Setup(Value::Null), at(400_000));
        let forgotten = Order::Setup(Value::Null, Inputs::default());
        assert_eq!(orders(&mut link), [forgotten]);
        link.say(FromAgent::Record(record()));
        link.hear(ToAgent::End, at(400_001));
        assert_eq!(orders(&mut link), [Order::RunOver, Order::End]);
        // An agent whose lead sends nothing ends.
        let next = link.next_due();
        assert_eq!(next, at(400_001) + (IDLE_MAX - LAST_LOOK));
        link.pass(next);
        assert_eq!(link.next_due(), at(400_001) + IDLE_MAX);
        link.pass(link.next_due());
        assert_eq!(orders(&mut link), [Order::Abandon(Abandoned::Unheard)]);
    }
}
