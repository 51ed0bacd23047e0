//! BIND 9 (`named`) as the server under test.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::{Read, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::ops::Deref;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use serde_json::Value;

use super::process::Launch;
use super::ready::Readiness;
use super::running::{Prepared, RunningServer};
use super::{Endpoints, Families, StartFailure, TsigKey, Zone, start_on_free_ports};

/// How long the statistics channel may take.
const STATISTICS_DURATION_MAX: Duration = Duration::from_secs(10);

/// What BIND logs when a zone file is bad; it runs on without the zone.
const FATAL_LINES: [&str; 1] = ["not loaded due to errors"];

/// How to run `named`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BindOptions {
    /// The zone it is authoritative for; the only one.
    pub zone: Zone,
    /// Worker threads (`-n`), at least 1.
    pub threads: u32,
    /// The one core to run on; `None` leaves it to the kernel.
    pub cpu: Option<usize>,
    /// Where it listens.
    pub families: Families,
    /// The `tcp-clients` limit (BIND's default is 150).
    pub tcp_clients_max: Option<u32>,
    /// Whether it also serves DNS over TLS (RFC 7858).
    pub dot: bool,
    /// Allows dynamic updates (RFC 2136) signed with this key.
    pub update_key: Option<TsigKey>,
    /// Answers only queries signed with this key; all others are REFUSED.
    pub query_key: Option<TsigKey>,
    /// More statements for the `options` block, each with its semicolon.
    pub extra_options: String,
}

impl BindOptions {
    /// One thread, IPv4, UDP and TCP only, BIND's own limits.
    pub fn new(zone: Zone) -> BindOptions {
        BindOptions {
            zone,
            threads: 1,
            cpu: None,
            families: Families::V4,
            tcp_clients_max: None,
            dot: false,
            update_key: None,
            query_key: None,
            extra_options: String::new(),
        }
    }
}

/// A running `named`, gone when dropped.
#[derive(Debug)]
pub struct BindTarget {
    server: RunningServer,
    statistics: SocketAddr,
}

impl Deref for BindTarget {
    type Target = RunningServer;

    fn deref(&self) -> &RunningServer {
        &self.server
    }
}

impl BindTarget {
    /// Starts `named` and waits until it answers for the zone on all its ports, at most 30 s.
    ///
    /// # Errors
    /// BIND is not installed, its configuration or the zone is wrong (the message has the end of
    /// BIND's log), or no free ports were found.
    pub fn start(options: &BindOptions) -> anyhow::Result<BindTarget> {
        let mut addresses = options.families.addresses();
        let statistics_address = IpAddr::V4(Ipv4Addr::LOCALHOST);
        if !addresses.contains(&statistics_address) {
            addresses.push(statistics_address);
        }
        start_on_free_ports(&addresses, 3, |ports| {
            let endpoints = Endpoints {
                addresses: options.families.addresses(),
                do53_port: ports[0],
                dot_port: options.dot.then_some(ports[1]),
            };
            let statistics = SocketAddr::new(statistics_address, ports[2]);
            BindTarget::start_on(options, endpoints, statistics)
        })
    }

    fn start_on(
        options: &BindOptions,
        endpoints: Endpoints,
        statistics: SocketAddr,
    ) -> Result<BindTarget, StartFailure> {
        let prepared = Prepared::new("named", &options.zone, options.dot)?;
        let folder = &prepared.folder;
        let text = configuration(options, &endpoints, statistics, folder.path());
        let file = folder.write("named.conf", &text)?;

        let threads = options.threads.to_string();
        let mut arguments: Vec<OsString> = ["-g", "-n", &threads, "-U", &threads, "-c"]
            .map(OsString::from)
            .into();
        arguments.push(file.into());
        let cpu = options.cpu;
        let launch = Launch {
            program: "named",
            package: "bind9",
            arguments,
            cpu,
        };
        let readiness = Readiness {
            endpoints: &endpoints,
            origin: &options.zone.origin,
            refused_is_ready: options.query_key.is_some(),
            ready_line: Some("all zones loaded"),
            fatal_lines: &FATAL_LINES,
        };
        let server = prepared.launch(launch, &readiness)?;
        Ok(BindTarget { server, statistics })
    }

