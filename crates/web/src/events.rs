//! Rendered snapshots as server-sent events: the newest are in a ring that all browsers share.
//!
//! A browser has a position in it and takes what follows when its connection has room. One that
//! reads too slowly continues with the newest event, which says how many it has missed.

use std::collections::VecDeque;
use std::fmt::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;

use crate::fragments::Fragment;

/// Most events that can be resumed from: two minutes of intervals of 1 s.
pub const EVENTS_MAX: usize = 120;
/// Most bytes of them together, but for the newest.
const BYTES_MAX: usize = 8 << 20;

/// What a browser gets after its position.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cursor {
    /// The number of the event that it had last; none of one that has had none.
    after: Option<u64>,
    /// It has had everything that there was, once since it came.
    has_caught_up: bool,
    /// It has had the last event of all.
    has_end: bool,
}

impl Cursor {
    pub(crate) fn new(after: Option<u64>) -> Cursor {
        Cursor {
            after,
            ..Cursor::default()
        }
    }
}

#[derive(Debug, Default)]
struct Ring {
    events: VecDeque<(u64, Bytes)>,
    bytes: usize,
    /// The number of the newest event that has left the ring.
    evicted: u64,
    newest: u64,
    fragments: Vec<Fragment>,
    /// Charts of the runs that are over, in no event.
    earlier: Bytes,
    /// The last event of all.
    end: Option<Bytes>,
    /// Of tasks that wait for a change: one for each stream.
    wakers: Vec<Waker>,
}

/// What the thread that renders hands to the thread that sends.
#[derive(Debug, Default)]
pub(crate) struct Hub(Mutex<Ring>);

impl Hub {
    fn ring(&self) -> MutexGuard<'_, Ring> {
        // Nothing panics while it is held, and the ring is whole at any time.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the fragments of a snapshot, unless the end was there before.
    pub(crate) fn push(&self, number: u64, fragments: Vec<Fragment>) {
        let event = encode(number, &fragments);
        let mut ring = self.ring();
        if ring.end.is_some() {
            return;
        }
        ring.add(number, event);
        ring.fragments = fragments;
        ring.wake();
    }

    /// Adds the last event: the report, if there is one.
    pub(crate) fn end(&self, report: Option<&str>) {
        let event = match report {
            Some(report) => encode_text("report", report),
            None => encode_text("end", "end"),
        };
        let mut ring = self.ring();
        ring.end.get_or_insert(event);
        ring.wake();
    }

    /// Replaces the charts of the runs that are over. The next event says that there are others.
    pub(crate) fn set_earlier(&self, earlier: String) {
        self.ring().earlier = earlier.into();
    }

    /// Charts of the runs that are over.
    pub(crate) fn earlier(&self) -> Bytes {
        self.ring().earlier.clone()
    }

    /// The newest fragments and the number of their snapshot.
    pub(crate) fn newest(&self) -> (Vec<Fragment>, u64) {
        let ring = self.ring();
        (ring.fragments.clone(), ring.newest)
    }

    /// The next event for a browser, after what it has missed of them; none after the last.
    pub(crate) fn poll_next(
        &self,
        cursor: &mut Cursor,
        context: &Context<'_>,
    ) -> Poll<Option<Bytes>> {
        let mut ring = self.ring();
        match ring.next(cursor) {
            Poll::Ready(next) => Poll::Ready(next),
            Poll::Pending => {
                ring.note(context);
                Poll::Pending
            }
        }
    }
}

impl Ring {
    fn add(&mut self, number: u64, event: Bytes) {
        self.newest = number;
        self.bytes += event.len();
        self.events.push_back((number, event));
        let is_full = |ring: &Ring| {
            let count = ring.events.len();
            count > EVENTS_MAX || (count > 1 && ring.bytes > BYTES_MAX)
        };
        while is_full(self)
            && let Some((number, event)) = self.events.pop_front()
        {
            self.bytes -= event.len();
            self.evicted = number;
        }
    }

    fn next(&self, cursor: &mut Cursor) -> Poll<Option<Bytes>> {
        if cursor.has_end {
            return Poll::Ready(None);
        }
        // One that comes from an earlier command on this address has seen nothing of this one.
        let after = cursor.after.filter(|after| *after <= self.newest);
        let is_too_slow = after.is_some_and(|after| cursor.has_caught_up && after < self.evicted);
        let next = match after {
            Some(after) if !is_too_slow => self.events.iter().find(|(number, _)| *number > after),
            _ => self.events.back(),
        };
        let Some((number, event)) = next else {
            cursor.has_caught_up = true;
            let end = self.end.clone();
            cursor.has_end = end.is_some();
            return end.map_or(Poll::Pending, |end| Poll::Ready(Some(end)));
        };
        let missed = after.map_or(0, |after| number - after - 1);
        cursor.after = Some(*number);
        cursor.has_caught_up |= *number == self.newest;
        Poll::Ready(Some(match missed {
            0 => event.clone(),
            _ => with_missed(missed, event),
        }))
    }

    /// Wakes the task at the next change.
    fn note(&mut self, context: &Context<'_>) {
        let is_known = |waker: &Waker| waker.will_wake(context.waker());
        if !self.wakers.iter().any(is_known) {
            self.wakers.push(context.waker().clone());
        }
    }

    fn wake(&mut self) {
        self.wakers.drain(..).for_each(Waker::wake);
    }
}

