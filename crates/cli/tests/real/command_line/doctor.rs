//! `throng doctor` of this host.

use serde_json::Value;

use crate::process::throng;

#[test]
fn this_host_can_be_read() {
    // What is found depends on the host, but it is always something.
    let finished = throng("doctor --interface lo");
    assert!(matches!(finished.code, Some(0 | 3)), "{}", finished.stderr);
    for topic in [
        "open files",
        "source ports",
        "CPU steal",
        "queues of lo",
        "io_uring",
    ] {
        assert!(
            finished.stdout.contains(topic),
            "{topic}\n{}",
            finished.stdout
        );
    }
}

#[test]
fn ceiling_is_told_for_every_transport() {
    let told = throng("doctor --ceiling --format json").succeeded();
    let told: Value = serde_json::from_str(&told).unwrap();
    let ceilings = told["ceilings"].as_array().unwrap();
    let names = ceilings.iter().map(|it| it["transport"].as_str().unwrap());
    let names: Vec<&str> = names.collect();
    assert_eq!(names, ["udp", "tcp", "dot", "doh2", "doh3", "doq"]);
    for ceiling in ceilings {
        let rate = ceiling["queries_per_second"].as_f64().unwrap();
        assert!(rate > 0.0, "{ceiling}");
    }
}
