//! `throng fit`: profiles of captures and logs that real servers write.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use lab::target::{BindOptions, UnboundOptions, UnboundTarget, Zone};
use testing::folder::Folder;
use testing::program::execute;

use crate::dnsperf::bind;
use crate::process::{throng, throng_with};
use crate::query_logs::count;

/// Asks for names of the zone: over UDP, over TCP with DO, and without RD.
fn ask(server: &str, port: u16) {
    for number in 1..=5 {
        let name = format!("test-record-{number}.lab.test");
        for how in ["+noedns A", "+tcp +dnssec +cd AAAA", "+norecurse TYPE65280"] {
            execute(&format!("dig @{server} -p {port} +tries=1 {name} {how}")).succeeded();
        }
    }
}

#[test]
fn binds_query_log_and_dnstap_of_the_same_queries_say_the_same() {
    let folder = Folder::new("fit-bind");
    let file = folder.path("bind.dnstap");
    // Servers that root starts run as another user.
    fs::set_permissions(folder.folder(), fs::Permissions::from_mode(0o1777)).unwrap();
    let server = bind(|options: BindOptions| BindOptions {
        extra_options: format!(
            "querylog yes; dnstap {{ auth; client; }}; dnstap-output file \"{file}\"; \
             fstrm-set-flush-timeout 1;"
        ),
        ..options
    });
    let address = server.endpoints().do53();
    ask(&address.ip().to_string(), address.port());
    let log = server.log();
    // Frames are written by the second; each look takes the time of another query.
    let more = format!(
        "dig @{} -p {} +tries=1 more.lab.test NS",
        address.ip(),
        address.port()
    );
    let of_dnstap = (0..1_000).find_map(|_| {
        execute(&more).succeeded();
        let profile = throng(&format!("fit {file} -o -"));
        let is_whole = profile.code == Some(0) && count(&profile.stdout, "queries") >= 15;
        is_whole.then_some(profile.stdout)
    });
    drop(server);
    let of_log = throng_with("fit - --capture-format bind -o -", log.as_bytes()).succeeded();
    for profile in [of_log, of_dnstap.unwrap()] {
        for key in [
            "A",
            "AAAA",
            "TYPE65280",
            "checking_disabled",
            "dnssec_ok",
            "tcp",
        ] {
            assert_eq!(count(&profile, key), 5, "{key} in {profile}");
        }
    }
}

#[test]
fn unbounds_log_of_queries_and_replies_counts_each_once() {
    let zone = Zone {
        origin: "lab.test.".into(),
        text: "$TTL 1\n@ SOA ns h 1 2 3 4 5\n@ NS ns\nns A 127.0.0.1\n".into(),
    };
    let server = UnboundTarget::start(&UnboundOptions {
        extra_options: "log-queries: yes\n  log-replies: yes\n".into(),
        ..UnboundOptions::new(zone)
    })
    .unwrap();
    let address = server.endpoints().do53();
    ask(&address.ip().to_string(), address.port());
    let log = server.log();
    drop(server);
    let asked: String = log
        .lines()
        .filter(|line| line.contains("test-record"))
        .fold(
            "[1] unbound[1:0] info: 127.0.0.1 first.lab.test. NS IN\n".into(),
            |text, line| text + line + "\n",
        );
    let profile = throng_with("fit - -o -", asked.as_bytes()).succeeded();
    assert_eq!(
        (count(&profile, "queries"), count(&profile, "NXDOMAIN")),
        (16, 15)
    );
}
