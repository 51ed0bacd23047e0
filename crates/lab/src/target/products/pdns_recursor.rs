//! PowerDNS Recursor as the server under test: answers its own zone and resolves nothing else, or
//! resolves it in a closed Internet.

use crate::target::cell::{CacheControl, Cell, Factor};
use crate::target::control;
use crate::target::internet::start_resolver;
use crate::target::operation::{Act, Lines, Means};
use crate::target::place::Server;
use crate::target::process::Program;
use crate::target::start::Start;
use crate::target::{Product, RunningServer};

/// PowerDNS Recursor of Debian 12, as the authoritative server of a zone.
pub const PDNS_RECURSOR: Product = Product {
    name: "pdns-recursor",
    title: "PowerDNS Recursor",
    factors: &[
        Factor::number("threads", "1", 1_024, "threads that answer"),
        Factor::number("tcp-clients", "", 1_000_000, "TCP clients at once"),
        Factor::internet(),
        Factor::cache(CacheControl {
            flush,
            forget: Some(forget),
        }),
        Factor::lines("more lines of its configuration"),
    ],
    server: &SERVER,
    version_flag: "--version",
    reload: Some(Means {
        act: Act::Command(CONTROL, &["--config-dir=.", "reload-zones"]),
        until: [Lines::NONE; 2],
    }),
    key_roll: None,
    gives_zone: false,
    start,
};

/// Its control program.
const CONTROL: Program = Program::Debian {
    name: "rec_control",
    package: "pdns-recursor",
};

/// Names in one command, whose length is limited.
const NAMES_AT_ONCE: usize = 100;

const SERVER: Server = Server {
    program: Program::Debian {
        name: "pdns_recursor",
        package: "pdns-recursor",
    },
    services: &[],
    ready_line: None,
    fatal_lines: &[],
};

const TEMPLATE: &str = "\
daemon=no
write-pid=no
disable-syslog=yes
security-poll-suffix=
socket-dir={here}
dnssec=off
local-address={addresses}
local-port={port}
threads={threads}
max-tcp-clients={tcp-clients}
webserver=yes
webserver-address={other.address}
webserver-allow-from=0.0.0.0/0
webserver-port={other.port}
webserver-loglevel=none
{options}
";

/// It may query no other address, so it sends no query to the Internet.
const SERVES: &str = "\
hint-file=no
dont-query=0.0.0.0/0, ::/0
auth-zones={origin}={folder}/zone.db
";

/// It may query servers on loopback.
const RESOLVES: &str = "\
hint-file={folder}/root.hints
dont-query=
";

fn start(cell: &Cell) -> anyhow::Result<RunningServer> {
    let start = Start {
        // For its web server.
        extra_ports: 1,
        ..Start::of(cell)
    };
    let how = match cell.text("internet") {
        "" => SERVES,
        _ => RESOLVES,
    };
    start_resolver(cell, &start, |place| {
        let text = cell.fill(&format!("{TEMPLATE}{how}"), place);
        place.folder.write("recursor.conf", &text)?;
        let folder = place.folder.path().display();
        Ok(vec![format!("--config-dir={folder}").into()])
    })
}

fn flush(server: &RunningServer) -> anyhow::Result<()> {
    // The root and all below it.
    let words = ["--config-dir=.", "--socket-dir=.", "wipe-cache", ".$"];
    control::run(server, CONTROL, &words).map(|_| ())
}

/// It repeats a SERVFAIL for a minute (`packetcache-servfail-ttl`).
fn forget(server: &RunningServer, names: &[&str]) -> anyhow::Result<()> {
    for names in names.chunks(NAMES_AT_ONCE) {
        let words = ["--config-dir=.", "--socket-dir=.", "wipe-cache"];
        control::run(server, CONTROL, &[&words, names].concat())?;
    }
    Ok(())
}
