//! NSD as the server under test.

use crate::target::cell::{Cell, Factor};
use crate::target::operation::{Act, Lines, Means};
use crate::target::place::Server;
use crate::target::process::Program;
use crate::target::start::Start;
use crate::target::{Product, RunningServer, Service};

/// NSD of Debian 12.
pub const NSD: Product = Product {
    name: "nsd",
    title: "NSD",
    factors: &[
        Factor::number("servers", "1", 1_024, "processes that answer"),
        Factor::number(
            "tcp-clients",
            "",
            1_000_000,
            "TCP clients of each process at once",
        ),
        Factor::lines("more lines of the server clause"),
    ],
    server: &SERVER,
    version_flag: "-v",
    reload: Some(Means {
        act: Act::Command(CONTROL, &["-c", "nsd.conf", "reload"]),
        until: [Lines::one(&["read with success"]); 2],
    }),
    key_roll: None,
    gives_zone: true,
    start,
};

/// Its control program.
const CONTROL: Program = Program::Debian {
    name: "nsd-control",
    package: "nsd",
};

const SERVER: Server = Server {
    program: Program::Debian {
        name: "nsd",
        package: "nsd",
    },
    services: &[Service::Dot],
    ready_line: None,
    // It keeps running without the zone, and answers SERVFAIL.
    fatal_lines: &["error: "],
};

/// Nothing is written outside the folder, and its control socket is there. It logs the files that
/// it reads. Its response rate limit is off: with Debian's default of 200 a second, a run would
/// only measure that limit.
const TEMPLATE: &str = "\
server:
  server-count: {servers}
  verbosity: 1
  ip-address: {address}@{port}
  ip-address: {dot.address}@{dot.port}
  tls-port: {dot.port}
  tls-service-key: \"{certificate}.key\"
  tls-service-pem: \"{certificate}.pem\"
  tcp-count: {tcp-clients}
  rrl-ratelimit: 0
  rrl-whitelist-ratelimit: 0
  username: \"\"
  chroot: \"\"
  zonesdir: \"{folder}\"
  database: \"\"
  pidfile: \"{folder}/nsd.pid\"
  zonelistfile: \"{folder}/zone.list\"
  xfrdfile: \"{folder}/xfrd.state\"
  xfrdir: \"{folder}\"
  {options}
remote-control:
  control-enable: yes
  control-interface: \"{here}/control\"
zone:
  name: \"{origin}\"
  zonefile: \"zone.db\"
  provide-xfr: 0.0.0.0/0 NOKEY
  provide-xfr: ::/0 NOKEY
";

fn start(cell: &Cell) -> anyhow::Result<RunningServer> {
    Start::of(cell).run(|place| {
        let file = place
            .folder
            .write("nsd.conf", &cell.fill(TEMPLATE, place))?;
        Ok(vec!["-d".into(), "-c".into(), file.into()])
    })
}
