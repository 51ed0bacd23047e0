//! CoreDNS as the server under test: the one that has all of DoT, DoH/2, DoH/3 and DoQ.

use std::fmt::Write as _;

use super::process::Program;
use super::running::RunningServer;
use super::start::{Place, Server, Start};
use super::{Service, Zone};

pub(super) const SERVER: Server = Server {
    program: Program::CoreDns,
    services: &[Service::Dot, Service::Doh2, Service::Doh3, Service::Doq],
    ready_line: None,
    fatal_lines: &[],
};

/// Starts `coredns` with all its services.
pub(super) fn start(zone: &Zone) -> anyhow::Result<RunningServer> {
    let start = Start {
        services: SERVER.services,
        // For its exposition.
        extra_ports: 1,
        ..Start::new(&SERVER, zone)
    };
    start.run(|place| {
        let file = place
            .folder
            .write("Corefile", &configuration(zone, place))?;
        Ok(vec!["-conf".into(), file.into()])
    })
}

/// One server block for each port: names outside the zone are REFUSED, nothing is forwarded.
fn configuration(zone: &Zone, place: &Place<'_>) -> String {
    let origin = &zone.origin;
    let folder = place.folder.path().display();
    let address = place.endpoints.do53().ip();
    let services = place.endpoints.services.iter();
    let encrypted = services.filter_map(|(service, port)| Some((scheme(*service)?, *port)));
    let exposition = place.extra_ports[0];
    let mut text = String::new();
    for (scheme, port) in [("dns", place.endpoints.do53_port)]
        .into_iter()
        .chain(encrypted)
    {
        // Writing to a String does not fail.
        let _ = writeln!(
            text,
            "{scheme}://{origin}:{port} {{\n  bind {address}\n  errors\n  \
             prometheus 127.0.0.1:{exposition}\n  file {folder}/zone.db"
        );
        if scheme != "dns" {
            let _ = writeln!(text, "  tls {folder}/server.pem {folder}/server.key");
        }
        text.push_str("}\n");
    }
    text
}

fn scheme(service: Service) -> Option<&'static str> {
    match service {
        Service::Dot => Some("tls"),
        Service::Doh2 => Some("https"),
        Service::Doh3 => Some("https3"),
        Service::Doq => Some("quic"),
        Service::H2c => None,
    }
}
