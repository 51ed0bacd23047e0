//! A closed Internet for a resolver: root, top-level domain and the zone's own server, each a
//! responder of this program in the resolver's network namespace. For a server that forwards
//! queries outside its zone it is a single resolver with an answer for every name.

use std::ffi::OsString;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use measure::internet::{Internet as Counted, ZoneCounts, ZoneServer};
use responder::behaviour::parse_duration;
use rustix::process::Signal;

use super::cell::Cell;
use super::place::{Place, Server};
use super::process::Program;
use super::process_id::signal_group;
use super::start::Start;
use super::{Listed, RunningServer, Zone};
use crate::line::parse_share;

/// Name of the factor for names outside the zone.
pub(super) const EXTERNAL: &str = "external";
/// File with the root's name and address.
pub(super) const HINTS: &str = "root.hints";
/// File with a server's counters.
const COUNTERS: &str = "counters.json";
/// How long a server may take to write it, and how often the file is checked.
const TELL_MAX: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(2);
/// That of a generated zone's own name server.
const ZONE: Ipv4Addr = Ipv4Addr::LOCALHOST;
const TLD: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
const ROOT: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 3);
const PORT: u16 = 53;

const SERVER: Server = Server {
    program: Program::Own,
    services: &[],
    ready_line: None,
    fatal_lines: &["error: "],
};

/// Delay and loss of each of the three servers.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Internet([Level; 3]);

/// A server of it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Level {
    delay: String,
    loss: f64,
}

impl Level {
    /// Reads `10ms,1%`.
    pub(super) fn parse(text: &str) -> Option<Level> {
        let (delay, loss) = text.split_once(',').unwrap_or((text, "0"));
        parse_duration(delay).ok()?;
        Some(Level {
            delay: delay.to_owned(),
            loss: parse_share(loss).ok()?,
        })
    }
}

impl Internet {
    /// Reads `0ms/50ms/10ms,1%`: root, top-level domain, zone.
    pub(super) fn parse(text: &str) -> Option<Internet> {
        let mut levels = text.split('/').map(Level::parse);
        let all = [levels.next()??, levels.next()??, levels.next()??];
        levels.next().is_none().then_some(Internet(all))
    }

    /// Starts the three; returns the zone's server, with the others behind it.
    fn start(&self, cell: &Cell) -> anyhow::Result<RunningServer> {
        anyhow::ensure!(
            cell.network.is_some(),
            "a closed Internet needs a network of its own\nhint: give it the topology veth or \
             line:DELAY,LOSS"
        );
        let origin = cell.zone.origin.as_str();
        let tld = origin.split_once('.').map_or("", |(_, parent)| parent);
        anyhow::ensure!(
            !tld.is_empty(),
            "the zone `{origin}` has no domain above it but the root\nhint: serve one such as \
             lab.test."
        );
        let [of_root, of_tld, of_zone] = &self.0;
        let root = start_one(
            cell,
            "root",
            (Some(&delegating(".", tld, ROOT, TLD)), Some(ROOT), of_root),
        )?;
        let below = delegating(tld, origin, TLD, ZONE);
        let mut tld = start_one(cell, "tld", (Some(&below), Some(TLD), of_tld))?;
        tld.behind = Some(Box::new(root));
        let mut zone = start_one(cell, "zone", (Some(&cell.zone), Some(ZONE), of_zone))?;
        zone.behind = Some(Box::new(tld));
        Ok(zone)
    }
}

impl Cell {
    /// A closed Internet in which servers lose queries: its resolver answers SERVFAIL sometimes.
    pub fn internet_loses(&self) -> bool {
        let internet = Internet::parse(self.text("internet"));
        internet.is_some_and(|it| it.0.iter().any(|level| level.loss > 0.0))
    }
}

