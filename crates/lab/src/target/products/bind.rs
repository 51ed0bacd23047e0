//! BIND 9 (`named`) as the server under test.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::File;
use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::Deref;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use domain::base::Message;
use domain::base::rdata::UnknownRecordData;
use rustix::process::Signal;

use super::BindCounters;
use crate::target::cell::{CacheControl, Cell, Factor};
use crate::target::control;
use crate::target::internet::{HINTS, start_resolver};
use crate::target::operation::{Act, Lines, Means};
use crate::target::over_tcp::ask;
use crate::target::place::{Place, Server};
use crate::target::process::Program;
use crate::target::signing::ttl_max;
use crate::target::start::Start;
use crate::target::{
    DOH_PATH, Endpoints, Families, Product, Resources, RunningServer, Service, TsigKey, Zone,
};

/// BIND 9.18 of Debian 12.
pub const BIND: Product = Product {
    name: "bind",
    title: "BIND",
    factors: &[
        Factor::number("threads", "1", 1_024, "threads that answer (-n)"),
        Factor::number("tcp-clients", "", 1_000_000, "TCP clients at once"),
        Factor::internet(),
        Factor::cache(CacheControl {
            flush,
            forget: None,
        }),
        Factor::signing(),
        Factor::lines("more statements of the options block"),
    ],
    server: &SERVER,
    version_flag: "-v",
    reload: Some(Means {
        act: Act::Signal(Signal::HUP),
        // BIND loads zones after it has logged that all are loaded.
        until: [
            Lines::one(&["/IN: loaded serial", "/IN (unsigned): loaded serial"]),
            Lines::one(&["all zones loaded"]),
        ],
    }),
    key_roll: Some(Means {
        act: Act::CommandOf(CONTROL, key_roll),
        // Signatures of the old key are replaced as they expire.
        until: [Lines::one(&["(ZSK) is now inactive"]); 2],
    }),
    gives_zone: true,
    start,
};

const CONTROL_KEY: &str = "control.key";
/// Its control program.
const CONTROL: Program = Program::Debian {
    name: "rndc",
    package: "bind9",
};

const SERVER: Server = Server {
    program: Program::Debian {
        name: "named",
        package: "bind9",
    },
    services: &[Service::Dot, Service::Doh2, Service::H2c],
    ready_line: Some("all zones loaded"),
    // It keeps running without the zone.
    fatal_lines: &["not loaded due to errors", "reloading configuration failed"],
};

fn start(cell: &Cell) -> anyhow::Result<RunningServer> {
    let options = BindOptions {
        threads: cell.number("threads").unwrap_or(1),
        tcp_clients_max: cell.number("tcp-clients"),
        services: cell.services.clone(),
        extra_options: cell.text("options").to_owned(),
        resolves: !cell.text("internet").is_empty(),
        signs: cell.signs().then(|| ttl_max(&cell.zone)).transpose()?,
        ..BindOptions::new(cell.zone.clone())
    };
    let start = with_statistics(&options, Start::of(cell));
    let mut server = start_resolver(cell, &start, |place| configured(&options, place))?;
    if options.signs.is_some() {
        wait_until_signed(&mut server, &options.zone)?;
    }
    Ok(server)
}

/// BIND answers long before it has signed the whole zone. Private-type records at the apex have the
/// progress of each key: algorithm, key tag, whether it is being removed, whether signing is
/// complete.
fn wait_until_signed(server: &mut RunningServer, zone: &Zone) -> anyhow::Result<()> {
    const PROGRESS: u16 = 65_534;
    const THROUGH: u8 = 1;
    let until = Instant::now() + SIGNING_MAX;
    loop {
        let response = ask(server, (&zone.origin, PROGRESS))?;
        let response = Message::from_octets(response).context("a message that is too short")?;
        let keys = response.answer()?.limit_to::<UnknownRecordData<_>>();
        let keys: Vec<bool> = keys
            .filter_map(Result::ok)
            .map(|it| it.data().data().last() == Some(&THROUGH))
            .collect();
        if keys.len() == KEYS && keys.iter().all(|is_through| *is_through) {
            return Ok(());
        }
        server.check_alive()?;
        if Instant::now() > until {
            let what = format!("has not signed its zone in {SIGNING_MAX:?}");
            return Err(server.process.error(&what));
        }
        thread::park_timeout(LOOK_EVERY);
    }
}

fn run(options: &BindOptions, start: Start<'_>) -> anyhow::Result<RunningServer> {
    with_statistics(options, start).run(|place| configured(options, place))
}

fn with_statistics<'a>(options: &BindOptions, start: Start<'a>) -> Start<'a> {
    Start {
        // For statistics and control.
        extra_ports: 2,
        refused_is_ready: options.query_key.is_some(),
        ..start
    }
}

fn configured(options: &BindOptions, place: &Place<'_>) -> anyhow::Result<Vec<OsString>> {
    place.folder.write(CONTROL_KEY, &control_key()?)?;
    let file = place
        .folder
        .write("named.conf", &configuration(options, place))?;
    let threads = options.threads.to_string();
    let flags = ["-g", "-n", &threads, "-U", &threads, "-c"].map(OsString::from);
    Ok(flags.into_iter().chain([file.into()]).collect())
}

