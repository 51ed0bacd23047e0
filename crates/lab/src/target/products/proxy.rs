//! dnsdist and HAProxy as the server under test, each in front of its own server.

use std::fmt::Write as _;
use std::net::SocketAddr;

use super::{BIND, UNBOUND};
use crate::target::cell::{Cell, Factor};
use crate::target::place::{Place, Server};
use crate::target::process::Program;
use crate::target::start::Start;
use crate::target::{DOH_PATH, Product, RunningServer, Service, TLS_NAME};

/// dnsdist 1.7 of Debian 12 in front of BIND.
pub const DNSDIST: Product = Product {
    name: "dnsdist",
    title: "dnsdist",
    factors: &[
        BEHIND,
        Factor::of_behind(&[&BIND]),
        Factor::lines("more lines of its configuration"),
    ],
    server: &DNSDIST_SERVER,
    version_flag: "--version",
    reload: None,
    key_roll: None,
    gives_zone: false,
    start: start_dnsdist,
};

/// HAProxy of Debian 12 as TLS proxy in front of the TCP of BIND or Unbound; no UDP.
pub const HAPROXY: Product = Product {
    name: "haproxy",
    title: "HAProxy",
    factors: &[
        Factor::number("threads", "1", 1_024, "threads that pass connections on"),
        Factor::number("connections", "1000", 1_000_000, "connections at once"),
        Factor::backend(&[BIND.name, UNBOUND.name]),
        Factor::of_behind(&[&BIND, &UNBOUND]),
    ],
    server: &HAPROXY_SERVER,
    version_flag: "-v",
    reload: None,
    key_roll: None,
    gives_zone: false,
    start: start_haproxy,
};

/// The transport to the server behind it.
const BEHIND: Factor = Factor::word("behind", &["udp", "dot"], "how it asks the BIND behind it");

const DNSDIST_SERVER: Server = Server {
    program: Program::Debian {
        name: "dnsdist",
        package: "dnsdist",
    },
    services: &[Service::Dot, Service::Doh2],
    ready_line: None,
    fatal_lines: &["fatal"],
};

const HAPROXY_SERVER: Server = Server {
    program: Program::Debian {
        name: "haproxy",
        package: "haproxy",
    },
    services: &[Service::Dot],
    ready_line: None,
    fatal_lines: &["[alert]"],
};

/// UDP, TCP and its services, answered by BIND over UDP and TCP.
fn start_dnsdist(cell: &Cell) -> anyhow::Result<RunningServer> {
    let start = Start {
        // For its web server.
        extra_ports: 1,
        ..Start::of(cell)
    };
    start_in_front(cell, &start, |place, behind| {
        let text = dnsdist_configuration(cell, place, behind);
        let file = place.folder.write("dnsdist.conf", &text)?;
        Ok(vec!["--supervised".into(), "-C".into(), file.into()])
    })
}

/// Terminates TLS, and passes on plain TCP unchanged. The server behind it accepts as many clients
/// as HAProxy has connections, unless another number is set.
fn start_haproxy(cell: &Cell) -> anyhow::Result<RunningServer> {
    let mut cell = cell.clone();
    if cell.behind()?.number("tcp-clients").is_none() {
        let setting = format!("behind-tcp-clients={}", cell.text("connections"));
        cell = cell.set(&setting)?;
    }
    let cell = &cell;
    let start = Start {
        has_udp: false,
        // For its exposition.
        extra_ports: 1,
        ..Start::of(cell)
    };
    start_in_front(cell, &start, |place, behind| {
        let text = haproxy_configuration(cell, place, behind);
        let file = place.folder.write("haproxy.cfg", &text)?;
        Ok(vec!["-db".into(), "-f".into(), file.into()])
    })
}

/// Starts a proxy in front of its own server, whose address `configure` receives. That is its DoT
/// address if the cell sets this; `behind.pem` then has the CA certificate.
pub(super) fn start_in_front(
    cell: &Cell,
    start: &Start<'_>,
    configure: impl Fn(&Place<'_>, SocketAddr) -> anyhow::Result<Vec<std::ffi::OsString>>,
) -> anyhow::Result<RunningServer> {
    let mut behind = cell.behind()?;
    behind.services = match cell.text(BEHIND.name) {
        "dot" => vec![Service::Dot],
        _ => Vec::new(),
    };
    let name = cell.lasting.as_ref();
    let name = name.map(|name| format!("{name}-{}", behind.product.name));
    (behind.lasting, behind.front) = (name, cell.lasting.clone());
    let behind = behind.start()?;
    let endpoints = behind.endpoints();
    let address = endpoints.dot().unwrap_or_else(|| endpoints.do53());
    let mut server = start.run(|place| {
        if let Some(authority) = behind.ca_pem() {
            place.folder.write("behind.pem", authority)?;
        }
        configure(place, address)
    })?;
    server.behind = Some(Box::new(behind));
    Ok(server)
}

fn dnsdist_configuration(cell: &Cell, place: &Place<'_>, behind: SocketAddr) -> String {
    let tls = match cell.text(BEHIND.name) {
        "dot" => format!(", tls='openssl', caStore='behind.pem', subjectName='{TLS_NAME}'"),
        _ => String::new(),
    };
    // Without the second line it queries the Internet for its security status.
    let mut text = format!(
        "setACL({{'0.0.0.0/0', '::/0'}})\n\
         setSecurityPollSuffix('')\n\
         webserver('127.0.0.1:{}')\n\
         setWebserverConfig({{statsRequireAuthentication=false}})\n\
         newServer({{address='{behind}', name='bind'{tls}}})\n",
        place.extra_ports[0]
    );
    let pair = "'server.pem', 'server.key'";
    for address in place.endpoints.do53_all() {
        // Writing to a String does not fail.
        let _ = writeln!(text, "addLocal('{address}')");
    }
    for (service, address) in place.endpoints.services_all() {
        let _ = match service {
            Service::Doh2 => writeln!(text, "addDOHLocal('{address}', {pair}, '{DOH_PATH}')"),
            _ => writeln!(text, "addTLSLocal('{address}', {pair})"),
        };
    }
    text + cell.text("options") + "\n"
}

fn haproxy_configuration(cell: &Cell, place: &Place<'_>, behind: SocketAddr) -> String {
    let mut text = format!(
        "global\n  nbthread {}\n  maxconn {}\n\
         defaults\n  mode tcp\n  timeout connect 10s\n  timeout client 30s\n  \
         timeout server 30s\nfrontend statistics\n  mode http\n  bind 127.0.0.1:{}\n  \
         http-request use-service prometheus-exporter if {{ path /metrics }}\n\
         frontend lab\n  default_backend server\n",
        cell.text("threads"),
        cell.text("connections"),
        place.extra_ports[0]
    );
    for address in place.endpoints.do53_all() {
        // Writing to a String does not fail.
        let _ = writeln!(text, "  bind {address}");
    }
    for (_, address) in place.endpoints.services_all() {
        let _ = writeln!(text, "  bind {address} ssl crt server.both.pem alpn dot");
    }
    let _ = writeln!(text, "backend server\n  server behind {behind}");
    text
}
