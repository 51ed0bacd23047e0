use std::cell::Cell;
use std::time::Duration;

use super::slot::SPREAD;
use super::*;

thread_local! {
    /// Slots that this thread has scanned for the oldest query.
    static STEPS: Cell<u64> = const { Cell::new(0) };
}

pub(super) fn count_steps(steps: u64) {
    STEPS.set(STEPS.get() + steps);
}

fn at(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

/// Message IDs start at `id_offset`.
fn starting_at(id_offset: u16) -> Pending {
    let mut pending = Pending::default();
    pending.start_ids(id_offset);
    pending
}

/// Says of each query sent when it was scheduled, and whether it is sent again.
fn send_oldest(pending: &mut Pending, queries: u32, now: Instant) -> Vec<(Instant, bool)> {
    let mut sent = Vec::new();
    pending.send_oldest(queries, now, |alike, scheduled_at, is_repeated| {
        sent.extend((0..alike).map(|_| (scheduled_at, is_repeated)));
    });
    sent
}

fn send_one(pending: &mut Pending, now: Instant) -> Query {
    assert!(pending.submit(now, Question::plain(7)));
    let query = pending.next_waiting().unwrap();
    send_oldest(pending, 1, now);
    pending.find(query.id).unwrap()
}

#[test]
fn trail_of_a_query_is_its_own_and_moves_with_it() {
    let mut pending = starting_at(7);
    pending.keep_trails();
    let submit = |pending: &mut Pending| {
        assert!(pending.submit(Instant::ZERO, Question::plain(0)));
        pending.newest()
    };
    let first = submit(&mut pending);
    let position = pending.numbered(first).unwrap().position;
    pending.set_trail(position, Trail::default().then(2).then(0));
    // The ring grows several times.
    let others: Vec<u32> = (0..100).map(|_| submit(&mut pending)).collect();
    let trail = |number: u32| pending.trail(pending.numbered(number).unwrap().position);
    assert_eq!((trail(first).attempts, trail(first).server), (2, 0));
    assert!(trail(first).has_asked(2) && !trail(first).has_asked(1));
    assert!(others.iter().all(|other| trail(*other) == Trail::default()));
    // Without trails none is kept.
    let mut plain = starting_at(7);
    let number = submit(&mut plain);
    let position = plain.numbered(number).unwrap().position;
    plain.set_trail(position, Trail::default().then(1));
    assert_eq!(plain.trail(position), Trail::default());
}

#[test]
fn queries_that_wait_are_shown_and_sent_from_the_oldest_on() {
    let mut pending = starting_at(3);
    assert_eq!(send_oldest(&mut pending, 1, at(0)), []);
    let first = send_one(&mut pending, at(1));
    for ms in 2..=4 {
        assert!(pending.submit(at(ms), Question::plain(ms as u32)));
    }
    pending.requeue(first.position);
    let shown = |pending: &mut Pending, most: usize| {
        let waiting = pending.waiting_queries(most);
        waiting
            .map(|query| query.question.template)
            .collect::<Vec<u32>>()
    };
    assert_eq!(shown(&mut pending, 9), [7, 2, 3, 4]);
    assert_eq!(shown(&mut pending, 2), [7, 2]);
    let newest = |most| pending.newest_waiting(most).collect::<Vec<Instant>>();
    assert_eq!(newest(2), [at(4), at(3)]);
    assert_eq!(newest(9), [at(4), at(3), at(2), at(1)]);
    assert_eq!(newest(0), []);
    let sent = send_oldest(&mut pending, 2, at(5));
    assert_eq!(sent, [(at(1), true), (at(2), false)]);
    assert_eq!((pending.waiting(), pending.in_flight()), (2, 2));
    assert_eq!(pending.oldest_in_flight().unwrap().sent_at, at(1));
    // Of those behind, one is given up before it is sent.
    let third = pending.next_waiting().unwrap();
    pending.end(third.position, State::Lost);
    assert_eq!(shown(&mut pending, 9), [4]);
    assert_eq!(send_oldest(&mut pending, 9, at(6)), [(at(4), false)]);
    assert_eq!((pending.waiting(), pending.in_flight()), (0, 3));
    assert!(shown(&mut pending, 9).is_empty());
}

#[test]
fn only_a_query_in_flight_is_found_to_be_answered() {
    let mut pending = starting_at(4711);
    assert!(pending.find_in_flight(1).is_none());
    let query = send_one(&mut pending, at(1));
    let found = pending.find_in_flight(query.id).unwrap();
    assert_eq!(found.question(), query.question);
    assert_eq!(found.answer(), (at(1), at(1)));
    assert_eq!(pending.in_flight(), 0);
    assert!(pending.find_in_flight(query.id).is_none());
    assert_eq!(pending.find(query.id).unwrap().state, State::Answered);
    assert!(pending.submit(at(2), Question::plain(1)));
    let waiting = pending.next_waiting().unwrap().id;
    assert!(pending.find_in_flight(waiting).is_none());
}

#[test]
fn multiplier_has_an_inverse() {
    assert_eq!(SPREAD.wrapping_mul(UNSPREAD), 1);
}

#[test]
fn a_sent_query_is_found_by_its_id_and_by_no_other() {
    let mut pending = starting_at(4711);
    let query = send_one(&mut pending, at(1));
    assert_eq!(query.state, State::InFlight);
    assert_eq!(query.question.template, 7);
    let others = (0..=u16::MAX).filter(|id| *id != query.id);
    assert_eq!(others.filter(|id| pending.find(*id).is_some()).count(), 0);
}

#[test]
fn a_query_taken_back_is_the_next_to_be_sent_and_times_out_as_if_it_had_not_been() {
    let mut pending = starting_at(0);
    let first = send_one(&mut pending, at(1));
    let second = send_one(&mut pending, at(2));
    assert!(pending.submit(at(3), Question::plain(8)));
    pending.requeue(first.position);
    assert_eq!((pending.waiting(), pending.in_flight()), (2, 1));
    assert_eq!(
        pending.oldest_in_flight().unwrap().position,
        second.position
    );
    let next = pending.next_waiting().unwrap();
    assert_eq!((next.position, next.sent_at), (first.position, at(1)));
    assert_eq!(
        pending.next_waiting_after(next).unwrap().question.template,
        8
    );
    send_oldest(&mut pending, 1, at(4));
    assert_eq!(pending.oldest_in_flight().unwrap().sent_at, at(1));
    let timeout = Duration::from_millis(5);
    let expired = pending.expired(at(6), timeout).unwrap();
    assert_eq!(expired.position, first.position);
}

#[test]
fn an_answered_query_is_remembered_so_that_a_duplicate_is_seen() {
    let mut pending = starting_at(0);
    let query = send_one(&mut pending, at(1));
    pending.end(query.position, State::Answered);
    assert_eq!(pending.find(query.id).unwrap().state, State::Answered);
    assert_eq!(pending.in_flight(), 0);
}

#[test]
fn ids_do_not_repeat_within_65536_queries() {
    let mut pending = starting_at(99);
    let mut seen = vec![false; 65_536];
    for _ in 0..65_536 {
        let query = send_one(&mut pending, at(1));
        assert!(!std::mem::replace(&mut seen[usize::from(query.id)], true));
        pending.end(query.position, State::Answered);
    }
}

#[test]
fn an_open_query_is_skipped_while_others_come_and_go() {
    let mut pending = starting_at(1);
    let lost = send_one(&mut pending, at(0));
    for ms in 1..200_000 {
        let query = send_one(&mut pending, at(ms));
        assert_ne!(query.id, lost.id);
        pending.end(query.position, State::Answered);
    }
    assert_eq!(pending.oldest_in_flight().unwrap().id, lost.id);
    let timeout = Duration::from_secs(5);
    assert_eq!(pending.poll_timeout(timeout), Some(at(5_000)));
    assert_eq!(pending.expired(at(4_999), timeout), None);
    assert_eq!(pending.expired(at(5_000), timeout).unwrap().id, lost.id);
}

#[test]
fn at_most_open_max_queries_are_open() {
    let mut pending = starting_at(1);
    for _ in 0..OPEN_MAX {
        send_one(&mut pending, at(0));
    }
    assert!(!pending.submit(at(0), Question::plain(0)));
    let oldest = pending.oldest_in_flight().unwrap();
    pending.end(oldest.position, State::TimedOut);
    assert!(pending.submit(at(0), Question::plain(0)));
}

#[test]
fn time_outs_come_in_the_order_of_sending_and_reach_waiting_queries_too() {
    let mut pending = starting_at(5);
    let first = send_one(&mut pending, at(10));
    assert!(pending.submit(at(2), Question::plain(1)));
    let timeout = Duration::from_millis(100);
    assert_eq!(pending.poll_timeout(timeout), Some(at(102)));
    let waiting = pending.expired(at(102), timeout).unwrap();
    assert_eq!(waiting.state, State::Waiting);
    pending.end(waiting.position, State::Lost);
    assert_eq!(pending.poll_timeout(timeout), Some(at(110)));
    pending.end(first.position, State::TimedOut);
    assert_eq!(pending.poll_timeout(timeout), None);
}

#[test]
fn search_for_the_oldest_query_takes_few_steps_a_query_however_many_came_since() {
    let timeout = Duration::from_secs(5);
    // One query of every `lost` is lost, of the `each_ms` that a client sends each millisecond.
    for (each_ms, lost) in [(30, 100), (30, 2), (200, 10), (200, 2)] {
        let mut pending = starting_at(5);
        STEPS.set(0);
        let mut asked = 0_u64;
        for ms in 0..7_000 {
            while let Some(query) = pending.expired(at(ms), timeout) {
                pending.end(query.position, State::TimedOut);
            }
            let due = pending.poll_timeout(timeout);
            assert!(due.is_none_or(|due| due > at(ms)));
            for _ in 0..each_ms {
                if !pending.submit(at(ms), Question::plain(0)) {
                    continue;
                }
                asked += 1;
                let position = pending.next_waiting().unwrap().position;
                send_oldest(&mut pending, 1, at(ms));
                if !asked.is_multiple_of(lost) {
                    pending.end(position, State::Answered);
                }
            }
        }
        let (steps, numbers) = (STEPS.get(), u64::from(pending.next));
        assert!(
            steps < 4 * (numbers + 7_000),
            "{steps} for {numbers} numbers"
        );
    }
}

#[test]
fn a_query_that_timed_out_is_remembered_while_others_come_and_go() {
    let mut pending = starting_at(77);
    let lost: Vec<u16> = (0..TIMED_OUT_MAX)
        .map(|_| {
            let query = send_one(&mut pending, at(0));
            pending.end(query.position, State::TimedOut);
            query.id
        })
        .collect();
    for ms in 1..200_000 {
        let query = send_one(&mut pending, at(ms));
        pending.end(query.position, State::Answered);
    }
    for id in &lost {
        assert_eq!(pending.find(*id).unwrap().state, State::TimedOut);
    }
    // One more, and the first is forgotten: its slot is free for others.
    let query = send_one(&mut pending, at(200_000));
    pending.end(query.position, State::TimedOut);
    assert_eq!(pending.find(lost[0]).unwrap().state, State::Lost);
    assert_eq!(pending.find(lost[1]).unwrap().state, State::TimedOut);
}

#[test]
fn queries_that_timed_out_make_room_when_all_others_are_open() {
    let mut pending = starting_at(1);
    for _ in 0..TIMED_OUT_MAX {
        let query = send_one(&mut pending, at(0));
        pending.end(query.position, State::TimedOut);
    }
    let mut ids: Vec<u16> = (0..OPEN_MAX)
        .map(|_| send_one(&mut pending, at(0)).id)
        .collect();
    assert!(!pending.submit(at(0), Question::plain(0)));
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), OPEN_MAX as usize);
    // All message IDs are taken but a few: those of the open queries, and those kept for late
    // responses.
    assert_eq!(pending.timed_out.len(), 65_536 - SPARE - ids.len());
}

