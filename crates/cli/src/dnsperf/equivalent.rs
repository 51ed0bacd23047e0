//! The same run as a command of `throng run`.

use std::fmt::Write;
use std::time::Duration;

use lab::run::{TargetScope, target_scope};
use load::Plan;
use load::arrival::Arrival;

use super::args::{Family, Settings};
use crate::shell::quoted;

/// The command, without secrets, with differences as a comment; `left_out` lines of the input were
/// not used.
pub(super) fn command(settings: &Settings, plan: &Plan, left_out: usize) -> String {
    if settings.updates {
        return "none: throng run sends queries, not dynamic updates".to_owned();
    }
    let (mut words, mut differences) = (Vec::new(), Vec::new());
    add_questions((settings, plan, left_out), &mut words, &mut differences);
    add_load(settings, plan, &mut words);
    if !settings.timeout.subsec_nanos().is_multiple_of(1_000) {
        differences.push("-t 0: throng run has no shorter timeout");
    }
    command_of("throng run", settings, plan, (words, differences))
}

/// The same ramp as a command of `throng ramp`, whose flags for the load are `load`.
pub(super) fn ramp(
    settings: &Settings,
    plan: &Plan,
    (load, left_out): (&[String], usize),
) -> String {
    let (mut words, mut differences) = (Vec::new(), Vec::new());
    add_questions((settings, plan, left_out), &mut words, &mut differences);
    words.extend(load.iter().cloned());
    words.push(format!(
        "--clients {} --workers {}",
        plan.clients, plan.workers
    ));
    words.push(format!("--timeout {}", duration(plan.timeout)));
    command_of("throng ramp", settings, plan, (words, differences))
}

fn command_of(
    program: &str,
    settings: &Settings,
    plan: &Plan,
    (load, differences): (Vec<String>, Vec<&'static str>),
) -> String {
    let mut words = vec![program.to_owned()];
    words.push(format!("--server {}", server(settings, plan)));
    words.push(format!("--transport {}", plan.transport));
    add_http(plan, &mut words);
    words.extend(load);
    add_sockets(settings, plan, &mut words);
    let mut command = words.join(" ");
    if !differences.is_empty() {
        // Writing to a String does not fail.
        let _ = write!(command, "  # {}", differences.join("; "));
    }
    command
}

/// The server as typed, unless only its address says which family was meant.
fn server(settings: &Settings, plan: &Plan) -> String {
    let is_address = settings.server.parse::<std::net::IpAddr>().is_ok();
    let server = match is_address || settings.family != Family::Any {
        true => plan.target.to_string(),
        false => format!("{}:{}", settings.server, settings.port),
    };
    quoted(&server)
}

/// The requests of DNS over HTTPS; their URI is dnsperf's, wherever they go.
fn add_http(plan: &Plan, words: &mut Vec<String>) {
    if let Some(request) = &plan.doh {
        let method = request.method().to_string().to_lowercase();
        words.push(format!("--doh-method {method}"));
        words.push(format!("--doh-authority {}", quoted(request.authority())));
        words.push(format!("--doh-path {}", quoted(request.path())));
    }
}

fn add_questions(
    (settings, plan, left_out): (&Settings, &Plan, usize),
    words: &mut Vec<String>,
    differences: &mut Vec<&'static str>,
) {
    let names = settings
        .data_file
        .as_ref()
        .map(|path| path.to_string_lossy());
    words.push(format!(
        "--names {}",
        quoted(names.as_deref().unwrap_or("-"))
    ));
    if !settings.recursion {
        words.push("--no-recursion".to_owned());
    }
    if settings.binary {
        words.push("--names-format stream".to_owned());
        if has_strange_messages(plan) {
            differences.push("throng run refuses messages that are not queries");
        }
    }
    if left_out > 0 {
        differences.push("throng run refuses the lines that were left out");
    }
    // Messages in the binary form are sent as they are.
    if let Some(edns) = settings.edns.as_ref().filter(|_| !settings.binary) {
        words.push(format!("--edns-size {}", edns.udp_payload_octets));
        if edns.dnssec_ok {
            words.push("--dnssec".to_owned());
        }
        for (code, data) in &edns.options {
            let hex = data_encoding::HEXLOWER.encode(data);
            words.push(format!("--edns-option {code}:{hex}"));
        }
    }
    if settings.tsig.is_some() {
        words.push("--tsig-file FILE".to_owned());
        differences.push("FILE: the key of -y, as tsig-keygen writes it");
    }
}

/// Some message is no query with a question.
fn has_strange_messages(plan: &Plan) -> bool {
    const QR: u8 = 0x80;
    let mut all = plan.questions.iter();
    all.any(|template| template.question_octets == 0 || template.message[2] & QR != 0)
}

fn add_load(settings: &Settings, plan: &Plan, words: &mut Vec<String>) {
    match &plan.arrival {
        Arrival::Closed {
            outstanding,
            rate_qps_max,
        } => {
            words.push(format!("--outstanding {outstanding}"));
            words.extend(rate_qps_max.map(|rate| format!("--max-rate {rate}")));
        }
        Arrival::Open { rate_qps, .. } => words.push(format!("--rate {rate_qps}")),
        // dnsperf has no such things.
        Arrival::Clients(each) => words.push(format!("--per-client {each}")),
        Arrival::Script(_) | Arrival::Profile(_) | Arrival::Replay(_) => {}
    }
    words.push(format!(
        "--clients {} --workers {}",
        plan.clients, plan.workers
    ));
    if let Some(limit) = plan.duration {
        words.push(format!("--duration {}", duration(limit)));
    }
    if let Some(runs) = settings.runs {
        words.push(format!("--loops {runs}"));
    }
    words.push(format!("--timeout {}", duration(plan.timeout)));
    if let Some(interval) = settings.stats_interval {
        words.push(format!("--interval {}", duration(interval)));
    }
}

fn add_sockets(settings: &Settings, plan: &Plan, words: &mut Vec<String>) {
    for address in &plan.local_addresses {
        words.push(format!("--local-address {address}"));
    }
    if plan.local_port != 0 {
        words.push(format!("--local-port {}", plan.local_port));
    }
    if let Some(queries) = plan.connections.queries_max {
        words.push(format!("--queries-per-connection {queries}"));
    }
    if let Some(octets) = plan.sockets.buffer_octets {
        words.push(format!("--socket-buffer {octets}"));
    }
    if plan.transport.has_tls() {
        words.push("--tls-insecure".to_owned());
        if let Some(name) = &settings.long.tls_sni {
            words.push(format!("--tls-name {}", quoted(name)));
        }
    }
    // dnsperf goes on whether or not somebody listens.
    words.push("--no-preflight".to_owned());
    if target_scope(plan.target.ip()) == TargetScope::Public {
        words.push("--allow-public".to_owned());
    }
}

/// In the largest unit that shows all of it.
pub(super) fn duration(time: Duration) -> String {
    match time.as_nanos() {
        ns if ns % 1_000_000_000 == 0 => format!("{}s", time.as_secs()),
        ns if ns % 1_000_000 == 0 => format!("{}ms", time.as_millis()),
        // Zero would be none.
        _ => format!("{}us", time.as_micros().max(1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_throng_run_reads_them() {
        for (ms, expected) in [(120_000, "120s"), (250, "250ms")] {
            assert_eq!(duration(Duration::from_millis(ms)), expected);
        }
        for text in ["120s", "250ms", "1500us"] {
            let read = ::responder::behaviour::parse_duration(text).unwrap();
            assert_eq!(duration(read), text);
        }
    }
}
