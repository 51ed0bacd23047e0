//! The report on one run.

use measure::counts::rcode_name;
use measure::notation::{
    count, counted, decimal, gibibytes, latency, per_second, percent, rate, seconds, share,
};
use measure::scenario::DriverKind;
use measure::{Histogram, HostFacts, RunRecord};

use crate::document::{Banner, Block, Column, Document, Section, Sheet, Tile};
use crate::over_time::Timeline;
use crate::text::figures;
use crate::{agents, distributions, instances, remarks, servers, targets, text};

/// The report on one run, which `file` keeps.
pub(crate) fn document(record: &RunRecord, file: &str) -> Document {
    let mut sections: Vec<Section> = charts(record, "")
        .map(|section| fold_level(record, section))
        .unwrap_or_default();
    let tables = [
        outcome(record, ""),
        latencies(record, ""),
        path(record, ""),
        rcodes(record, ""),
        targets::sheet(record, ""),
        instances::sheet(record, ""),
    ];
    sections.push(Section::new("Result", tables.map(Block::Sheet).into()));
    sections.extend(clients(record, ""));
    sections.extend(connections(record, ""));
    sections.extend(servers::section(record, ""));
    sections.push(generator(record, ""));
    for section in &mut sections {
        section.blocks.retain(|block| match block {
            Block::Sheet(sheet) => !sheet.rows.is_empty(),
            Block::Chart(_) | Block::Note(_) => true,
        });
    }
    sections.retain(|section| !section.blocks.is_empty());
    Document {
        title: title(record),
        subtitle: subtitle(record),
        tiles: tiles(record),
        verdict: Some(banner(record)),
        conclusions: Vec::new(),
        remarks: remarks::of_run(record),
        sections,
        colophon: format!(
            "Made by throng {} from {file}, measured by throng {} at {}.",
            env!("CARGO_PKG_VERSION"),
            record.throng_version,
            record.started_at
        ),
    }
}

/// `DNS over TLS to ns1.example`, as a reader of a report calls it.
pub(crate) fn title(record: &RunRecord) -> String {
    let scenario = &record.scenario;
    let target = match (&scenario.server_name, record.self_test) {
        (_, true) => "the built-in responder".to_owned(),
        (_, false) if !record.targets.is_empty() => targets::names(record),
        (Some(name), false) => name.clone(),
        (None, false) => scenario.target.clone(),
    };
    let kind = match record.driver {
        DriverKind::Sim => "Simulated load",
        DriverKind::Epoll | DriverKind::Uring | DriverKind::Xdp => "Load",
    };
    format!(
        "{kind} on {target} over {}",
        transport(&scenario.transport.to_string())
    )
}

/// A transport as people write it.
pub(crate) fn transport(name: &str) -> &str {
    match name {
        "udp" => "UDP",
        "tcp" => "TCP",
        "dot" => "DoT",
        "doh2" => "DoH (HTTP/2)",
        "doh3" => "DoH (HTTP/3)",
        "doq" => "DoQ",
        "mixed" => "several transports",
        other => other,
    }
}

fn subtitle(record: &RunRecord) -> String {
    let scenario = &record.scenario;
    let mut parts = vec![
        record.started_at.clone(),
        seconds(record.measured_ns),
        text::load(&scenario.arrival),
        counted(scenario.clients, "client"),
    ];
    if !scenario.labels.is_empty() {
        parts.push(text::labels(scenario));
    }
    parts.join(" \u{b7} ")
}

fn tiles(record: &RunRecord) -> Vec<Tile> {
    let total = &record.total;
    let lost = total.counts.lost();
    let p = |share| {
        let value = total.distributions.latency.percentile(share);
        value.map_or_else(|| "-".to_owned(), |ns| latency(ns as f64))
    };
    let tile = |label, value, note| Tile { label, value, note };
    if record.asks_nothing() {
        let opened = format!("{} a second", per_second(record.opened_per_second()));
        return vec![tile(
            "Connections",
            opened,
            "opened and closed without a query".into(),
        )];
    }
    let places = match record.outstanding() {
        Some(places) => format!("queries, of {} allowed", count(places)),
        None => "queries on average".to_owned(),
    };
    vec![
        tile(
            "Achieved",
            rate(record.achieved_qps()),
            match record.responses_after_window() {
                0 => "responses within the load".into(),
                _ => "responses within the load, or just after it at normal latency".into(),
            },
        ),
        tile(
            "Lost",
            share(lost, total.counts.offered),
            format!("{} of {} queries", count(lost), count(total.counts.offered)),
        ),
        tile(
            "Median latency",
            p(0.5),
            "p50, from the instant a query was due".into(),
        ),
        tile("Tail latency", p(0.99), "p99: 1 in 100 took longer".into()),
        tile(
            "Goodput",
            share(record.goodput(), total.counts.responses),
            format!("of responses: {}", text::goodput_names(record)),
        ),
        tile("In flight", decimal(record.mean_in_flight(), 1), places),
    ]
}

