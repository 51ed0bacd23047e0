//! What a delay line did as text: a column a direction.

use std::fmt::Write;

use measure::line::{Direction, Impairment, Line};
use measure::notation::{bit_rate, chosen_fraction, count, latency, seconds, share};

use crate::table::{Align, Table};

/// The whole result, ending in a line break.
pub fn text(line: &Line) -> String {
    let [near, far] = &line.between;
    let mut text = format!("Line between {near} and {far}\n");
    let mut table = Table::new([Align::Left, Align::Right, Align::Right]);
    table.row(["".into(), format!("to {far}"), format!("to {near}")]);
    let directions = [&line.to_far, &line.to_near];
    for row in ROWS {
        let [to_far, to_near] = directions.map(|direction| (row.cell)(direction));
        let is_shown = row.is_always || to_far.is_some() || to_near.is_some();
        if is_shown {
            let none = || "-".to_owned();
            let cells = [to_far, to_near].map(|cell| cell.unwrap_or_else(none));
            let [to_far, to_near] = cells;
            table.row([row.label.into(), to_far, to_near]);
        }
    }
    table.write_to(&mut text);
    let _ = writeln!(
        text,
        "  one thread for {}: {} of a CPU used, {} of the time waited for one; seed {}",
        seconds(line.duration_ns),
        share(line.cpu_ns, line.duration_ns),
        share(line.cpu_waited_ns, line.duration_ns),
        line.seed
    );
    text
}

/// What is asked of both directions, in few words: `10.00 ms each way, 1 % lost`.
pub fn asked([to_far, to_near]: [&Impairment; 2]) -> String {
    match to_far == to_near {
        true => format!("{} each way{}", delay(to_far), others(to_far)),
        false => format!(
            "there {}{}, back {}{}",
            delay(to_far),
            others(to_far),
            delay(to_near),
            others(to_near)
        ),
    }
}

fn delay(asked: &Impairment) -> String {
    latency(asked.delay_ns as f64)
}

fn others(asked: &Impairment) -> String {
    let jitter = (asked.jitter_ns > 0).then(|| format!("jitter {}", time(asked.jitter_ns)));
    let chance = |share: f64, what: &str| {
        let is_any = share > 0.0;
        is_any.then(|| format!("{} {what}", chosen_fraction(share)))
    };
    let each = [
        jitter,
        chance(asked.loss, "lost"),
        chance(asked.reorder, "held back"),
        chance(asked.duplicate, "twice"),
        asked.rate_bps.map(|rate| bit_rate(rate as f64)),
    ];
    each.into_iter()
        .flatten()
        .map(|it| format!(", {it}"))
        .collect()
}

/// A row of the table; a cell is none where there is nothing to say.
struct Row {
    label: &'static str,
    is_always: bool,
    cell: fn(&Direction) -> Option<String>,
}

const fn always(label: &'static str, cell: fn(&Direction) -> Option<String>) -> Row {
    Row {
        label,
        is_always: true,
        cell,
    }
}

const fn if_any(label: &'static str, cell: fn(&Direction) -> Option<String>) -> Row {
    Row {
        label,
        is_always: false,
        cell,
    }
}

const ROWS: [Row; 24] = [
    always("delay", |it| Some(time(it.asked.delay_ns))),
    if_any("jitter", |it| some_time(it.asked.jitter_ns)),
    if_any("loss", |it| chance(it.asked.loss)),
    if_any("reorder", |it| chance(it.asked.reorder)),
    if_any("duplicate", |it| chance(it.asked.duplicate)),
    if_any("rate", |it| {
        it.asked.rate_bps.map(|rate| bit_rate(rate as f64))
    }),
    always("packets", |it| Some(count(it.packets))),
    always("delivered", |it| Some(count(it.delivered))),
    always("lost as specified", |it| Some(count(it.lost.asked_for))),
    if_any("lost, queue full", |it| some(it.lost.queue_full)),
    if_any("lost, too much in transit", |it| {
        some(it.lost.too_much_under_way)
    }),
    if_any("lost, refused by the interface", |it| some(it.lost.refused)),
    if_any("lost, not read in time", |it| some(it.not_read)),
    if_any("duplicated", |it| some(it.duplicated)),
    if_any("held back", |it| some(it.held_back)),
    if_any("overtaken", |it| some(it.overtaken)),
    if_any("under way at the end", |it| some(it.under_way)),
    if_any("multicast, not carried", |it| some(it.not_carried)),
    always("late by p50", |it| it.late.percentile(0.5).map(time)),
    always("late by p99", |it| it.late.percentile(0.99).map(time)),
    always("late by at most", |it| it.late.max_ns().map(time)),
    if_any("unread for up to, p50", |it| {
        it.unread.percentile(0.5).map(time)
    }),
    if_any("unread for up to, p99", |it| {
        it.unread.percentile(0.99).map(time)
    }),
    if_any("unread for at most", |it| it.unread.max_ns().map(time)),
];

fn time(ns: u64) -> String {
    latency(ns as f64)
}

fn some_time(ns: u64) -> Option<String> {
    (ns > 0).then(|| time(ns))
}

fn some(number: u64) -> Option<String> {
    (number > 0).then(|| count(number))
}

fn chance(share: f64) -> Option<String> {
    (share > 0.0).then(|| chosen_fraction(share))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_was_asked_what_it_lost_and_how_late_it_was() {
        let asked_for = Impairment {
            delay_ns: 10_000_000,
            loss: 0.01,
            ..Impairment::default()
        };
        let mut to_far = Direction::new(asked_for);
        (to_far.packets, to_far.delivered) = (1_000, 988);
        (to_far.lost.asked_for, to_far.under_way) = (10, 2);
        to_far.late.record(11_000);
        let to_near = Direction::new(Impairment {
            loss: 0.0,
            ..asked_for
        });
        assert_eq!(
            asked([&to_far.asked, &to_near.asked]),
            "there 10.00 ms, 1 % lost, back 10.00 ms"
        );
        let line = Line {
            between: ["near", "far"].map(str::to_owned),
            seed: 7,
            duration_ns: 2_000_000_000,
            cpu_ns: 500_000_000,
            cpu_waited_ns: 0,
            to_far,
            to_near,
        };
        assert_eq!(
            text(&line),
            "Line between near and far\n\
             \x20                         to far   to near\n\
             \x20 delay                 10.00 ms  10.00 ms\n\
             \x20 loss                       1 %         -\n\
             \x20 packets                  1,000         0\n\
             \x20 delivered                  988         0\n\
             \x20 lost as specified           10         0\n\
             \x20 under way at the end         2         -\n\
             \x20 late by p50           11.00 us         -\n\
             \x20 late by p99           11.00 us         -\n\
             \x20 late by at most       11.00 us         -\n\
             \x20 one thread for 2.0 s: 25.00 % of a CPU used, 0 % of the time waited for one; \
             seed 7\n"
        );
    }
}