    /// Reads the counters of the statistics channel.
    ///
    /// They count from the start and contain the query that found the server ready: take them
    /// before and after, and use [`BindCounters::since`].
    ///
    /// # Errors
    /// `named` has died or answers with something else; the message has the end of its log.
    pub fn statistics(&self) -> anyhow::Result<BindCounters> {
        let server = self.read_statistics("/json/v1/server")?;
        let sockets = self.read_statistics("/json/v1/net")?;
        Ok(BindCounters::from_json(&server, &sockets))
    }

    fn read_statistics(&self, path: &str) -> anyhow::Result<Value> {
        http_get(self.statistics, path)
            .and_then(|body| serde_json::from_str(&body).context("not JSON"))
            .with_context(|| {
                self.server
                    .process
                    .error(&format!("gave no statistics at {path}"))
            })
    }
}

/// What BIND counted, from its statistics channel (JSON, version 1).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BindCounters {
    /// Queries over UDP (`QryUDP`).
    pub queries_udp: u64,
    /// Queries over TCP, and over TLS, which BIND 9.18 counts as TCP too (`QryTCP`).
    pub queries_tcp: u64,
    /// Queries over TLS alone (`QryDoT`); 0 in versions that do not tell them apart (9.18).
    pub queries_dot: u64,
    /// Messages received over IPv4, updates included (`Requestv4`).
    pub messages_v4: u64,
    /// Messages received over IPv6, updates included (`Requestv6`).
    pub messages_v6: u64,
    /// Messages received over TCP or TLS, updates included (`ReqTCP`).
    pub messages_tcp: u64,
    /// Responses sent (`Response`).
    pub responses: u64,
    /// Updates carried out (`UpdateDone`).
    pub updates_done: u64,
    /// TCP and TLS connections accepted on both families (`TCP4Accept` and `TCP6Accept`), those
    /// of the statistics channel included: one for each time the counters are read.
    pub connections_accepted: u64,
    /// Every counter of `nsstats`, `opcodes`, `rcodes` and `sockstats`, as `group.Name`; BIND
    /// leaves out most of those that are 0.
    pub all: BTreeMap<String, u64>,
}

impl BindCounters {
    fn from_json(server: &Value, sockets: &Value) -> BindCounters {
        let mut all = BTreeMap::new();
        for (from, group) in [
            (server, "nsstats"),
            (server, "opcodes"),
            (server, "rcodes"),
            (sockets, "sockstats"),
        ] {
            let counters = from[group].as_object().into_iter().flatten();
            let numbers = counters.filter_map(|(name, count)| Some((name, count.as_u64()?)));
            all.extend(numbers.map(|(name, count)| (format!("{group}.{name}"), count)));
        }
        BindCounters::from_all(all)
    }

    fn from_all(all: BTreeMap<String, u64>) -> BindCounters {
        let count = |name: &str| all.get(name).copied().unwrap_or(0);
        BindCounters {
            queries_udp: count("nsstats.QryUDP"),
            queries_tcp: count("nsstats.QryTCP"),
            queries_dot: count("nsstats.QryDoT"),
            messages_v4: count("nsstats.Requestv4"),
            messages_v6: count("nsstats.Requestv6"),
            messages_tcp: count("nsstats.ReqTCP"),
            responses: count("nsstats.Response"),
            updates_done: count("nsstats.UpdateDone"),
            connections_accepted: count("sockstats.TCP4Accept") + count("sockstats.TCP6Accept"),
            all,
        }
    }

    /// What was counted after `before` was taken.
    pub fn since(&self, before: &BindCounters) -> BindCounters {
        let counted = |name: &String| before.all.get(name).copied().unwrap_or(0);
        let all = self.all.iter().map(|(name, count)| {
            let difference = count.saturating_sub(counted(name));
            (name.clone(), difference)
        });
        BindCounters::from_all(all.collect())
    }
}

