//! The scripts that ship with the project, tried out.

use load::names_file;
use script::Settings;
use script::rehearsal::{Rehearsal, rehearse};

fn check(text: &str, names: Option<&str>) -> Rehearsal {
    let questions =
        names.map(|names| names_file::parse_text(names.as_bytes(), &Default::default()));
    let settings = Settings {
        questions: questions.map_or_else(Default::default, |it| it.unwrap().into()),
        seed: 1,
        ..Settings::default()
    };
    let seen = rehearse(text, "example.lua", settings.clone()).unwrap();
    assert_eq!(seen.failures.messages, [], "{seen:?}");
    assert!(seen.queries > 500 && seen.passed.as_secs() > 60, "{seen:?}");
    let again = rehearse(text, "example.lua", settings).unwrap();
    assert_eq!(
        (again.queries, &again.metrics),
        (seen.queries, &seen.metrics)
    );
    seen
}

#[test]
fn browsers_load_pages_and_remember_what_they_asked() {
    let text = include_str!("../../../../../scenarios/scripts/browser.lua");
    let seen = check(text, None);
    assert!(seen.metrics.counters["pages"] > 20.0, "{seen:?}");
    assert!(seen.metrics.counters["answered from the cache"] > 0.0);
    assert_eq!(
        seen.metrics.observed["page ms"].count() as f64,
        seen.metrics.counters["pages"]
    );
    check(text, Some("www.example.com A\nmail.example.com A\n"));
}

#[test]
fn stub_resolvers_ask_again_and_give_up_at_last() {
    let seen = check(
        include_str!("../../../../../scenarios/scripts/stub.lua"),
        None,
    );
    for name in ["retries", "failures of the server", "found", "not found"] {
        assert!(seen.metrics.counters[name] > 0.0, "{name}: {seen:?}");
    }
}

#[test]
fn water_torture_is_told_from_what_good_clients_suffer() {
    let text = include_str!("../../../../../scenarios/scripts/water-torture.lua");
    let seen = check(text, None);
    assert!(seen.metrics.counters["attack: NXDOMAIN"] > 0.0, "{seen:?}");
}