/// The verdict in words that need no manual.
pub(crate) fn banner(record: &RunRecord) -> Banner {
    let limit = record.verdict.limit;
    Banner {
        limit: limit.name(),
        meaning: limit.meaning(),
        evidence: record.verdict.evidence.clone(),
    }
}

/// How the queries ended.
pub(crate) fn outcome(record: &RunRecord, prefix: &str) -> Sheet {
    let counts = &record.total.counts;
    let columns = vec![
        Column::words("queries"),
        Column::figures("number"),
        Column::figures("of offered"),
        Column::figures("a second"),
    ];
    let mut sheet = Sheet::new(
        &format!("{prefix}outcome"),
        "How the queries ended",
        columns,
    );
    let seconds = record.measured_seconds();
    let mut row = |name: &str, number: u64, is_rate: bool| {
        let a_second = match is_rate && seconds > 0.0 {
            true => per_second(number as f64 / seconds),
            false => String::new(),
        };
        let of_offered = share(number, counts.offered);
        sheet
            .rows
            .push(vec![name.into(), count(number), of_offered, a_second]);
    };
    row("offered", counts.offered, true);
    row("sent", counts.sent, true);
    row("completed", counts.responses, false);
    row("lost", counts.lost(), false);
    for (end, number) in counts.ends() {
        match end.is_lost {
            true => row(&format!("\u{2003}{}", end.name), number, false),
            false => row(end.words, number, false),
        }
    }
    row(
        "completed within the load",
        record.responses_in_window,
        true,
    );
    let after = record.responses_after_window();
    if after > 0 {
        row("completed after it at normal latency", after, true);
    }
    sheet.notes.extend(volumes(record));
    sheet
}

/// How many octets went each way: as DNS messages, and on the wire.
fn volumes(record: &RunRecord) -> Vec<String> {
    let size = |mean: Option<f64>, what: &str, bits: f64| {
        let mean = mean?;
        let bits = measure::notation::bit_rate(bits);
        Some(format!(
            "DNS: {} bytes a {what} on average, {bits}",
            decimal(mean, 1)
        ))
    };
    let sizes = [
        size(record.query_octets_mean(), "query", record.sent_bit_rate()),
        size(
            record.response_octets_mean(),
            "response",
            record.received_bit_rate(),
        ),
    ];
    let mut notes: Vec<String> = sizes.into_iter().flatten().collect();
    if let Some((sent, received)) = record.sent_wire_rate().zip(record.received_wire_rate()) {
        let [sent, received] = [sent, received].map(measure::notation::bit_rate);
        let with = text::wire_words(record);
        let note = format!("on the wire: {sent} sent, {received} received, {with}");
        notes.push(note);
    }
    notes
}

/// Latency from the scheduled instant, and service time beside it.
pub(crate) fn latencies(record: &RunRecord, prefix: &str) -> Sheet {
    let columns = vec![
        Column::words("latency"),
        Column::figures("from scheduled"),
        Column::figures("service time"),
    ];
    let mut sheet = Sheet::new(&format!("{prefix}latencies"), "Latency", columns);
    let distributions = &record.total.distributions;
    if distributions.latency.is_empty() {
        return sheet;
    }
    let both = figures::figures(&distributions.latency)
        .into_iter()
        .zip(figures::figures(&distributions.service));
    for ((name, scheduled), (_, service)) in both {
        sheet.rows.push(vec![name.into(), scheduled, service]);
    }
    sheet.notes.push(
        "from scheduled: from the instant at which a query was due; service time: from sending"
            .into(),
    );
    sheet
}

