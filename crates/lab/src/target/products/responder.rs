//! Throng's own responder as the server under test: faster than real servers, so that the other
//! parts of a cell become visible.

use std::ffi::OsString;

use crate::target::cell::{Cell, Factor};
use crate::target::place::{Place, Server};
use crate::target::process::Program;
use crate::target::start::Start;
use crate::target::{Product, RunningServer, Service};

/// `throng responder` of this build, with one worker for each CPU that it may use.
pub const RESPONDER: Product = Product {
    name: "responder",
    title: "throng's responder",
    factors: &[
        Factor::number(
            "ceiling",
            "",
            1_000_000_000,
            "responses a second at most; further queries queue",
        ),
        Factor::text(
            "options",
            "more flags of throng responder, with spaces between them",
        ),
    ],
    server: &SERVER,
    version_flag: "--version",
    reload: None,
    key_roll: None,
    gives_zone: false,
    start,
};

const SERVER: Server = Server {
    program: Program::Own,
    services: &Service::ALL,
    ready_line: None,
    fatal_lines: &["error: "],
};

fn start(cell: &Cell) -> anyhow::Result<RunningServer> {
    Start::of(cell).run(|place| Ok(arguments(cell, place)))
}

fn arguments(cell: &Cell, place: &Place<'_>) -> Vec<OsString> {
    let folder = place.folder.path().display();
    let mut listen = Vec::new();
    for at in place.endpoints.do53_all() {
        listen.extend([format!("udp:{at}"), format!("tcp:{at}")]);
    }
    for (service, at) in place.endpoints.services_all() {
        let transport = match service {
            Service::H2c => "doh2+http",
            service => service.word(),
        };
        listen.push(format!("{transport}:{at}"));
    }
    let mut words = vec![
        "responder".to_owned(),
        format!("--listen={}", listen.join(",")),
        format!("--zone={folder}/zone.db"),
        format!("--origin={}", cell.zone.origin),
    ];
    if cell.services.iter().any(|service| service.has_tls()) {
        words.push(format!("--tls-cert={folder}/server.pem"));
        words.push(format!("--tls-key={folder}/server.key"));
    }
    words.extend(
        cell.number("ceiling")
            .map(|rate| format!("--ceiling={rate}")),
    );
    words.extend(
        cell.text("options")
            .split_ascii_whitespace()
            .map(str::to_owned),
    );
    words.into_iter().map(OsString::from).collect()
}
