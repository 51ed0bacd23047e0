//! The generator's ceilings: what it reaches with the load of each cell over its topology, against
//! throng's own responder on the CPUs of the server. A cell near its ceiling may be limited by the
//! generator or by the path, whatever its server can do.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use lab::live::Place;
use lab::target::Topology;
use measure::metric::Metric;
use measure::notation::{decimal, rate};
use measure::record::EndedBy;
use measure::{Limit, RunRecord};
use settings::Arrival;

use super::cells::{Levels, TWIN, Turn, words};
use super::folder::{self, Folder};
use crate::failure::Failure;
use crate::turn::{Maker, Places};

/// From this share of its ceiling on a cell is near it.
const NEAR: f64 = 0.9;
/// Levels of a cell that say nothing of its load.
const OF_SERVER: [&str; 3] = ["server", "operation", TWIN];

/// What the generator reached.
#[derive(Clone, Copy, Debug)]
struct Ceiling {
    qps: f64,
    /// Something else than the generator was the limit: it can do more.
    is_least: bool,
}

/// What is varied of the load of a cell, and the CPUs of its server.
fn load(turn: &Turn) -> Levels {
    let levels = turn.levels.iter();
    let of_load = levels.filter(|(name, _)| !OF_SERVER.contains(&name.as_str()));
    let cpus = turn.server.as_ref().and_then(|server| server.cpus());
    let cpus = cpus.map(|cpus| ("cpus".to_owned(), cpus.to_owned()));
    of_load.cloned().chain(cpus).collect()
}

/// A run for each load that has a ceiling: in a closed loop, of servers that the experiment starts
/// on this host.
pub(super) fn turns(turns: &[Turn], is_short: bool) -> Result<Vec<Turn>, Failure> {
    let mut all: Vec<Turn> = Vec::new();
    for turn in turns {
        let is_there = |it: &Turn| it.levels == load(turn);
        if turn.topology == Topology::Kubernetes || all.iter().any(is_there) {
            continue;
        }
        let Some(server) = &turn.server else {
            continue;
        };
        let groups = turn.groups()?;
        if groups.iter().all(|group| is_closed(&group.run.arrival)) {
            all.push(turn.against(server.responder()?, load(turn), is_short));
        }
    }
    Ok(all)
}

/// As fast as the server lets it.
fn is_closed(arrival: &Arrival) -> bool {
    match arrival {
        Arrival::Closed { rate_qps_max, .. } => rate_qps_max.is_none(),
        _ => false,
    }
}

/// Measures those that the folder does not have yet.
pub(super) fn measure(turns: &[Turn], folder: &Folder, maker: &Maker<'_>) -> Result<(), Failure> {
    for turn in turns {
        let path = folder.ceiling(turn)?;
        if path.is_file() || maker.interrupt.has_come() {
            continue;
        }
        let name = words(&turn.levels);
        match measure_one(turn, folder, &path, maker) {
            Ok(ceiling) => tell!("generator's ceiling, {name}: {ceiling}"),
            Err(failure) => tell!(
                "warning: no ceiling of the generator, {name}: {}",
                failure.what()
            ),
        }
    }
    Ok(())
}

fn measure_one(
    turn: &Turn,
    folder: &Folder,
    path: &Path,
    maker: &Maker<'_>,
) -> Result<Ceiling, Failure> {
    let mut groups = turn.groups()?;
    let server = turn.server.as_ref();
    let server = server.ok_or_else(|| Failure::in_operation("there is no server"))?;
    let started = server.start(&turn.topology.of_start(turn.repetition), &mut groups)?;
    let unfinished = path.with_extension("unfinished");
    let log = folder.log_of_ceiling(turn)?;
    let places = Places {
        record: &unfinished,
        log: Some(log),
        begun: None,
    };
    let name = format!("ceiling, {}", words(&turn.levels));
    maker.live.begin(Place::new(name, 0, None));
    let made = started.near(|| maker.make(&groups, &places))?;
    let made = made.map_err(Failure::in_operation)?;
    let record = fs::read_to_string(&unfinished).map_err(Failure::in_operation)?;
    let record = RunRecord::from_json(&record).map_err(Failure::in_operation)?;
    if !made.is_well() || record.ended_by == EndedBy::Interrupted {
        return Err(Failure::in_operation(format!("the run failed ({made})")));
    }
    fs::rename(&unfinished, path).map_err(Failure::in_operation)?;
    Ok(Ceiling::of(&record))
}

impl Ceiling {
    fn of(record: &RunRecord) -> Ceiling {
        Ceiling {
            qps: Metric::Qps.of(record).unwrap_or_default(),
            is_least: record.verdict.limit != Limit::Generator,
        }
    }

    fn near(self, qps: f64) -> Option<String> {
        let share = qps / self.qps;
        let is_near = share.is_finite() && share >= NEAR;
        is_near.then(|| {
            let share = decimal(100.0 * share, 1);
            format!("{} of {self} ({share} %)", rate(qps))
        })
    }
}

impl std::fmt::Display for Ceiling {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let least = if self.is_least { "at least " } else { "" };
        write!(f, "{least}{}", rate(self.qps))
    }
}

/// The ceilings that an experiment's folder has.
pub(super) struct Ceilings(BTreeMap<Levels, Ceiling>);

impl Ceilings {
    /// Those of its cells.
    pub(super) fn read(folder: &Path, cells: &[Vec<Turn>]) -> Result<Ceilings, Failure> {
        let mut all = BTreeMap::new();
        for turn in cells.iter().filter_map(|turns| turns.first()) {
            let load = load(turn);
            let path = folder::ceiling_in(folder, &load);
            let Ok(text) = fs::read_to_string(&path) else {
                continue;
            };
            let record = RunRecord::from_json(&text)
                .map_err(|why| Failure::in_operation(format!("{}: {why}", path.display())))?;
            all.insert(load, Ceiling::of(&record));
        }
        Ok(Ceilings(all))
    }

    /// A cell with that mean rate, if it is near its ceiling: of how much.
    pub(super) fn near(&self, turn: &Turn, qps: f64) -> Option<String> {
        self.0.get(&load(turn))?.near(qps)
    }

    /// Each, and which of these cells are near theirs.
    pub(super) fn text(&self, cells: &[(&Turn, Option<f64>)]) -> String {
        let mut text = String::new();
        for (load, ceiling) in &self.0 {
            // Writing to a String does not fail.
            let _ = writeln!(text, "generator's ceiling: {}: {ceiling}", words(load));
        }
        for (turn, qps) in cells {
            let near = qps.and_then(|qps| self.near(turn, qps));
            if let Some(near) = near {
                let name = words(&turn.levels);
                let _ = writeln!(
                    text,
                    "near the generator's ceiling: {name}: {near}: its server may do more"
                );
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_is_from_nine_tenths_on() {
        let ceiling = |qps, is_least| Ceiling { qps, is_least };
        let near = ceiling(1_000.0, true).near(900.0).unwrap();
        assert_eq!(near, "900.0 qps of at least 1,000 qps (90.0 %)");
        let above = ceiling(1_000.0, false).near(1_100.0).unwrap();
        assert_eq!(above, "1,100 qps of 1,000 qps (110.0 %)");
        assert_eq!(ceiling(1_000.0, false).near(899.0), None);
        assert_eq!(ceiling(0.0, false).near(0.0), None);
        assert_eq!(ceiling(0.0, false).near(5.0), None);
    }
}