/// The parts of the latency, by timestamps; empty without them.
fn path(record: &RunRecord, prefix: &str) -> Sheet {
    let parts = record.total.distributions.path.parts();
    let mut columns = vec![Column::words("part")];
    columns.extend(parts.map(|(name, _)| Column::figures(name)));
    let mut sheet = Sheet::new(&format!("{prefix}path"), "Where the time went", columns);
    if record.scenario.timestamps.is_none() {
        return sheet;
    }
    let figures = parts.map(|(_, part)| figures::figures(part));
    for (row, (name, _)) in figures[0].iter().enumerate() {
        let cells = figures.iter().map(|part| part[row].1.clone());
        sheet
            .rows
            .push(std::iter::once((*name).to_owned()).chain(cells).collect());
    }
    sheet.notes.extend(text::path_notes(record));
    sheet
}

pub(crate) fn rcodes(record: &RunRecord, prefix: &str) -> Sheet {
    let rcodes = &record.total.counts.rcodes;
    let columns = vec![
        Column::words("RCODE"),
        Column::figures("responses"),
        Column::figures("share"),
    ];
    let mut sheet = Sheet::new(&format!("{prefix}rcodes"), "Responses by RCODE", columns);
    for (name, number) in rcodes.named() {
        let of_all = share(number, rcodes.total());
        sheet.rows.push(vec![name.into(), count(number), of_all]);
        let nodata = record.total.counts.nodata;
        if name == rcode_name(0) && nodata > 0 {
            let of_all = share(nodata, rcodes.total());
            let name = "\u{2003}NODATA: no record of the type";
            sheet.rows.push(vec![name.into(), count(nodata), of_all]);
        }
    }
    sheet
}

/// The charts of rates and latency.
pub(crate) fn charts(record: &RunRecord, prefix: &str) -> Option<Section> {
    let timeline = Timeline::new(record, prefix);
    let mut charts = timeline.queries();
    // Right below what was sent and answered.
    let place = charts.len().min(1);
    charts.splice(place..place, servers::charts(record, &timeline));
    charts.extend(distributions::latencies(record, prefix));
    let blocks: Vec<Block> = charts.into_iter().map(Block::from).collect();
    (!blocks.is_empty()).then(|| Section::new("Rate and latency", blocks))
}

/// Figures over time that show one level, in a run that lost nothing, are folded.
fn fold_level(record: &RunRecord, mut section: Section) -> Vec<Section> {
    let is_level = |block: &Block| matches!(block, Block::Chart(chart) if chart.is_level());
    let is_healthy = record.total.counts.lost() == 0;
    let blocks = std::mem::take(&mut section.blocks);
    let (level, shown): (Vec<Block>, Vec<Block>) = blocks
        .into_iter()
        .partition(|block| is_healthy && is_level(block));
    section.blocks = shown;
    let mut folded = Section::new("Level over the whole run", level);
    folded.is_folded = true;
    vec![section, folded]
}

/// How single clients fared, by group.
fn clients(record: &RunRecord, prefix: &str) -> Option<Section> {
    if record.scenario.clients < 2 || record.asks_nothing() {
        return None;
    }
    let mut blocks = Vec::new();
    if record.groups.len() > 1 {
        blocks.push(Block::Sheet(groups(record, prefix)));
    }
    if let Some(experience) = record.experience() {
        let charts = [
            distributions::over_clients(&experience, prefix),
            distributions::client_rates(&experience, record.measured_seconds(), prefix),
        ];
        blocks.extend(charts.into_iter().flatten().map(Block::from));
        if let Some(fairness) = experience.fairness() {
            let even = decimal(1.0 / experience.clients().max(1) as f64, 3);
            blocks.push(Block::Note(format!(
                "Fairness of responses over clients: {} (Jain's index; 1 if all got as many, \
                 {even} if one got all).",
                decimal(fairness, 3)
            )));
        }
    }
    (!blocks.is_empty()).then(|| Section::new("Client experience", blocks))
}

fn groups(record: &RunRecord, prefix: &str) -> Sheet {
    let columns = vec![
        Column::words("group"),
        Column::words("transport"),
        Column::figures("clients"),
        Column::figures("offered"),
        Column::figures("answered"),
        Column::figures("p50"),
        Column::figures("p99"),
        Column::figures("p99 of the worst 1 % of clients"),
    ];
    let mut sheet = Sheet::new(&format!("{prefix}groups"), "Groups of clients", columns);
    for group in &record.groups {
        let (counts, all) = (&group.total.counts, &group.total.distributions.latency);
        let worst = group
            .experience
            .as_ref()
            .and_then(|it| it.worst_percent_p99_ns());
        sheet.rows.push(vec![
            group.name.clone(),
            transport(&group.scenario.transport.to_string()).to_owned(),
            count(group.clients),
            count(counts.offered),
            share(counts.responses, counts.offered),
            figures::or_dash(all.percentile(0.5)),
            figures::or_dash(all.percentile(0.99)),
            figures::or_dash(worst),
        ]);
    }
    sheet
}