/// The configuration: one zone, no recursion, no control channel, nothing outside `folder`.
fn configuration(
    options: &BindOptions,
    endpoints: &Endpoints,
    statistics: SocketAddr,
    folder: &Path,
) -> String {
    let folder = folder.display();
    let mut text = String::new();
    let keys = [&options.update_key, &options.query_key];
    let mut names: Vec<&str> = Vec::new();
    for key in keys.into_iter().flatten() {
        if names.contains(&key.name.as_str()) {
            continue;
        }
        names.push(&key.name);
        let TsigKey {
            name,
            algorithm,
            secret_base64,
        } = key;
        // Writing to a String does not fail.
        let _ = writeln!(
            text,
            "key \"{name}\" {{ algorithm {algorithm}; secret \"{secret_base64}\"; }};"
        );
    }
    if options.dot {
        text.push_str("tls lab { cert-file \"server.pem\"; key-file \"server.key\"; };\n");
    }
    let _ = write!(
        text,
        "controls {{ }};\n\
         statistics-channels {{ inet {} port {} allow {{ 127.0.0.1; }}; }};\n\
         options {{\n  directory \"{folder}\";\n  pid-file \"{folder}/named.pid\";\n  \
         session-keyfile \"{folder}/session.key\";\n  managed-keys-directory \"{folder}\";\n  \
         recursion no;\n  notify no;\n  dnssec-validation no;\n  empty-zones-enable no;\n  \
         allow-transfer {{ none; }};\n",
        statistics.ip(),
        statistics.port()
    );
    text.push_str(&listeners(endpoints));
    if let Some(clients) = options.tcp_clients_max {
        let _ = writeln!(text, "  tcp-clients {clients};");
    }
    let _ = writeln!(text, "{}\n}};", options.extra_options);
    text.push_str(&zone_block(options));
    text
}

fn listeners(endpoints: &Endpoints) -> String {
    let mut text = String::new();
    for (statement, wants_v4, host) in [
        ("listen-on", true, "127.0.0.1"),
        ("listen-on-v6", false, "::1"),
    ] {
        if !endpoints
            .addresses
            .iter()
            .any(|address| address.is_ipv4() == wants_v4)
        {
            let _ = writeln!(text, "  {statement} {{ none; }};");
            continue;
        }
        let _ = writeln!(
            text,
            "  {statement} port {} {{ {host}; }};",
            endpoints.do53_port
        );
        if let Some(port) = endpoints.dot_port {
            let _ = writeln!(text, "  {statement} port {port} tls lab {{ {host}; }};");
        }
    }
    text
}

fn zone_block(options: &BindOptions) -> String {
    let mut text = format!(
        "zone \"{}\" {{\n  type primary; file \"zone.db\";\n",
        options.zone.origin
    );
    if let Some(key) = &options.update_key {
        let _ = writeln!(text, "  allow-update {{ key \"{}\"; }};", key.name);
    }
    if let Some(key) = &options.query_key {
        let _ = writeln!(text, "  allow-query {{ key \"{}\"; }};", key.name);
    }
    text.push_str("};\n");
    text
}

/// Fetches one page (HTTP/1.0, so that the server closes the connection after it).
fn http_get(server: SocketAddr, path: &str) -> anyhow::Result<String> {
    let mut stream = TcpStream::connect_timeout(&server, STATISTICS_DURATION_MAX)
        .with_context(|| format!("cannot connect to {server}"))?;
    stream.set_read_timeout(Some(STATISTICS_DURATION_MAX))?;
    write!(stream, "GET {path} HTTP/1.0\r\nHost: {server}\r\n\r\n")?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let answer = String::from_utf8(answer).context("the answer is not UTF-8")?;
    let (head, body) = answer
        .split_once("\r\n\r\n")
        .context("the answer has no header")?;
    let status = head.lines().next().unwrap_or_default();
    anyhow::ensure!(
        status.split(' ').nth(1) == Some("200"),
        "HTTP status `{status}`"
    );
    Ok(body.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_missing_in_the_statistics_are_zero_and_differences_are_of_all() {
        let server = serde_json::json!({"nsstats": {"QryUDP": 5, "Requestv4": 7}});
        let sockets = serde_json::json!({"sockstats": {"TCP4Accept": 2, "TCP6Accept": 1}});
        let before = BindCounters::from_json(&server, &sockets);
        assert_eq!((before.queries_udp, before.queries_tcp), (5, 0));
        assert_eq!(before.connections_accepted, 3);

        let server = serde_json::json!({"nsstats": {"QryUDP": 9, "QryTCP": 4, "Requestv4": 15}});
        let counted = BindCounters::from_json(&server, &sockets).since(&before);
        assert_eq!(
            (
                counted.queries_udp,
                counted.queries_tcp,
                counted.messages_v4
            ),
            (4, 4, 8)
        );
        assert_eq!(counted.all["nsstats.QryTCP"], 4);
    }
}
