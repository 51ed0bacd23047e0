//! PowerDNS Authoritative Server as the server under test.

use crate::target::cell::{Cell, Factor};
use crate::target::control;
use crate::target::operation::{Act, Lines, Means};
use crate::target::place::{Place, Server};
use crate::target::process::Program;
use crate::target::start::Start;
use crate::target::{Product, RunningServer};

/// PowerDNS Authoritative Server of Debian 12, with the zone in its BIND backend.
pub const PDNS_AUTH: Product = Product {
    name: "pdns-auth",
    title: "PowerDNS Authoritative Server",
    factors: &[
        Factor::number("threads", "1", 1_024, "threads that receive"),
        Factor::number("backends", "3", 1_024, "backend threads of each of them"),
        // Its default, 20, is below what most loads need.
        Factor::number("tcp-clients", "1000", 1_000_000, "TCP clients at once"),
        Factor::lines("more lines of its configuration"),
    ],
    server: &SERVER,
    version_flag: "--version",
    reload: Some(Means {
        act: Act::Command(CONTROL, &["--config-dir=.", "bind-reload-now", "{origin}"]),
        until: [Lines::NONE; 2],
    }),
    key_roll: None,
    gives_zone: true,
    start,
};

/// Its control program.
const CONTROL: Program = Program::Debian {
    name: "pdns_control",
    package: "pdns-server",
};

const SERVER: Server = Server {
    program: Program::Debian {
        name: "pdns_server",
        package: "pdns-server",
    },
    services: &[],
    ready_line: Some("ready to distribute questions"),
    // It keeps running without the zone, and answers SERVFAIL.
    fatal_lines: &["[bindbackend] error at"],
};

/// Nothing is written outside the folder, and no query is sent to the Internet.
const TEMPLATE: &str = "\
daemon=no
guardian=no
disable-syslog=yes
security-poll-suffix=
socket-dir={here}
local-address={addresses}
local-port={port}
receiver-threads={threads}
distributor-threads={backends}
max-tcp-connections={tcp-clients}
allow-axfr-ips=0.0.0.0/0,::/0
webserver=yes
webserver-address={other.address}
webserver-allow-from=0.0.0.0/0
webserver-port={other.port}
webserver-loglevel=none
launch=bind
bind-config={folder}/named.conf
{options}
";

/// The database that marks the zone as signed.
const SIGNED: &str = "bind-dnssec-db={folder}/dnssec.db\n";

const ZONES: &str = "zone \"{origin}\" { type master; file \"{folder}/zone.db\"; };";

fn start(cell: &Cell) -> anyhow::Result<RunningServer> {
    let start = Start {
        // For its web server.
        extra_ports: 1,
        ..Start::of(cell)
    };
    let is_signed = cell.zone.is_signed()?;
    start.run(|place| {
        place.folder.write("named.conf", &cell.fill(ZONES, place))?;
        let signed = if is_signed { SIGNED } else { "" };
        let text = cell.fill(&format!("{TEMPLATE}{signed}"), place);
        place.folder.write("pdns.conf", &text)?;
        if is_signed {
            mark_as_signed(cell, place)?;
        }
        let folder = place.folder.path().display();
        Ok(vec![format!("--config-dir={folder}").into()])
    })
}

/// Without this mark it looks for its own keys, and sends no signatures.
fn mark_as_signed(cell: &Cell, place: &Place<'_>) -> anyhow::Result<()> {
    let program = Program::Debian {
        name: "pdnsutil",
        package: "pdns-server",
    };
    let folder = place.folder;
    let origin = cell.zone.origin.as_str();
    for words in [["create-bind-db", "dnssec.db"], ["set-presigned", origin]] {
        control::run_before(folder, program, &[&["--config-dir=."], &words[..]].concat())?;
    }
    Ok(())
}