fn connections(record: &RunRecord, prefix: &str) -> Option<Section> {
    let all = record.connections();
    if all.attempted == 0 {
        return None;
    }
    let timeline = Timeline::new(record, prefix);
    let mut blocks: Vec<Block> = timeline
        .connections()
        .into_iter()
        .map(Block::from)
        .collect();
    blocks.extend(distributions::set_up(record, prefix).map(Block::from));
    let id = format!("{prefix}connection-counts");
    let columns = vec![Column::words("connections"), Column::figures("number")];
    let mut sheet = Sheet::new(&id, "How the connections ended", columns);
    let mut rows = vec![
        ("attempted".to_owned(), all.attempted),
        ("usable".to_owned(), record.scenario.usable(&all)),
        (
            "\u{2003}by a resumed session".to_owned(),
            all.handshakes.resumed,
        ),
        ("failed".to_owned(), all.failed.total()),
    ];
    let causes = all.failed.by_cause(record.scenario.transport).into_iter();
    rows.extend(causes.map(|(cause, number)| (format!("\u{2003}{cause}"), number)));
    rows.push(("closed by the clients".to_owned(), all.closed_by_client));
    rows.push(("ended by the target".to_owned(), all.ended_by_target()));
    rows.push(("given up: silence".to_owned(), all.ended_by_silence()));
    for (name, number) in rows.into_iter().filter(|row| row.1 > 0) {
        sheet.rows.push(vec![name, count(number)]);
    }
    blocks.push(Block::Sheet(sheet));
    Some(Section::new("Connections", blocks))
}

/// The generator's own limits, and the hosts.
fn generator(record: &RunRecord, prefix: &str) -> Section {
    let chart = Timeline::new(record, prefix).generator();
    let mut blocks: Vec<Block> = chart.map(Block::from).into_iter().collect();
    let mut sheet = Sheet::facts(&format!("{prefix}generator"), "Generator and scenario");
    for (worker, facts) in record.workers.iter().enumerate().take(8) {
        sheet.fact(
            record.worker_name(worker),
            format!(
                "busy {} of its CPU, sent {} queries",
                percent(facts.busy_share()),
                count(facts.queries)
            ),
        );
    }
    if record.workers.len() > 8 {
        let rest = counted(record.workers.len() as u64 - 8, "worker");
        sheet.fact("further", rest);
    }
    let lateness = &record.total.distributions.send_lateness;
    if !lateness.is_empty() {
        let late = |histogram: &Histogram, p| figures::or_dash(histogram.percentile(p));
        let words = format!("p50 {}, p99 {}", late(lateness, 0.5), late(lateness, 0.99));
        sheet.fact("queries sent late by", words);
    }
    for (name, value) in text::scenario_facts(record) {
        sheet.fact(name, value);
    }
    for host in &record.hosts {
        for (name, value) in host_facts(host) {
            sheet.fact(name, value);
        }
    }
    for (name, growth) in record.network.kernel.iter().filter(|it| *it.1 > 0) {
        sheet.fact(
            format!("kernel counter {name}"),
            format!("+{}", count(*growth)),
        );
    }
    let agents = agents::sheet(record, prefix, usize::MAX);
    blocks.extend((!agents.rows.is_empty()).then_some(Block::Sheet(agents)));
    blocks.extend(agents::chart(record, prefix).map(Block::from));
    blocks.push(Block::Sheet(sheet));
    Section::new("Generator, scenario and host", blocks)
}

/// What is known of a generating host.
pub(crate) fn host_facts(host: &HostFacts) -> Vec<(String, String)> {
    let mut facts = Vec::new();
    let mut fact = |name: &str, value: Option<String>| {
        facts.extend(value.map(|value| (name.to_owned(), value)));
    };
    fact("CPU", host.cpu_model.clone());
    fact("CPUs for the generator", host.cores.map(count));
    fact("memory", host.memory_octets.map(gibibytes));
    fact("operating system", host.os.clone());
    fact("kernel", host.kernel.clone());
    fact("hypervisor", host.hypervisor.clone());
    fact("frequency governor", host.governor.clone());
    fact("clock source", host.clock_source.clone());
    let named = host.sysctls.iter().chain(&host.limits);
    facts.extend(named.map(|(name, value)| (name.clone(), value.clone())));
    facts
}
