//! Runs beside each other at one target: none disturbs another.

use std::collections::BTreeSet;

use measure::RunRecord;
use testing::folder::Folder;
use testing::ports::Listener;

use crate::process::{Responder, queries_of, throng};

const RUNS: usize = 8;

#[test]
fn eight_runs_at_once_find_one_target_over_each_transport() {
    let folder = Folder::new("beside");
    let names = folder.write("names.txt", "a.example A\n");
    let listen = ["udp", "tcp", "dot", "doh2", "doh3", "doq"].map(|it| format!("{it}:127.0.0.1:0"));
    let responder = Responder::start(&listen.join(","), "");
    for (transport, address) in &responder.addresses {
        let server = match transport.starts_with("doh") {
            true => format!("https://{address}/dns-query"),
            false => address.to_string(),
        };
        let run = format!(
            "run --quiet --format json -t {transport} --server {server} --names {names} \
             --tls-insecure --clients 2 --rate 100 --queries 30 --timeout 20s"
        );
        // Flags of TLS are refused where there is none.
        let run = match transport.as_str() {
            "udp" | "tcp" => run.replace("--tls-insecure", ""),
            _ => run,
        };
        std::thread::scope(|scope| {
            let begin = |_| scope.spawn(|| throng(&run).succeeded());
            let runs: Vec<_> = (0..RUNS).map(begin).collect();
            for stdout in runs.into_iter().map(|run| run.join().unwrap()) {
                let counts = RunRecord::from_json(&stdout).unwrap().total.counts;
                assert_eq!((counts.offered, counts.responses), (30, 30), "{transport}");
            }
        });
    }
}

#[test]
fn a_client_that_refuses_the_certificate_keeps_no_other_out() {
    let folder = Folder::new("beside-refused");
    let names = folder.write("names.txt", "a.example A\n");
    let responder = Responder::start("doq:127.0.0.1:0,doh3:127.0.0.1:0", "");
    for (transport, address) in &responder.addresses {
        let server = match transport.as_str() {
            "doh3" => format!("https://{address}/dns-query"),
            _ => address.to_string(),
        };
        let run =
            format!("run --quiet -t {transport} --server {server} --names {names} --queries 5");
        for _ in 0..3 {
            throng(&run).refused_with("certificate was refused", "--tls-insecure");
        }
        throng(&format!("{run} --tls-insecure")).succeeded();
    }
}

#[test]
fn message_ids_do_not_follow_from_the_seed() {
    let folder = Folder::new("beside-ids");
    let names = folder.write("names.txt", "a.example A\n");
    let ids = || -> Vec<[u8; 2]> {
        let flags = format!("--names {names} --seed 7 --clients 1 --queries 8 --outstanding 8");
        let queries = queries_of(&Listener::new(), &flags);
        let id = |(_, query): &(_, Vec<u8>)| [query[0], query[1]];
        queries.iter().map(id).collect()
    };
    // Eight runs begin with one ID once in 10^33 times.
    let sets: BTreeSet<Vec<[u8; 2]>> = (0..RUNS).map(|_| ids()).collect();
    assert!(sets.len() > 1, "{sets:?}");
}
