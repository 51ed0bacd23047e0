//! Open files and memory: what every client costs the host.

use super::{Aim, Cure, Diagnosis, HostReading, State};
use crate::notation::{count, counted, gibibytes};

/// Descriptors that a process needs beside its clients' sockets.
const DESCRIPTORS_OTHER: u64 = 32;
/// With fewer open files allowed, many tests of servers are out of reach.
const FILES_MIN: u64 = 10_000;
/// Memory that a client may need with TLS: the session, and the kernel's buffers of its socket.
const CLIENT_OCTETS: u64 = 64 << 10;
/// With less memory free than that, anything may fail.
const MEMORY_MIN: u64 = 512 << 20;

/// A limit as the kernel prints it; `unlimited` is no limit.
fn limit(host: &HostReading, name: &str) -> Option<u64> {
    let text = host.facts.limits.get(name)?;
    match text.as_str() {
        "unlimited" => Some(u64::MAX),
        number => number.parse().ok(),
    }
}

fn words(limit: u64) -> String {
    match limit {
        u64::MAX => "unlimited".into(),
        limit => count(limit),
    }
}

/// Soft and hard limit of open files, and what they may be raised to.
pub(super) fn open_files(host: &HostReading, aim: Aim) -> Diagnosis {
    const MATTERS: &str = "every client has a socket, at both ends, and each is an open file";
    let both = limit(host, "open_files").zip(limit(host, "open_files_hard"));
    let Some((soft, hard)) = both else {
        return Diagnosis::new(
            "open files",
            State::Unknown,
            "the limits cannot be read",
            MATTERS,
        );
    };
    let mut seen = format!("limit {}, hard {}", words(soft), words(hard));
    if let Some(most) = host.number("fs.nr_open") {
        seen.push_str(&format!(", at most {} (fs.nr_open)", count(most)));
    }
    let Some(clients) = aim.clients else {
        let fitting = words(hard.saturating_sub(DESCRIPTORS_OTHER));
        seen.push_str(&format!("; enough for {fitting} clients in one process"));
        let state = match hard < FILES_MIN {
            true => State::Warning,
            false => State::Ok,
        };
        let cures = match state {
            State::Warning => raise(host, FILES_MIN),
            _ => Vec::new(),
        };
        return Diagnosis::new("open files", state, seen, MATTERS).cures(cures);
    };
    let needed = clients + DESCRIPTORS_OTHER;
    seen.push_str(&format!(
        "; {} need {}",
        counted(clients, "client"),
        count(needed)
    ));
    let diagnosis = |state| Diagnosis::new("open files", state, seen.clone(), MATTERS);
    match (aim.is_server, needed <= soft, needed <= hard) {
        // throng raises its soft limit by itself.
        (_, true, _) | (false, _, true) => diagnosis(State::Ok),
        (true, false, true) => diagnosis(State::Problem)
            .cure(Cure::shell(format!("ulimit -n {needed}")))
            .cure(Cure::words(format!(
                "of a systemd service: LimitNOFILE={needed} under [Service]"
            ))),
        // throng shares its clients out among processes.
        (false, _, false) => {
            let processes = clients.div_ceil(hard.saturating_sub(DESCRIPTORS_OTHER).max(1));
            let mut diagnosis = diagnosis(State::Warning);
            diagnosis.seen.push_str(&format!(
                ": throng starts {} processes, each with its share",
                count(processes)
            ));
            diagnosis.cures(raise(host, needed))
        }
        (true, _, false) => diagnosis(State::Problem).cures(raise(host, needed)),
    }
}

/// How to allow `needed` open files in the shell at hand.
fn raise(host: &HostReading, needed: u64) -> Vec<Cure> {
    let mut cures = Vec::new();
    if host.number("fs.nr_open").is_some_and(|most| most < needed) {
        cures.push(Cure::sysctl("fs.nr_open", needed));
    }
    if host.number("fs.file-max").is_some_and(|most| most < needed) {
        cures.push(Cure::sysctl("fs.file-max", 2 * needed));
    }
    cures.push(Cure::open_files(needed));
    cures
}

/// Memory against the number of clients.
pub(super) fn memory(host: &HostReading, aim: Aim) -> Diagnosis {
    const MATTERS: &str = "sockets, TLS sessions and the figures of each client are held in \
                           memory; a host that swaps measures its disk";
    let Some(all) = host.facts.memory_octets else {
        let seen = "it cannot be read";
        return Diagnosis::new("memory", State::Unknown, seen, MATTERS);
    };
    let free = host.memory_available_octets.unwrap_or(all);
    let mut seen = format!("{} of {} are free", gibibytes(free), gibibytes(all));
    let needed = aim.clients.map(|clients| clients * CLIENT_OCTETS);
    if let (Some(clients), Some(needed)) = (aim.clients, needed) {
        let clients = counted(clients, "client");
        seen.push_str(&format!(
            "; {clients} may take {} with TLS",
            gibibytes(needed)
        ));
    }
    if free >= needed.unwrap_or(0).max(MEMORY_MIN) {
        return Diagnosis::new("memory", State::Ok, seen, MATTERS);
    }
    let cure = match needed {
        Some(_) => Cure::throng(format!("--clients {}", free / CLIENT_OCTETS)),
        None => Cure::shell("ps -eo rss,comm --sort=-rss | head"),
    };
    Diagnosis::new("memory", State::Warning, seen, MATTERS).cure(cure)
}