/// Lines of one event: its data come first, so that more of them can stand before it.
fn encode(number: u64, fragments: &[Fragment]) -> Bytes {
    let mut text = String::new();
    for Fragment { id, html } in fragments {
        let part = format!("<div id=\"{id}\">{html}</div>");
        data(&mut text, &part);
    }
    let _ = write!(text, "id: {number}\n\n");
    text.into()
}

fn encode_text(name: &str, content: &str) -> Bytes {
    let mut text = format!("event: {name}\n");
    data(&mut text, content);
    text.push('\n');
    text.into()
}

fn data(text: &mut String, content: &str) {
    for line in content.split(['\n', '\r']) {
        let _ = writeln!(text, "data: {line}");
    }
}

fn with_missed(missed: u64, event: &Bytes) -> Bytes {
    let note = format!("data: <p id=\"missed\" data-count=\"{missed}\">{missed}</p>\n");
    [note.as_bytes(), event].concat().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fragment(html: &str) -> Vec<Fragment> {
        vec![Fragment {
            id: "counts",
            html: html.to_owned(),
        }]
    }

    fn hub(count: u64) -> Hub {
        let hub = Hub::default();
        (1..=count).for_each(|number| hub.push(number, fragment("x")));
        hub
    }

    /// Numbers of the events that a browser gets at once, each with what it has missed before.
    fn numbers(hub: &Hub, cursor: &mut Cursor) -> Vec<(u64, u64)> {
        let context = Context::from_waker(Waker::noop());
        let mut numbers = Vec::new();
        while let Poll::Ready(Some(event)) = hub.poll_next(cursor, &context) {
            let text = String::from_utf8(event.to_vec()).unwrap();
            let number = |start: &str| {
                let found = text.split(start).nth(1)?;
                let digits = found.split(|it: char| !it.is_ascii_digit()).next()?;
                digits.parse::<u64>().ok()
            };
            let missed = number("data-count=\"").unwrap_or(0);
            numbers.extend(number("\nid: ").map(|it| (it, missed)));
        }
        numbers
    }

    #[test]
    fn browser_begins_with_the_newest_and_gets_each_that_follows_once() {
        let hub = hub(5);
        let mut cursor = Cursor::new(None);
        assert_eq!(numbers(&hub, &mut cursor), [(5, 0)]);
        hub.push(6, fragment("y"));
        hub.push(7, fragment("z"));
        assert_eq!(numbers(&hub, &mut cursor), [(6, 0), (7, 0)]);
        assert_eq!(numbers(&hub, &mut cursor), []);
    }

    #[test]
    fn browser_that_resumes_gets_all_that_the_ring_holds_and_what_it_has_missed() {
        let most = EVENTS_MAX as u64;
        let hub = hub(most + 10);
        let resumed = numbers(&hub, &mut Cursor::new(Some(most)));
        let expected: Vec<(u64, u64)> = (most + 1..=most + 10).map(|it| (it, 0)).collect();
        assert_eq!(resumed, expected);
        let resumed = numbers(&hub, &mut Cursor::new(Some(4)));
        assert_eq!((resumed.len(), resumed[0]), (EVENTS_MAX, (11, 6)));
        assert!(resumed[1..].iter().all(|(_, missed)| *missed == 0));
        // A number that this command has not reached yet is one of another command.
        let other = numbers(&hub, &mut Cursor::new(Some(9_999)));
        assert_eq!(other, [(most + 10, 0)]);
    }

    #[test]
    fn browser_that_reads_too_slowly_continues_with_the_newest() {
        let hub = hub(1);
        let mut cursor = Cursor::new(None);
        assert_eq!(numbers(&hub, &mut cursor), [(1, 0)]);
        let newest = EVENTS_MAX as u64 + 20;
        (2..=newest).for_each(|number| hub.push(number, fragment("x")));
        assert_eq!(numbers(&hub, &mut cursor), [(newest, newest - 2)]);
    }

    #[test]
    fn ring_is_bounded_in_bytes() {
        let hub = Hub::default();
        let large = "x".repeat(BYTES_MAX / 4);
        (1..=20).for_each(|number| hub.push(number, fragment(&large)));
        let ring = hub.ring();
        assert!(ring.events.len() < 4, "{}", ring.events.len());
        assert!(ring.bytes <= BYTES_MAX);
    }

    #[test]
    fn report_comes_after_all_events_and_nothing_after_it() {
        let hub = hub(2);
        let mut cursor = Cursor::new(Some(1));
        hub.end(Some("<h1>a</h1>\r\n<p>b"));
        hub.push(3, fragment("late"));
        let context = Context::from_waker(Waker::noop());
        let mut events = Vec::new();
        while let Poll::Ready(Some(event)) = hub.poll_next(&mut cursor, &context) {
            events.push(String::from_utf8(event.to_vec()).unwrap());
        }
        assert_eq!(events.len(), 2);
        assert!(events[0].contains("\nid: 2\n"));
        assert_eq!(
            events[1],
            "event: report\ndata: <h1>a</h1>\ndata: \ndata: <p>b\n\n"
        );
        assert_eq!(hub.poll_next(&mut cursor, &context), Poll::Ready(None));
    }

    #[test]
    fn line_feeds_of_a_fragment_do_not_end_its_event() {
        let event = encode(3, &fragment("a\n\nid: 9\n\nb"));
        let text = String::from_utf8(event.to_vec()).unwrap();
        assert_eq!(text.matches("\n\n").count(), 1, "{text}");
        assert!(text.contains("data: id: 9\n"));
    }
}
