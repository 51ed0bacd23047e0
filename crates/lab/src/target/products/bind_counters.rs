//! BIND's counters, read from its statistics channel.

use std::collections::BTreeMap;
use std::io::{Read, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::Context;
use serde_json::Value;

/// How long the statistics channel may take.
const DURATION_MAX: Duration = Duration::from_secs(10);

/// BIND's counters, from its statistics channel (JSON, version 1).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BindCounters {
    /// Queries over UDP (`QryUDP`).
    pub queries_udp: u64,
    /// Queries over TCP, and over TLS, which BIND 9.18 counts as TCP too (`QryTCP`).
    pub queries_tcp: u64,
    /// Queries over TLS alone (`QryDoT`); 0 in versions without this counter (9.18).
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
    /// Reads the statistics channel at `channel`.
    pub(super) fn read(channel: SocketAddr) -> anyhow::Result<BindCounters> {
        let read = |path: &str| -> anyhow::Result<Value> {
            serde_json::from_str(&http_get(channel, path)?)
                .with_context(|| format!("{path}: not JSON"))
        };
        let (server, sockets) = (read("/json/v1/server")?, read("/json/v1/net")?);
        Ok(BindCounters::from_json(&server, &sockets))
    }

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

/// Fetches one page (HTTP/1.0, so that the server closes the connection after it).
fn http_get(server: SocketAddr, path: &str) -> anyhow::Result<String> {
    let mut stream = TcpStream::connect_timeout(&server, DURATION_MAX)
        .with_context(|| format!("cannot connect to {server}"))?;
    stream.set_read_timeout(Some(DURATION_MAX))?;
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
