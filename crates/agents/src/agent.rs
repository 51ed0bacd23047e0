//! The agent's side.

use std::collections::VecDeque;
use std::time::Duration;

use proto::Instant;
use serde_json::Value;

use crate::BEAT_EVERY;
use crate::inputs::{Incoming, Inputs, Part};
use crate::message::{FromAgent, ToAgent, Told};
use crate::seats::Refusal;

/// How long an agent still looks for a word of its lead before it takes the lead for gone: the end
/// of the silence that is allowed, and as much again after a pause of the agent or of its whole
/// host, in which a lead on the same host has to get the CPU first.
const LAST_LOOK: Duration = Duration::from_secs(2);
/// For how long it waits for what it is to do while its lead says nothing: that is said when all
/// agents have been started.
const SETUP_MAX: Duration = Duration::from_secs(120);

/// What an agent is to do.
#[derive(Debug, PartialEq)]
pub enum Order {
    /// It has dialled and has a part in the run.
    Seated {
        /// Its number, from 0.
        index: u32,
        /// How many agents there are.
        count: u32,
    },
    /// It has dialled, and has none.
    Refused(Refusal),
    /// Prepare this, with what there is to read.
    Setup(Value, Inputs),
    /// Send the intervals of each group too.
    ShowGroups,
    /// Start at that instant of its own clock.
    StartAt(Instant),
    /// End early, and report.
    Stop,
    /// The same, and wait for open queries for a second at most.
    Interrupt,
    /// The same as `Stop`, because nothing was answered.
    GiveUp,
    /// Its record was said: what follows is of the next run.
    RunOver,
    /// There is no further run: the process ends.
    End,
    /// Stop sending at once, and end with the exit code of this.
    Abandon(Abandoned),
}

/// Why an agent does not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Abandoned {
    /// It has heard nothing from its lead for too long.
    Unheard,
    /// It has heard of the start when that was over.
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

    /// What this exit code of an agent's process means.
    pub fn of_exit_code(code: i32) -> Option<Abandoned> {
        let mut all = [Abandoned::Unheard, Abandoned::Late].into_iter();
        all.find(|it| it.exit_code() == code)
    }
}

/// An agent's side of the connection with its lead: messages and instants go in; messages, orders
/// and the instant of the next call come out.
#[derive(Debug)]
pub struct AgentLink {
    /// For how long it goes on in a run without a word of its lead.
    dead_man: Duration,
    /// When the lead was heard last.
    heard: Instant,
    /// For how long it may say nothing; none if it may for ever.
    silence_max: Option<Duration>,
    /// Until when it looks once more, since its lead seems to be gone.
    looks_until: Option<Instant>,
    /// When it said last that it is there, once it knows what to do.
    beaten: Option<Instant>,
    /// When it could start, and has yet to hear whether it does.
    armed: Option<Instant>,
    incoming: Incoming,
    /// It has a run to do, from its setup to its record.
    has_run: bool,
    is_leaving: bool,
    is_over: bool,
    says: VecDeque<FromAgent>,
    orders: VecDeque<Order>,
}