fn flush(server: &RunningServer) -> anyhow::Result<()> {
    tell(server, &["flush"]).map(|_| ())
}

/// Runs an `rndc` command; returns its output.
fn tell(server: &RunningServer, what: &[&str]) -> anyhow::Result<String> {
    let port = server.extra_ports[1].to_string();
    control::run(server, CONTROL, &[&control_words(&port), what].concat())
}

fn control_words(port: &str) -> [&str; 6] {
    ["-s", "127.0.0.1", "-p", port, "-k", CONTROL_KEY]
}

/// Replaces the zone's signing key with a new one, once every cache has the new key.
fn key_roll(server: &RunningServer, origin: &str) -> anyhow::Result<Vec<String>> {
    let until = Instant::now() + KNOWN_MAX;
    loop {
        let status = tell(server, &["dnssec", "-status", origin])?;
        if let Some(key) = known_key(&status) {
            let port = server.extra_ports[1].to_string();
            let what = ["dnssec", "-rollover", "-key", key, origin];
            let words = control_words(&port).into_iter().chain(what);
            return Ok(words.map(str::to_owned).collect());
        }
        anyhow::ensure!(
            Instant::now() < until,
            "no key signs the zone that caches know by now: {status}"
        );
        thread::park_timeout(LOOK_EVERY);
    }
}

/// The status lines of the zone signing key that every cache knows, from `key: 39232
/// (ECDSAP256SHA256), ZSK` on.
fn known_key(status: &str) -> Option<&str> {
    let known = [
        "), ZSK",
        "dnskey:         omnipresent",
        "zone rrsig:     omnipresent",
    ];
    let mut keys = status.split("\nkey: ").skip(1);
    let key = keys.find(|key| known.iter().all(|words| key.contains(words)))?;
    key.split(' ').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_that_signs_the_zone_is_the_one_that_caches_know() {
        let status = |state: &str| {
            format!(
                "dnssec-policy: lab\n\nkey: 11 (ECDSAP256SHA256), KSK\n  published:      yes\n\n  \
                 - dnskey:         omnipresent\n\nkey: 22 (ECDSAP256SHA256), ZSK\n\n  \
                 - dnskey:         omnipresent\n  - zone rrsig:     {state}\n"
            )
        };
        assert_eq!(known_key(&status("omnipresent")), Some("22"));
        assert_eq!(known_key(&status("rumoured")), None);
    }
}

/// How long signing a large zone may take, and how often the progress is checked.
const SIGNING_MAX: Duration = Duration::from_secs(600);
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How long caches keep the old keys, with a margin.
const KNOWN_MAX: Duration = Duration::from_secs(30);
/// Keys of the policy.
const KEYS: usize = 2;
/// A new key waits only until caches have expired.
fn policy(ttl_max: Duration) -> String {
    format!(
        "dnssec-policy lab {{\n  keys {{\n    \
         ksk lifetime unlimited algorithm ecdsap256sha256;\n    \
         zsk lifetime unlimited algorithm ecdsap256sha256;\n  }};\n  \
         dnskey-ttl 1; max-zone-ttl {};\n  \
         publish-safety 0; retire-safety 0; zone-propagation-delay 0;\n  \
         parent-ds-ttl 1; parent-propagation-delay 0;\n}};\n",
        ttl_max.as_secs().max(1)
    )
}

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
    /// What it offers beside UDP and TCP: DNS over TLS, over HTTP/2, over HTTP/2 without TLS.
    pub services: Vec<Service>,
    /// Allows dynamic updates (RFC 2136) signed with this key.
    pub update_key: Option<TsigKey>,
    /// Answers only queries signed with this key; all others are REFUSED.
    pub query_key: Option<TsigKey>,
    /// Resolves the zone from the root in `root.hints`, instead of serving it.
    pub resolves: bool,
    /// Signs the zone; the greatest TTL in it.
    pub signs: Option<Duration>,
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
            services: Vec::new(),
            update_key: None,
            query_key: None,
            resolves: false,
            signs: None,
            extra_options: String::new(),
        }
    }
}

/// A running `named`, gone when dropped.
#[derive(Debug)]
pub struct BindTarget {
    pub(super) server: RunningServer,
}

impl Deref for BindTarget {
    type Target = RunningServer;

    fn deref(&self) -> &RunningServer {
        &self.server
    }
}

impl BindTarget {
    /// Starts `named` and waits until it answers for the zone on all its ports, at most a minute.
    ///
    /// # Errors
    /// BIND is not installed, its configuration or the zone is wrong (the message has the end of
    /// BIND's log), or no free ports were found.
    pub fn start(options: &BindOptions) -> anyhow::Result<BindTarget> {
        let start = Start {
            families: options.families,
            services: &options.services,
            resources: options.cpu.map(Resources::cpu).unwrap_or_default(),
            ..Start::new(&SERVER, &options.zone)
        };
        let server = run(options, start)?;
        Ok(BindTarget { server })
    }

