//! dnsdist and HAProxy as the server under test, each in front of a BIND of its own.

use std::fmt::Write as _;
use std::net::SocketAddr;

use super::bind::{BindOptions, BindTarget};
use super::process::Program;
use super::running::RunningServer;
use super::start::{Place, Server, Start};
use super::{DOH_PATH, Service, Zone};

pub(super) const DNSDIST: Server = Server {
    program: Program::Debian {
        name: "dnsdist",
        package: "dnsdist",
    },
    services: &[Service::Dot, Service::Doh2],
    ready_line: None,
    fatal_lines: &["fatal"],
};

pub(super) const HAPROXY: Server = Server {
    program: Program::Debian {
        name: "haproxy",
        package: "haproxy",
    },
    services: &[Service::Dot],
    ready_line: None,
    fatal_lines: &["[alert]"],
};

/// Starts `dnsdist`: UDP, TCP and its services, answered by BIND over UDP and TCP.
pub(super) fn start_dnsdist(zone: &Zone) -> anyhow::Result<RunningServer> {
    let start = Start {
        services: DNSDIST.services,
        ..Start::new(&DNSDIST, zone)
    };
    start_in_front(&start, |place, behind| {
        let text = dnsdist_configuration(place, behind);
        let file = place.folder.write("dnsdist.conf", &text)?;
        Ok(vec!["--supervised".into(), "-C".into(), file.into()])
    })
}

/// Starts `haproxy`: it takes TLS off, and passes on plain TCP as it is.
pub(super) fn start_haproxy(zone: &Zone) -> anyhow::Result<RunningServer> {
    let start = Start {
        services: HAPROXY.services,
        has_udp: false,
        ..Start::new(&HAPROXY, zone)
    };
    start_in_front(&start, |place, behind| {
        let text = haproxy_configuration(place, behind);
        let file = place.folder.write("haproxy.cfg", &text)?;
        Ok(vec!["-db".into(), "-f".into(), file.into()])
    })
}

fn start_in_front(
    start: &Start<'_>,
    configure: impl Fn(&Place<'_>, SocketAddr) -> anyhow::Result<Vec<std::ffi::OsString>>,
) -> anyhow::Result<RunningServer> {
    let behind = BindTarget::start(&BindOptions::new(start.zone.clone()))?.server;
    let address = behind.endpoints().do53();
    let mut server = start.run(|place| configure(place, address))?;
    server.behind = Some(Box::new(behind));
    Ok(server)
}

fn dnsdist_configuration(place: &Place<'_>, behind: SocketAddr) -> String {
    // Without the second line it asks the Internet for news about its own security.
    let mut text = format!(
        "setACL({{'127.0.0.0/8', '::1/128'}})\n\
         setSecurityPollSuffix('')\n\
         newServer({{address='{behind}', name='bind'}})\n"
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
    text
}

fn haproxy_configuration(place: &Place<'_>, behind: SocketAddr) -> String {
    let mut text = "global\n  nbthread 1\n  maxconn 1000\n\
                    defaults\n  mode tcp\n  timeout connect 10s\n  timeout client 30s\n  \
                    timeout server 30s\nfrontend lab\n  default_backend bind\n"
        .to_owned();
    for address in place.endpoints.do53_all() {
        // Writing to a String does not fail.
        let _ = writeln!(text, "  bind {address}");
    }
    for (_, address) in place.endpoints.services_all() {
        let _ = writeln!(text, "  bind {address} ssl crt server.both.pem alpn dot");
    }
    let _ = writeln!(text, "backend bind\n  server bind {behind}");
    text
}
