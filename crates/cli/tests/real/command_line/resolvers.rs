//! Resolvers in a closed Internet: what they ask it, and what is in their caches. Each test has a
//! temporary folder of its own. Needs root.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use measure::RunRecord;
use measure::internet::Internet;
use testing::folder::Folder;
use testing::program::execute;
use testing::wait;

use crate::process::THRONG;
use crate::topologies::{Lab, experiment, grown};

const RESOLVERS: [&str; 4] = ["unbound", "bind", "knot-resolver", "pdns-recursor"];

/// More threads than a resolver has. Each counts a query after it has answered it, so that as many
/// may be counted when the run that sent them has ended.
const THREADS_MAX: f64 = 8.0;

/// Queries that the cache could not answer, by what is read of a counter.
fn misses(product: &str, counter: impl Fn(&str) -> Option<f64>) -> Option<f64> {
    match product {
        "knot-resolver" => Some(counter("responses")? - counter("responses.cached")?),
        _ => counter("cache.misses"),
    }
}

/// Misses of a resolver before and after a run, since it was started; none if the run was over
/// before the resolver was observed.
fn misses_around(record: &RunRecord, product: &str) -> Option<[f64; 2]> {
    let mut observations = record.observations.iter();
    let found = observations.find(|it| it.profile == product)?;
    let counter = |is_after: bool| {
        let counted = misses(product, |name| {
            let series = found.series(name)?;
            if is_after {
                series.highest
            } else {
                series.lowest
            }
        });
        counted.unwrap_or_else(|| panic!("{product}: {found:#?}"))
    };
    Some([counter(false), counter(true)])
}

#[test]
fn resolvers_answer_from_a_closed_internet_and_what_is_cached_is_not_asked_again() {
    let Some(lab) = Lab::new("topology-internet") else {
        return;
    };
    for product in RESOLVERS {
        let up = format!("lab up {product} --topology veth --data zone:300 --set");
        let text = lab.throng(&format!("{up} internet=0ms/1ms/50ms"));
        let text = text.succeeded();
        let namespaces = lab.namespaces();
        // Each name once, and all of them again.
        let [cold, warm] = [(); 2].map(|()| {
            let flags = "--queries 300 --rate 300 --no-preflight --observe auto";
            lab.offered(&text, "tcp", flags)
        });
        for record in [&cold, &warm] {
            assert_eq!(record.total.counts.rcodes.by_rcode[0], 300, "{product}");
        }
        let least = |record: &RunRecord| record.total.distributions.service.min_ns().unwrap();
        assert!(least(&cold) >= 50_000_000, "{product}: {}", least(&cold));
        let [before, cold_after] = misses_around(&cold, product).unwrap();
        let [warm_before, mut after] = misses_around(&warm, product).unwrap();
        // Each name once, and no name again. What is counted between the runs is of the first one,
        // which the resolver counted late, or of the resolver itself.
        let of_runs = cold_after - before + after - warm_before;
        assert!(of_runs <= 300.0, "{product}: {of_runs} misses");
        wait::until("all misses to be counted", || {
            if after < before + 300.0 {
                let look = lab.offered(&text, "tcp", "--queries 1 --no-preflight --observe auto");
                after = misses_around(&look, product).map_or(after, |it| it[1]);
            }
            after >= before + 300.0
        });
        let ended = lab.throng(&format!("lab down {product}"));
        let said = ended.stderr.clone();
        ended.succeeded();
        let row = said
            .lines()
            .find(|line| line.starts_with("internet: root: "));
        let row = row.unwrap_or_else(|| panic!("{said}"));
        let (_, of_zone) = row.split_once("zone: ").unwrap();
        let queries: u64 = of_zone.split_once(" quer").unwrap().0.parse().unwrap();
        // A resolver that was not scheduled asks again.
        assert!(queries >= 300, "{said}");
        lab.check_empty(&namespaces);
        lab.throng(&format!("{up} internet=soon"))
            .refused_with("`soon` is wrong", "0ms/50ms");
    }
    lab.throng("lab up unbound --set internet=0ms/0ms/0ms")
        .refused_with("needs a network of its own", "topology veth");
}

const CACHES: &str = r#"
[lab]
starts = 1
runs-per-start = 2
topology = "veth"

[run]
rate = 500
queries = 60

[[server]]
product = "PRODUCT"
data = "zone:60,ttl=1h"
[server.factors]
internet = "0ms/0ms/20ms"
cache = ["cold", "warm"]
"#;