impl AgentLink {
    /// An agent that has yet to hear what to do. In a run it goes on for `dead_man` without a word
    /// of its lead: [`crate::DEAD_MAN`], or [`crate::DEAD_MAN_HERE`].
    pub fn new(now: Instant, dead_man: Duration) -> Self {
        AgentLink {
            dead_man,
            heard: now,
            silence_max: Some(SETUP_MAX),
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

    /// The lead says something, which was read at `now`.
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
            ToAgent::Setup(setup) => self.prepare(setup, Some(self.dead_man), now),
            ToAgent::Serve(setup) => self.prepare(setup, None, now),
            ToAgent::Clock { asked_ns } => self.say(FromAgent::Clock {
                asked_ns,
                theirs_ns: now.as_nanos(),
            }),
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

    /// What was said before its record had come must not reach the next run.
    fn of_run(&mut self, order: Order) {
        if self.has_run {
            self.orders.push_back(order);
        }
    }

    /// A part of a long message has come.
    pub fn moves(&mut self, now: Instant) {
        (self.heard, self.looks_until) = (now, None);
    }

    fn take(&mut self, part: Part) {
        if let Err(what) = self.incoming.take(part) {
            self.say(FromAgent::Failed(Told {
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

    /// One that begins in its past would send all at once that was due meanwhile.
    fn start(&mut self, at: Instant, now: Instant) {
        self.armed = None;
        match at > now {
            true => self.orders.push_back(Order::StartAt(at)),
            false => {
                self.say(late(at, now));
                self.abandon(Abandoned::Late);
            }
        }
    }

    /// Says something.
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

    /// Its run is over. Until the next one it says nothing: it may be that the lead reads nothing.
    fn wait_for_next(&mut self) {
        (self.silence_max, self.beaten) = (Some(SETUP_MAX), None);
        (self.armed, self.has_run) = (None, false);
        self.orders.push_back(Order::RunOver);
        if self.is_leaving {
            self.orders.push_back(Order::End);
        }
    }

    /// Its own host asks this agent to end (SIGTERM): its lead gets what it has measured.
    pub fn leave(&mut self) {
        self.is_leaving = true;
        self.say(FromAgent::Leaving);
        self.orders.push_back(Order::Interrupt);
    }

    /// Its lead does not take what it says.
    pub fn overflow(&mut self) {
        self.abandon(Abandoned::Unheard);
    }

    /// The time goes on.
    pub fn pass(&mut self, now: Instant) {
        if self.is_over {
            return;
        }
        if let Some(at) = self.armed.take_if(|at| now >= *at) {
            // The others have begun, if its lead thinks that it has.
            self.say(late(at, now));
        }
        match (self.silence_max, self.looks_until) {
            (_, Some(until)) if now >= until => self.abandon(Abandoned::Unheard),
            // What was said while this process was stopped has yet to be read.
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

    /// It says nothing more: its lead takes it for lost.
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
        let each = looks.into_iter().chain(beats).chain(self.armed);
        each.min().unwrap_or(Instant::FAR_FUTURE)
    }

    /// What it has to say next.
    pub fn poll_message(&mut self) -> Option<FromAgent> {
        self.says.pop_front()
    }

    /// What it is to do next.
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
    use crate::{DEAD_MAN, DEAD_MAN_HERE};

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn orders(link: &mut AgentLink) -> Vec<Order> {
        std::iter::from_fn(|| link.poll_order()).collect()
    }

    fn says(link: &mut AgentLink) -> usize {
        std::iter::from_fn(|| link.poll_message()).count()
    }

    #[test]
    fn an_agent_that_hears_nothing_stops() {
        let mut link = AgentLink::new(at(0), DEAD_MAN);
        link.pass(at(60_000));
        assert_eq!((orders(&mut link), says(&mut link)), (vec![], 0));
        let mut serves = AgentLink::new(at(0), DEAD_MAN);
        serves.hear(ToAgent::Serve(Value::Null), at(1));
        serves.pass(at(100_000));
        serves.pass(at(200_000));
        assert_eq!(
            orders(&mut serves),
            [Order::Setup(Value::Null, Inputs::default())]
        );
        link.hear(ToAgent::Setup(Value::Null), at(60_000));
        assert_eq!(
            orders(&mut link),
            [Order::Setup(Value::Null, Inputs::default())]
        );
        let mut now = at(60_000);
        while now < at(70_000) {
            link.pass(now);
            now = link.next_due();
        }
        assert_eq!(orders(&mut link), []);
        // Twice a second, and when it was told what to do.
        assert_eq!(says(&mut link), 1 + 19);
        assert_eq!(now, at(70_000));
        link.pass(now);
        assert_eq!(orders(&mut link), [Order::Abandon(Abandoned::Unheard)]);
        link.hear(ToAgent::Stop, at(71_000));
        link.say(FromAgent::Vain);
        assert_eq!((orders(&mut link), says(&mut link)), (vec![], 0));
    }

    /// On its lead's host it is more patient.
    #[test]
    fn an_agent_goes_on_for_as_long_as_is_said() {
        let mut link = AgentLink::new(at(0), DEAD_MAN_HERE);
        link.hear(ToAgent::Setup(Value::Null), at(0));
        let setup = Order::Setup(Value::Null, Inputs::default());
        let mut now = at(0);
        while now < at(60_000) {
            link.pass(now);
            now = link.next_due();
        }
        assert_eq!(orders(&mut link), [setup]);
        link.pass(now);
        assert_eq!(orders(&mut link), [Order::Abandon(Abandoned::Unheard)]);
    }

    /// Stopped for a minute itself, it finds what its lead has said meanwhile.
    #[test]
    fn an_agent_that_was_stopped_looks_once_more() {
        let mut link = AgentLink::new(at(0), DEAD_MAN);
        link.hear(ToAgent::Setup(Value::Null), at(0));
        // It gets the CPU before its lead does.
        for now in [60_000, 60_500, 61_900] {
            link.pass(at(now));
        }
        link.hear(ToAgent::Beat, at(61_999));
        link.pass(at(69_900));
        assert_eq!(
            orders(&mut link),
            [Order::Setup(Value::Null, Inputs::default())]
        );
    }

    #[test]
    fn a_start_in_the_past_is_refused() {
        let mut link = AgentLink::new(at(0), DEAD_MAN);
        // There is another try.
        link.hear(ToAgent::Arm { at_ns: 10_000_000 }, at(25));
        assert!(matches!(link.poll_message(), Some(FromAgent::Late { .. })));
        assert_eq!(orders(&mut link), []);
        let at_ns = 100_000_000;
        link.hear(ToAgent::Arm { at_ns }, at(30));
        assert!(matches!(link.poll_message(), Some(FromAgent::Armed { .. })));
        // The others have begun.
        link.hear(ToAgent::Go { at_ns }, at(101));
        assert!(matches!(link.poll_message(), Some(FromAgent::Late { .. })));
        assert_eq!(orders(&mut link), [Order::Abandon(Abandoned::Late)]);
        let mut link = AgentLink::new(at(0), DEAD_MAN);
        link.hear(ToAgent::Go { at_ns }, at(99));
        assert_eq!(orders(&mut link), [Order::StartAt(at(100))]);
    }
    #[test]
    fn an_agent_does_one_run_after_the_other() {
        let mut link = AgentLink::new(at(0), DEAD_MAN);
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
            // It was on its way when the record was said.
            for stale in [ToAgent::Stop, ToAgent::Interrupt, ToAgent::GiveUp] {
                link.hear(stale, now);
            }
            // The lead is at something else, and says now and then that it is there.
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
        // One whose lead says nothing at all ends.
        let next = link.next_due();
        assert_eq!(next, at(400_001) + (SETUP_MAX - LAST_LOOK));
        link.pass(next);
        assert_eq!(link.next_due(), at(400_001) + SETUP_MAX);
        link.pass(link.next_due());
        assert_eq!(orders(&mut link), [Order::Abandon(Abandoned::Unheard)]);
    }
}
