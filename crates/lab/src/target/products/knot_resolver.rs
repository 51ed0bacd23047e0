//! Knot Resolver as the server under test, in front of its own BIND or in a closed Internet.

use super::BIND;
use super::proxy::start_in_front;
use crate::target::cell::{CacheControl, Cell, Factor};
use crate::target::control::answer_on_socket;
use crate::target::internet::start_resolver;
use crate::target::place::{Place, Server};
use crate::target::process::Program;
use crate::target::start::Start;
use crate::target::{Product, RunningServer, Service};

/// Knot Resolver 5 of Debian 12: queries BIND for names of the zone, once for each while it is in
/// the cache.
pub const KNOT_RESOLVER: Product = Product {
    name: "knot-resolver",
    title: "Knot Resolver",
    factors: &[
        Factor::of_behind(&[&BIND]),
        Factor::internet(),
        Factor::cache(CacheControl {
            flush,
            forget: None,
        }),
        Factor::lines("more lines of its configuration"),
    ],
    server: &SERVER,
    version_flag: "-V",
    reload: None,
    key_roll: None,
    gives_zone: false,
    start,
};

const SERVER: Server = Server {
    program: Program::Debian {
        name: "kresd",
        package: "knot-resolver",
    },
    services: &[Service::Dot, Service::Doh2],
    ready_line: None,
    fatal_lines: &[],
};

/// Names outside the zone are REFUSED, and the modules for root keys and time checks are unloaded,
/// so that it sends no query to the Internet.
const TEMPLATE: &str = "\
net.tls('{certificate}.pem', '{certificate}.key')
net.listen('{address}', {port}, { kind = 'dns' })
net.listen('{dot.address}', {dot.port}, { kind = 'tls' })
net.listen('{doh2.address}', {doh2.port}, { kind = 'doh2' })
net.listen('127.0.0.1', {other.port}, { kind = 'webmgmt' })
modules = { 'policy', 'stats', 'http' }
http.config({ tls = false })
modules.unload('ta_update')
modules.unload('ta_signal_query')
modules.unload('priming')
modules.unload('detect_time_skew')
trust_anchors.remove('.')
cache.size = 10 * MB
worker.control_path = '{here}/control/'
{options}
";

/// Forwards names of the zone to the server behind it, and no other names.
const FORWARDS: &str = "\
policy.add(policy.suffix(policy.STUB('{behind}'), { todname('{origin}') }))
policy.add(policy.all(policy.REFUSE))
";

/// Resolves from the root on, also special-use names (RFC 6761) such as `test`. By default it
/// sometimes queries missing addresses of name servers and answers SERVFAIL meanwhile. It does that
/// too after its cache was emptied, unless it may query servers on loopback.
const RESOLVES: &str = "\
net.ipv6 = false
modules.load('hints')
hints.root_file('{folder}/root.hints')
policy.add(policy.all(policy.FLAGS('ALLOW_LOCAL')))
policy.add(policy.all(policy.PASS))
";

fn start(cell: &Cell) -> anyhow::Result<RunningServer> {
    let start = Start {
        // For its exposition.
        extra_ports: 1,
        ..Start::of(cell)
    };
    let configured = |place: &Place<'_>, how: &str| {
        let text = cell.fill(&format!("{TEMPLATE}{how}"), place);
        let file = place.folder.write("kresd.conf", &text)?;
        let folder = place.folder.path();
        Ok(vec!["-n".into(), "-c".into(), file.into(), folder.into()])
    };
    if !cell.text("internet").is_empty() {
        return start_resolver(cell, &start, |place| configured(place, RESOLVES));
    }
    start_in_front(cell, &start, |place, behind| {
        let behind = format!("{}@{}", behind.ip(), behind.port());
        configured(place, &FORWARDS.replace("{behind}", &behind))
    })
}

fn flush(server: &RunningServer) -> anyhow::Result<()> {
    let socket = format!("control/{}", server.process_id());
    let answer = answer_on_socket(server, &socket, "cache.clear()")?;
    anyhow::ensure!(
        answer.contains("['count'] = "),
        "`cache.clear()` failed: {answer}"
    );
    Ok(())
}