#[test]
fn cold_caches_ask_for_every_name_again_in_each_run_and_warm_ones_for_none() {
    for product in RESOLVERS {
        // Paths of sockets in there are longer than any can be.
        let long = "x".repeat(100);
        let Some(lab) = Lab::new(&format!("resolvers-cache-{product}-{long}")) else {
            return;
        };
        let text = CACHES.replace("PRODUCT", product);
        experiment(&lab, &text, "run FILE --output OUT").succeeded();
        lab.check_empty(&[]);
        let results = experiment(&lab, &text, "results OUT").succeeded();
        let cell = format!("topology veth, server {product} cache=warm");
        let told = format!("internet: {cell}: root: 0 queries");
        assert!(results.contains(&told), "{results}");
        for (cache, expected) in [("cold", 60.0), ("warm", 0.0)] {
            for run in ["run1.unused", "run2.json"] {
                let name = format!("topology=veth,server={product}%20cache%3D{cache},r1,{run}");
                let text = fs::read_to_string(lab.0.path(&format!("out/records/{name}")));
                let record = RunRecord::from_json(&text.unwrap()).unwrap();
                assert_eq!(record.scenario.labels["cache"], cache);
                assert_eq!(record.total.counts.rcodes.by_rcode[0], 60, "{name}");
                let counted = misses(product, |series| grown(&record, product, series)).unwrap();
                // The last of a run may be counted after it, in the next one or in none.
                let most = expected + THREADS_MAX;
                assert!(counted <= most, "{name}: {counted} misses");
                let least = record.total.distributions.service.min_ns();
                assert!(least >= Some(20_000_000) || cache == "warm", "{name}");
                let name = name.replace(".unused", "").replace(".json", "");
                let text = fs::read_to_string(lab.0.path(&format!("out/internet/{name}.internet")));
                let internet: Internet = serde_json::from_str(&text.unwrap()).unwrap();
                let counts = |name: &str| {
                    let mut servers = internet.servers.iter();
                    servers.find(|it| it.name == name).unwrap().counts
                };
                // Resolvers look for the addresses of name servers too. One that was not scheduled
                // asks again, and the second response may still be on its way.
                let of_zone = counts("zone");
                match cache {
                    "cold" => assert!(of_zone.responses >= 60, "{name}: {internet:?}"),
                    _ => assert_eq!(of_zone.queries, 0, "{name}: {internet:?}"),
                }
                assert!(of_zone.responses <= of_zone.queries, "{name}");
                let is_asked = counts("root").queries > 0 && counts("tld").queries > 0;
                assert_eq!(is_asked, cache == "cold", "{name}: {internet:?}");
            }
        }
    }
}

#[test]
fn caches_that_cannot_be_as_asked_are_refused() {
    let folder = Folder::new("resolvers-refused");
    let server = "[[server]]\nproduct = \"unbound\"\n[server.factors]\n";
    for (factors, error, hint) in [
        ("cache = \"cold\"", "serves the zone itself", "internet"),
        (
            "internet = \"0ms/0ms/0ms\"\ncache = \"hot\"",
            "`hot` is wrong",
            "cold or warm",
        ),
    ] {
        let file = folder.write("refused.toml", format!("{server}{factors}\n"));
        let planned = execute(&format!("{THRONG} experiment plan {file}"));
        planned.refused_with(error, hint);
    }
    let Some(lab) = Lab::new("resolvers-expired") else {
        return;
    };
    let text = CACHES
        .replace("PRODUCT", "bind")
        .replace("ttl=1h", "ttl=1s");
    let text = text.replace("queries = 60", "duration = \"2s\"");
    let finished = experiment(&lab, &text, "run FILE --output OUT");
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    for told in ["names leave the cache before the run ends", "ttl=1h"] {
        assert!(finished.stderr.contains(told), "{}", finished.stderr);
    }
}

#[test]
fn a_cache_that_cannot_be_emptied_is_told_and_there_is_no_run() {
    let Some(lab) = Lab::new("resolvers-flush") else {
        return;
    };
    let text = CACHES.replace("PRODUCT", "pdns-recursor");
    let text = text.replace("[\"cold\", \"warm\"]", "\"cold\"");
    // Its socket is where no program looks for it, at a path that is short, and where its user may
    // make one.
    fs::set_permissions(lab.0.folder(), PermissionsExt::from_mode(0o1777)).unwrap();
    let text = format!("{text}options = \"socket-dir=/proc/self/cwd/..\"\n");
    let finished = experiment(&lab, &text, "run FILE --output OUT");
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    let told = "cannot empty the cache of PowerDNS Recursor";
    assert!(finished.stderr.contains(told), "{}", finished.stderr);
    assert_eq!(fs::read_dir(lab.0.path("out/records")).unwrap().count(), 0);
    lab.check_empty(&[]);
}