#[test]
fn ids_of_queries_that_timed_out_last_are_not_given_to_others_when_all_are_taken() {
    let mut pending = starting_at(3);
    for _ in 0..OPEN_MAX {
        send_one(&mut pending, at(0));
    }
    let mut lost = Vec::new();
    // A target that answers nothing: each query that times out makes room for one.
    for ms in 0..100_000 {
        let oldest = pending.oldest_in_flight().unwrap();
        pending.end(oldest.position, State::TimedOut);
        lost.push(oldest.id);
        let query = send_one(&mut pending, at(ms));
        let kept = &lost[lost.len().saturating_sub(TIMED_OUT_MAX - SPARE)..];
        assert!(ms % 1_000 != 0 || !kept.contains(&query.id), "{ms}");
        assert_eq!(pending.find(oldest.id).unwrap().state, State::TimedOut);
    }
    assert!(!pending.submit(at(0), Question::plain(0)));
}

proptest::proptest! {
    #[test]
    fn behaves_like_a_list_of_open_queries(
        actions in proptest::collection::vec(0..100u8, 1..2_000),
    ) {
        let mut pending = starting_at(31_337);
        let mut model: Vec<(u16, u64)> = Vec::new();
        for (step, action) in actions.into_iter().enumerate() {
            let now = step as u64;
            if action < 55 || model.is_empty() {
                let query = send_one(&mut pending, at(now));
                proptest::prop_assert!(model.iter().all(|(id, _)| *id != query.id));
                model.push((query.id, now));
            } else {
                let (id, sent) = model.remove(usize::from(action) % model.len());
                let query = pending.find(id).unwrap();
                proptest::prop_assert_eq!(query.sent_at, at(sent));
                pending.end(query.position, State::Answered);
            }
            let oldest = pending.oldest_in_flight().map(|query| query.sent_at);
            proptest::prop_assert_eq!(oldest, model.first().map(|(_, sent)| at(*sent)));
            proptest::prop_assert_eq!(pending.in_flight() as usize, model.len());
        }
    }
}
