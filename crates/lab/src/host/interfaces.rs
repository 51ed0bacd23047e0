//! Network interfaces, from /sys/class/net.

use std::fmt;
use std::fs;

use measure::doctor::Interface;

use super::Host;

/// Interfaces that are judged where none is named: those of default routes, at most.
const INTERFACES_MAX: usize = 4;

/// There is no interface of that name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownInterface {
    /// The name.
    pub name: String,
    /// Those that there are.
    pub known: Vec<String>,
}

impl fmt::Display for UnknownInterface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no network interface `{}`", self.name)
    }
}

impl std::error::Error for UnknownInterface {}

impl Host {
    /// The interface of that name, or without one those of the default routes.
    pub(super) fn interfaces(
        &self,
        name: Option<&str>,
    ) -> Result<Vec<Interface>, UnknownInterface> {
        let known = self.names("sys/class/net");
        // Beside the interfaces there may be a file, of the bonding driver.
        let is_interface =
            |name: &&String| self.text(&format!("sys/class/net/{name}/mtu")).is_some();
        let known: Vec<String> = known.iter().filter(is_interface).cloned().collect();
        let names = match name {
            None => self.of_default_routes(&known),
            Some(name) if known.iter().any(|it| it == name) => vec![name.to_owned()],
            Some(name) => {
                return Err(UnknownInterface {
                    name: name.to_owned(),
                    known,
                });
            }
        };
        Ok(names.into_iter().map(|name| self.interface(name)).collect())
    }

    /// Interfaces of default routes, of IPv4 and IPv6.
    fn of_default_routes(&self, known: &[String]) -> Vec<String> {
        let v4 = self.text("proc/net/route").unwrap_or_default();
        let v6 = self.text("proc/net/ipv6_route").unwrap_or_default();
        let mut names = parse_default_routes(&v4);
        names.extend(parse_default_routes_v6(&v6));
        let mut found: Vec<String> = Vec::new();
        for name in names {
            if known.contains(&name) && !found.contains(&name) && name != "lo" {
                found.push(name);
            }
        }
        found.truncate(INTERFACES_MAX);
        found
    }

    fn interface(&self, name: String) -> Interface {
        let folder = format!("sys/class/net/{name}");
        let queues = self.names(&format!("{folder}/queues"));
        let count = |kind: &str| queues.iter().filter(|it| it.starts_with(kind)).count() as u64;
        let is_spread = |queue: &&String| {
            let mask = self.text(&format!("{folder}/queues/{queue}/rps_cpus"));
            mask.is_some_and(|mask| mask.chars().any(|digit| !matches!(digit, '0' | ',')))
        };
        let statistics = self.names(&format!("{folder}/statistics"));
        let counters = statistics.into_iter().filter_map(|counter| {
            let value = self.number(&format!("{folder}/statistics/{counter}"))?;
            Some((counter, value))
        });
        let driver = fs::read_link(self.root.join(&folder).join("device/driver")).ok();
        let driver = driver.and_then(|path| Some(path.file_name()?.to_str()?.to_owned()));
        Interface {
            // What has a device has a driver, whether or not it can be named.
            driver: driver.or_else(|| {
                let device = self.root.join(&folder).join("device");
                device.exists().then(|| "unknown".to_owned())
            }),
            state: self.text(&format!("{folder}/operstate")),
            // -1 where there is no carrier, or no such thing as speed.
            speed_mbit_s: self.number(&format!("{folder}/speed")),
            mtu_octets: self.number(&format!("{folder}/mtu")),
            receive_queues: count("rx-"),
            receive_queues_spread: queues
                .iter()
                .filter(|it| it.starts_with("rx-"))
                .filter(is_spread)
                .count() as u64,
            transmit_queues: count("tx-"),
            counters: counters.collect(),
            name,
        }
    }
}

/// /proc/net/route: interface, destination, gateway, flags and so on, a route a row.
pub(super) fn parse_default_routes(text: &str) -> Vec<String> {
    let of_row = |row: &str| {
        let cells: Vec<&str> = row.split_ascii_whitespace().collect();
        let is_default = cells.get(1) == Some(&"00000000") && cells.get(7) == Some(&"00000000");
        is_default.then(|| cells[0].to_owned())
    };
    text.lines().skip(1).filter_map(of_row).collect()
}

/// /proc/net/ipv6_route: destination, its prefix length, ..., interface, a route a row.
pub(super) fn parse_default_routes_v6(text: &str) -> Vec<String> {
    let of_row = |row: &str| {
        let cells: Vec<&str> = row.split_ascii_whitespace().collect();
        let is_default =
            cells.len() == 10 && cells[0].bytes().all(|digit| digit == b'0') && cells[1] == "00";
        is_default.then(|| cells[9].to_owned())
    };
    text.lines().filter_map(of_row).collect()
}