/// Starts a resolver, with a closed Internet whose root is in [`HINTS`] if the cell has one.
pub(super) fn start_resolver(
    cell: &Cell,
    start: &Start<'_>,
    configure: impl Fn(&Place<'_>) -> anyhow::Result<Vec<OsString>>,
) -> anyhow::Result<RunningServer> {
    let internet = Internet::parse(cell.text("internet"));
    let behind = internet.map(|it| it.start(cell)).transpose()?;
    let mut server = start.run(|place| {
        let hints = format!(". 3600 IN NS ns.root.\nns.root. 3600 IN A {ROOT}\n");
        place.folder.write(HINTS, &hints)?;
        configure(place)
    })?;
    server.behind = behind.map(Box::new);
    Ok(server)
}

/// The resolver to which a cell's server forwards names outside its zone; none if it refuses them.
pub(super) fn start_external(cell: &Cell) -> anyhow::Result<Option<RunningServer>> {
    let level = Level::parse(cell.text(EXTERNAL));
    let start = |level: Level| start_one(cell, EXTERNAL, (None, None, &level));
    level.map(start).transpose()
}

/// Starts a responder with a zone, or with an answer for every name.
fn start_one(
    cell: &Cell,
    name: &'static str,
    (zone, address, level): (Option<&Zone>, Option<Ipv4Addr>, &Level),
) -> anyhow::Result<RunningServer> {
    let start = Start {
        lasting: cell.lasting.as_ref().map(|of| format!("{of}-{name}")),
        front: cell.lasting.clone(),
        user: cell.user.as_deref(),
        internet: Some(name),
        network: cell.network.clone(),
        at: address.map(|address| SocketAddr::new(IpAddr::V4(address), PORT)),
        ..Start::new(&SERVER, zone.unwrap_or(&cell.zone))
    };
    start.run(|place| {
        let (at, folder) = (place.endpoints.do53(), place.folder.path().display());
        let mut words = vec![
            "responder".to_owned(),
            format!("--listen=udp:{at},tcp:{at}"),
            format!("--counters={folder}/{COUNTERS}"),
            format!("--delay={}", level.delay),
            format!("--loss={}", level.loss),
        ];
        if let Some(zone) = zone {
            words.push(format!("--zone={folder}/zone.db"));
            words.push(format!("--origin={}", zone.origin));
        }
        Ok(words.into_iter().map(OsString::from).collect())
    })
}

impl RunningServer {
    /// The counters of its closed Internet's servers since their start; none without a closed
    /// Internet.
    ///
    /// # Errors
    /// One of them does not write its counters.
    pub fn internet(&self) -> anyhow::Result<Option<Counted>> {
        let (mut all, mut server) = (Counted::default(), self);
        while let Some(behind) = server.behind() {
            all.servers.extend(behind.listed.internet_server()?);
            server = behind;
        }
        // The root comes last.
        all.servers.reverse();
        Ok((!all.servers.is_empty()).then_some(all))
    }
}

impl Listed {
    /// Its counters, if it is a server of a closed Internet.
    ///
    /// # Errors
    /// It does not write its counters.
    pub fn internet_server(&self) -> anyhow::Result<Option<ZoneServer>> {
        let (Some(name), Some(process)) = (&self.internet, self.process) else {
            return Ok(None);
        };
        let path = self.folder.join(COUNTERS);
        let cannot =
            || format!("the {name} of the closed Internet does not report what it counted");
        anyhow::ensure!(process.is_alive(), "{}: it has ended", cannot());
        // The file has earlier counters.
        fs::remove_file(&path).with_context(cannot)?;
        signal_group(process.id, Signal::USR1);
        let until = Instant::now() + TELL_MAX;
        let text = loop {
            match fs::read_to_string(&path) {
                Ok(text) => break text,
                Err(error) if Instant::now() > until => return Err(error).with_context(cannot),
                Err(_) => thread::park_timeout(LOOK_EVERY),
            }
        };
        let counts: ZoneCounts = serde_json::from_str(&text).with_context(cannot)?;
        Ok(Some(ZoneServer {
            name: name.clone(),
            counts,
        }))
    }
}

/// A zone with nothing in it but its own name server, and another below it.
fn delegating(origin: &str, child: &str, own: Ipv4Addr, of_child: Ipv4Addr) -> Zone {
    let server = match origin {
        "." => "ns.root.".to_owned(),
        origin => format!("ns.{origin}"),
    };
    let text = format!(
        "$TTL 3600\n{origin} IN SOA {server} hostmaster.{server} 1 3600 600 86400 60\n\
         {origin} IN NS {server}\n{server} IN A {own}\n{child} IN NS ns.{child}\n\
         ns.{child} IN A {of_child}\n"
    );
    Zone {
        origin: origin.to_owned(),
        text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_servers_are_read_with_their_delays_and_losses() {
        let internet = Internet::parse("0ms/50ms,0.5/10ms,1%").unwrap();
        let losses = internet.0.map(|level| level.loss);
        assert_eq!(losses, [0.0, 0.5, 0.01]);
        for wrong in [
            "",
            "0ms",
            "0ms/1ms",
            "0ms/1ms/x",
            "0ms/1ms/1ms/1ms",
            "0ms/1ms/1ms,2",
        ] {
            assert_eq!(Internet::parse(wrong), None, "{wrong}");
        }
    }
}
