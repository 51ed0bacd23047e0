//! Throng on Kubernetes: a real cluster of three nodes in namespaces of this machine, which
//! `cluster/run` starts once for all cases here: to start it takes longer than most of them.
//! `THRONG_CLUSTER` in the environment is a part of the name of the only cases to be tried. Needs
//! root, the Debian packages that `./test` installs and what `servers/prepare` builds.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::thread;

use bed::Cluster;
use testing::cases::Cases;

mod articles;
mod bed;
mod cells;
mod chart;
mod ends;
mod fleet;
mod image;
mod kubelet;
mod losses;

#[allow(dead_code, reason = "the tests of the command line use the rest of it")]
#[path = "../command_line/process.rs"]
mod process;

/// A name as that of a test, and what is done.
type Case = (&'static str, fn(&Cluster));

#[test]
fn servers_in_pods_are_cells_and_fleets_are_exact() {
    let cluster = Cluster::start();
    let cases = Cases::begin();
    let run = |of: &[Case], cluster: &Cluster| {
        let only = std::env::var("THRONG_CLUSTER").unwrap_or_default();
        for (name, case) in of.iter().filter(|(name, _)| name.contains(&only)) {
            cases.run(name, || case(cluster));
        }
    };
    // Those of a list may leave nothing to the next one.
    thread::scope(|scope| {
        scope.spawn(|| run(articles::CASES, &cluster.apart("articles")));
        scope.spawn(|| run(cells::CASES, &cluster.apart("cells")));
        scope.spawn(|| run(chart::CASES, &cluster));
        scope.spawn(|| run(kubelet::CASES, &cluster));
        scope.spawn(|| run(image::CASES, &cluster));
        // In namespaces of their own. Not all at once: they would wait for CPUs of the nodes, and
        // hear so late of their start that a run ends without a result.
        for of in fleet::CASES.chunks(2).chain(losses::CASES.chunks(3)) {
            scope.spawn(|| run(of, &cluster));
        }
    });
    run(losses::OF_CLUSTER, &cluster);
    cases.run("a cluster ends with its API server", || {
        ends::with_its_api_server(cluster);
    });
    cases.end();
}