    /// Reads the counters of the statistics channel.
    ///
    /// They count from the start and contain the query that found the server ready: take them
    /// before and after, and use [`BindCounters::since`].
    ///
    /// # Errors
    /// `named` has ended or its answer cannot be read; the message has the end of its log.
    pub fn statistics(&self) -> anyhow::Result<BindCounters> {
        BindCounters::read(statistics_channel(&self.server.extra_ports))
            .map_err(|error| error.context(self.server.process.error("gave no statistics")))
    }
}

fn statistics_channel(extra_ports: &[u16]) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), extra_ports[0])
}

/// The key of the control channel, of this server alone.
fn control_key() -> anyhow::Result<String> {
    let mut octets = [0; 32];
    File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut octets))
        .context("no random numbers")?;
    let [high, low] = [0, 16].map(|from| {
        let octets = octets[from..].first_chunk();
        octets.map_or(0, |it| u128::from_be_bytes(*it))
    });
    // Hexadecimal digits are base64 too.
    Ok(format!(
        "key control {{ algorithm hmac-sha256; secret \"{high:032x}{low:032x}\"; }};\n"
    ))
}

/// The configuration: one zone, no recursion, nothing outside the folder.
fn configuration(options: &BindOptions, place: &Place<'_>) -> String {
    let folder = place.folder.path().display();
    let statistics = statistics_channel(place.extra_ports);
    let mut text = keys(options);
    if let Some(ttl_max) = options.signs {
        text.push_str(&policy(ttl_max));
    }
    if options.services.iter().any(|service| service.has_tls()) {
        text.push_str("tls lab { cert-file \"server.pem\"; key-file \"server.key\"; };\n");
    }
    let recursion = match options.resolves {
        true => "recursion yes;\n  allow-recursion { any; };",
        false => "recursion no;",
    };
    // Writing to a String does not fail.
    let _ = writeln!(text, "http lab {{ endpoints {{ \"{DOH_PATH}\"; }}; }};");
    let _ = write!(
        text,
        "include \"{folder}/{CONTROL_KEY}\";\n\
         controls {{ inet 127.0.0.1 port {} allow {{ 127.0.0.1; }} keys {{ control; }}; }};\n\
         statistics-channels {{ inet {} port {} allow {{ 127.0.0.1; }}; }};\n\
         options {{\n  directory \"{folder}\";\n  pid-file \"{folder}/named.pid\";\n  \
         session-keyfile \"{folder}/session.key\";\n  managed-keys-directory \"{folder}\";\n  \
         {recursion}\n  notify no;\n  dnssec-validation no;\n  empty-zones-enable no;\n  \
         allow-transfer {{ any; }};\n",
        place.extra_ports[1],
        statistics.ip(),
        statistics.port()
    );
    text.push_str(&listeners(place.endpoints));
    if let Some(clients) = options.tcp_clients_max {
        let _ = writeln!(text, "  tcp-clients {clients};");
    }
    let _ = writeln!(text, "{}\n}};", options.extra_options);
    text.push_str(&zone_block(options));
    text
}

/// The keys in use, once each.
fn keys(options: &BindOptions) -> String {
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
    text
}

fn listeners(endpoints: &Endpoints) -> String {
    let mut text = String::new();
    for (statement, wants_v4) in [("listen-on", true), ("listen-on-v6", false)] {
        let mut addresses = endpoints.addresses.iter();
        let Some(host) = addresses.find(|address| address.is_ipv4() == wants_v4) else {
            let _ = writeln!(text, "  {statement} {{ none; }};");
            continue;
        };
        let _ = writeln!(
            text,
            "  {statement} port {} {{ {host}; }};",
            endpoints.do53_port
        );
        for (service, port) in &endpoints.services {
            let how = match service {
                Service::Doh2 => "tls lab http lab",
                Service::H2c => "tls none http lab",
                _ => "tls lab",
            };
            let _ = writeln!(text, "  {statement} port {port} {how} {{ {host}; }};");
        }
    }
    text
}

fn zone_block(options: &BindOptions) -> String {
    if options.resolves {
        return format!("zone \".\" {{ type hint; file \"{HINTS}\"; }};\n");
    }
    let mut text = format!(
        "zone \"{}\" {{\n  type primary; file \"zone.db\";\n",
        options.zone.origin
    );
    if options.signs.is_some() {
        // BIND's default of 10 signatures at a time takes minutes for a large zone.
        text.push_str(
            "  dnssec-policy lab; inline-signing yes;\n  \
             sig-signing-signatures 1000; sig-signing-nodes 1000;\n",
        );
    }
    if let Some(key) = &options.update_key {
        let _ = writeln!(text, "  allow-update {{ key \"{}\"; }};", key.name);
    }
    if let Some(key) = &options.query_key {
        let _ = writeln!(text, "  allow-query {{ key \"{}\"; }};", key.name);
    }
    text.push_str("};\n");
    text
}
