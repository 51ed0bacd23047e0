//! A lane in virtual time: order, times, chances and counts.

use proptest::prelude::*;

use super::*;

const MILLISECOND: u64 = 1_000_000;

/// An IPv4 packet to one receiver, with a number in it.
fn packet(number: u32, octets: usize) -> Vec<u8> {
    let mut packet = vec![0; octets.max(24)];
    packet[0] = 0x45;
    packet[16..20].copy_from_slice(&[10, 98, 0, 2]);
    packet[20..24].copy_from_slice(&number.to_be_bytes());
    packet
}

fn number_in(packet: &[u8]) -> u32 {
    u32::from_be_bytes(packet[20..24].try_into().unwrap())
}

fn ns(nanos: u64) -> Instant {
    Instant::from_nanos(nanos)
}

/// Number in the packet, and when it left, of all packets of a lane that come at these instants.
fn passed(asked: Impairment, seed: u64, arrivals: &[(u64, usize)]) -> (Vec<(u32, u64)>, Direction) {
    let mut lane = Lane::new(asked, seed);
    let mut left = Vec::new();
    let mut deliver = |lane: &mut Lane, until: Instant| {
        while let Some(at) = lane.poll_timeout().filter(|at| *at <= until) {
            let departure = lane.poll_transmit(at).unwrap();
            assert_eq!(departure.due, at);
            left.push((number_in(&departure.packet), at.as_nanos()));
            lane.handle_delivered(&departure, at);
        }
    };
    for (number, (at, octets)) in (0..).zip(arrivals) {
        let at = ns(*at);
        deliver(&mut lane, at);
        lane.handle_packet(at, at, &packet(number, *octets));
    }
    deliver(&mut lane, Instant::FAR_FUTURE);
    (left, lane.account(0))
}

/// `packets` packets of 100 octets, one each microsecond.
fn steady(packets: u64) -> Vec<(u64, usize)> {
    (0..packets).map(|number| (number * 1_000, 100)).collect()
}

#[test]
fn each_packet_takes_the_delay_and_nothing_else_by_default() {
    let asked = Impairment {
        delay_ns: 10 * MILLISECOND,
        ..Impairment::default()
    };
    let (left, counted) = passed(asked, 1, &steady(1_000));
    let expected: Vec<(u32, u64)> = (0..1_000)
        .map(|number| (number, u64::from(number) * 1_000 + 10 * MILLISECOND))
        .collect();
    assert_eq!(left, expected);
    assert_eq!((counted.packets, counted.octets), (1_000, 100_000));
    assert_eq!((counted.delivered, counted.overtaken), (1_000, 0));
    assert_eq!(counted.late.max_ns(), Some(0));
}

#[test]
fn chances_of_a_packet_follow_from_seed_and_number_alone() {
    let asked = Impairment {
        loss: 0.1,
        jitter_ns: MILLISECOND,
        ..Impairment::default()
    };
    let kept = |asked, seed, arrivals: &[(u64, usize)]| {
        let (left, _) = passed(asked, seed, arrivals);
        left.iter().map(|(number, _)| *number).collect::<Vec<_>>()
    };
    let once = kept(asked, 7, &steady(10_000));
    // Other instants, lengths and jitter: the same are lost.
    let slower: Vec<(u64, usize)> = (0..10_000).map(|it| (it * 77_777, 60)).collect();
    let no_jitter = Impairment {
        jitter_ns: 0,
        ..asked
    };
    assert_eq!(once, kept(no_jitter, 7, &slower));
    assert_ne!(once, kept(asked, 8, &steady(10_000)));
    // Within five standard deviations of what was asked for.
    assert!(once.len().abs_diff(9_000) < 150, "{}", once.len());
    // Far apart, no packet waits for the one before, and the jitter is as it was drawn.
    let apart: Vec<(u64, usize)> = (0..1_000).map(|it| (it * MILLISECOND * 10, 60)).collect();
    let jitters = |arrivals: &[(u64, usize)]| -> Vec<u64> {
        let (left, _) = passed(asked, 7, arrivals);
        let of = |(number, at): &(u32, u64)| at - arrivals[*number as usize].0;
        left.iter().map(of).collect()
    };
    let later: Vec<(u64, usize)> = apart.iter().map(|(at, _)| (at * 3 + 5, 900)).collect();
    assert_eq!(jitters(&apart), jitters(&later));
    let mean = jitters(&apart).iter().sum::<u64>() / jitters(&apart).len() as u64;
    assert!(mean.abs_diff(MILLISECOND / 2) < MILLISECOND / 20, "{mean}");
}

