//! CoreDNS as the server under test: the one that has all of DoT, DoH/2, DoH/3 and DoQ.

use std::fmt::Write as _;
use std::net::SocketAddr;

use rustix::process::Signal;

use super::BIND;
use super::proxy::start_in_front;
use crate::target::cell::{Cell, Factor};
use crate::target::internet::start_external;
use crate::target::operation::{Act, Lines, Means};
use crate::target::place::{Place, Server};
use crate::target::process::Program;
use crate::target::start::Start;
use crate::target::{Product, RunningServer, Service, TLS_NAME, Zone};

/// CoreDNS with its `file` plugin.
pub const COREDNS: Product = Product {
    name: "coredns",
    title: "CoreDNS",
    factors: &[
        Factor::word(
            "behind",
            &["none", "udp", "dot"],
            "none answers itself; the others ask a BIND behind it so (plugin forward)",
        ),
        Factor::of_behind(&[&BIND]),
        Factor::external(),
        Factor::lines("more plugins of every server block"),
    ],
    server: &SERVER,
    version_flag: "-version",
    reload: Some(Means {
        act: Act::Signal(Signal::USR1),
        until: [Lines::one(&["Reloading complete"]); 2],
    }),
    key_roll: None,
    gives_zone: true,
    start,
};

const SERVER: Server = Server {
    program: Program::CoreDns,
    services: &[Service::Dot, Service::Doh2, Service::Doh3, Service::Doq],
    ready_line: None,
    // Logged if a reload fails.
    fatal_lines: &["restart failed"],
};

fn start(cell: &Cell) -> anyhow::Result<RunningServer> {
    let external = start_external(cell)?;
    let resolver = external.as_ref().map(|it| it.endpoints().do53());
    let start = Start {
        // For its exposition.
        extra_ports: 1,
        ..Start::of(cell)
    };
    let configured = |place: &Place<'_>, source: String| {
        let text = configuration(cell, place, (&source, resolver));
        let file = place.folder.write("Corefile", &text)?;
        Ok(vec!["-conf".into(), file.into()])
    };
    let mut server = match cell.text("behind") {
        "none" => start.run(|place| {
            let folder = place.folder.path().display();
            let source = format!("  file {folder}/zone.db\n  transfer {{\n    to *\n  }}");
            configured(place, source)
        }),
        how => start_in_front(cell, &start, |place, behind| {
            let folder = place.folder.path().display();
            let source = match how {
                "dot" => format!(
                    "  forward . tls://{behind} {{\n    tls {folder}/behind.pem\n    \
                     tls_servername {TLS_NAME}\n  }}"
                ),
                _ => format!("  forward . {behind} {{\n    prefer_udp\n  }}"),
            };
            configured(place, source)
        }),
    }?;
    if let Some(external) = external {
        server.put_behind(external);
    }
    Ok(server)
}

/// Starts CoreDNS as a forwarder without a cache: its plugin `forward` sends every query to the
/// server at that address over UDP. Waits until it answers for the zone of that server.
///
/// # Errors
/// CoreDNS is missing (`servers/prepare` builds it), the other server does not answer, or no free
/// ports were found.
pub fn coredns_in_front_of(upstream: SocketAddr, zone: &Zone) -> anyhow::Result<RunningServer> {
    let start = Start {
        extra_ports: 1,
        ..Start::new(&SERVER, zone)
    };
    start.run(|place| {
        let (port, exposition) = (place.endpoints.do53_port, place.extra_ports[0]);
        let address = place.endpoints.addresses[0];
        let text = format!(
            "dns://.:{port} {{\n  bind {address}\n  errors\n  prometheus 127.0.0.1:{exposition}\n  \
             forward . {upstream} {{\n    prefer_udp\n  }}\n}}\n"
        );
        let file = place.folder.write("Corefile", &text)?;
        Ok(vec!["-conf".into(), file.into()])
    })
}

/// One server block for each port, with the plugin that has the answers, and one for all names
/// outside the zone if a resolver has answers for them: they are REFUSED otherwise.
fn configuration(
    cell: &Cell,
    place: &Place<'_>,
    (source, resolver): (&str, Option<SocketAddr>),
) -> String {
    let mut sources = vec![(cell.zone.origin.as_str(), source.to_owned())];
    let (options, folder) = (cell.text("options"), place.folder.path().display());
    // Names of class CH are the server's own. A plugin may be there only once.
    let is_missing = |plugin: &&str| !options.split_whitespace().any(|word| word == *plugin);
    let own: Vec<&str> = ["chaos", "cache"].into_iter().filter(is_missing).collect();
    let own = own.join("\n  ");
    sources.extend(resolver.map(|at| (".", format!("  {own}\n  forward . {at}"))));
    let addresses: Vec<String> = place
        .endpoints
        .addresses
        .iter()
        .map(ToString::to_string)
        .collect();
    let addresses = addresses.join(" ");
    let services = place.endpoints.services.iter();
    let encrypted = services.filter_map(|(service, port)| Some((scheme(*service)?, *port)));
    let plain = [("dns", place.endpoints.do53_port)];
    let exposition = SocketAddr::new(place.other_address.into(), place.extra_ports[0]);
    let mut text = String::new();
    for (scheme, port) in plain.into_iter().chain(encrypted) {
        for (names, source) in &sources {
            // Writing to a String does not fail.
            let _ = writeln!(
                text,
                "{scheme}://{names}:{port} {{\n  bind {addresses}\n  errors\n  \
                 prometheus {exposition}\n{source}\n{options}"
            );
            if scheme != "dns" {
                let _ = writeln!(text, "  tls {folder}/server.pem {folder}/server.key");
            }
            text.push_str("}\n");
        }
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