#[test]
fn a_rate_sends_one_packet_after_the_other_and_a_full_queue_drops_and_counts() {
    // 100 octets take 1 ms.
    let asked = Impairment {
        rate_bps: Some(800_000),
        queue: 3,
        ..Impairment::default()
    };
    let together: Vec<(u64, usize)> = vec![(0, 100); 10];
    let (left, counted) = passed(asked, 1, &together);
    // The first is being sent, three wait.
    let times: Vec<(u32, u64)> = (0..4)
        .map(|it| (it, u64::from(it + 1) * MILLISECOND))
        .collect();
    assert_eq!(left, times);
    assert_eq!((counted.lost.queue_full, counted.lost.total()), (6, 6));
    // As many as the rate allows: none waits, also without a place to do so.
    let in_time: Vec<(u64, usize)> = (0..100).map(|it| (it * MILLISECOND, 100)).collect();
    let no_queue = Impairment { queue: 0, ..asked };
    assert_eq!(passed(no_queue, 1, &in_time).1.lost.total(), 0);
    assert_eq!(passed(no_queue, 1, &together).1.lost.queue_full, 9);
}

#[test]
fn packets_that_are_held_back_are_overtaken_and_counted() {
    let asked = Impairment {
        delay_ns: MILLISECOND,
        reorder: 0.1,
        reorder_by_ns: 10_500,
        ..Impairment::default()
    };
    let (left, counted) = passed(asked, 3, &steady(10_000));
    assert_eq!(left.len(), 10_000);
    assert!(counted.held_back.abs_diff(1_000) < 150);
    // Ten come within the time that one is held back; not one of these was passed by all.
    assert!(counted.overtaken > 0 && counted.overtaken <= counted.held_back);
    let unordered = left.windows(2).filter(|pair| pair[0].0 > pair[1].0);
    assert!(unordered.count() > 0);
}

#[test]
fn what_is_under_way_has_a_limit_which_is_counted() {
    let asked = Impairment {
        delay_ns: 1_000 * MILLISECOND,
        ..Impairment::default()
    };
    let mut lane = Lane::new(asked, 1);
    let fit = 20;
    lane.held_octets_max = fit * (100 + OVERHEAD_OCTETS);
    for _ in 0..fit + 5 {
        lane.handle_packet(ns(0), ns(0), &packet(0, 100));
    }
    let counted = lane.account(2);
    assert_eq!(counted.lost.too_much_under_way, 5);
    assert_eq!((counted.under_way, counted.not_read), (fit as u64, 2));
    assert!(counted.adds_up());
}

#[test]
fn multicast_and_what_is_no_packet_is_not_carried_and_has_no_number() {
    let mut lane = Lane::new(Impairment::default(), 1);
    let mut ipv6 = vec![0_u8; 40];
    ipv6[0] = 0x60;
    ipv6[24] = 0xfd;
    let mut report = ipv6.clone();
    report[24] = 0xff;
    let mut broadcast = packet(0, 40);
    broadcast[16] = 255;
    for octets in [&report[..], &broadcast, &[], &[0x45], &[0; 60], &[0x60; 24]] {
        lane.handle_packet(ns(0), ns(0), octets);
    }
    lane.handle_packet(ns(0), ns(5), &ipv6);
    let departure = lane.poll_transmit(ns(5)).unwrap();
    assert_eq!((departure.number, departure.due), (0, ns(5)));
    lane.handle_refused();
    let counted = lane.account(0);
    assert_eq!((counted.not_carried, counted.packets), (6, 1));
    assert_eq!(
        (counted.unread.max_ns(), counted.lost.refused),
        (Some(5), 1)
    );
}

fn impairment() -> impl Strategy<Value = Impairment> {
    let times = (0..20 * MILLISECOND, 0..20 * MILLISECOND, 0..5 * MILLISECOND);
    let shares = (0.0..=1.0_f64, 0.0..=0.5_f64, 0.0..=1.0_f64);
    let rate = (proptest::option::of(10_000..100_000_000_u64), 0..20_u64);
    (times, shares, rate).prop_map(|(times, shares, rate)| Impairment {
        delay_ns: times.0,
        jitter_ns: times.1,
        loss: shares.0,
        reorder: shares.1,
        reorder_by_ns: times.2,
        duplicate: shares.2,
        rate_bps: rate.0,
        queue: rate.1,
    })
}

proptest! {
    #[test]
    fn everything_is_counted_once_and_none_is_early_or_out_of_order(
        asked in impairment(),
        seed: u64,
        gaps in proptest::collection::vec((0..3 * MILLISECOND, 24..1_500_usize), 0..200),
    ) {
        let mut at = 0;
        let arrivals: Vec<(u64, usize)> = gaps
            .iter()
            .map(|(gap, octets)| {
                at += gap;
                (at, *octets)
            })
            .collect();
        let (left, counted) = passed(asked, seed, &arrivals);
        prop_assert!(counted.adds_up(), "{counted:?}");
        prop_assert_eq!(counted.packets, arrivals.len() as u64);
        prop_assert_eq!(counted.delivered, left.len() as u64);
        prop_assert_eq!(counted.under_way, 0);
        for (number, at) in &left {
            prop_assert!(*at >= arrivals[*number as usize].0 + asked.delay_ns);
        }
        let again = passed(asked, seed, &arrivals);
        prop_assert_eq!(&again.0, &left);
        let in_order = Impairment { reorder: 0.0, ..asked };
        let (left, counted) = passed(in_order, seed, &arrivals);
        prop_assert!(left.windows(2).all(|pair| pair[0].0 <= pair[1].0));
        prop_assert_eq!((counted.overtaken, counted.held_back), (0, 0));
    }
}
