//! Rows pick and add up; absent is not zero unless the source is known to leave zeros out.

use super::*;

const ROWS: &[Row] = &[
    Row::counter(
        "queries",
        "queries",
        &["q{proto=\"udp\"}", "q{proto=\"tcp\"}"],
        "all",
    ),
    Row::counter("queries.dot", "queries", &["q{proto=\"dot\"}"], "over TLS").or_zero("q"),
    Row::counter("cpu", "seconds", &["cpu_msec"], "CPU time").times(0.001),
    Row::gauge("backend", "connections", &["open"], "open").each("server"),
    Row::gauge("gone", "1", &["no_such"], "never there"),
];

const PROFILE: Profile = Profile {
    name: "sample",
    product: "Sample",
    access: Access::Exposition("/metrics"),
    place: "URL",
    rows: ROWS,
    version: Origin::Label("build_info", "version"),
    started: Origin::Value("start"),
    programs: &[],
    set_up: "",
};

fn reading(text: &str) -> Reading {
    crate::exposition::parse(text, |_| true).unwrap()
}

fn values(picker: &mut Picker, text: &str) -> Vec<(String, f64, bool)> {
    let picked = picker.pick(&reading(text)).into_iter();
    picked.map(|it| (it.name, it.value, it.is_stale)).collect()
}

#[test]
fn rows_add_up_what_they_name_and_leave_out_what_is_absent() {
    let mut picker = Picker::new(&PROFILE, &[], Vec::new());
    let text = "q{proto=\"udp\"} 5\nq{proto=\"tcp\"} 2\nq{proto=\"x\"} 9\ncpu_msec 1500\n\
        open{server=\"b\"} 1\nopen{server=\"a\"} 3\n";
    let expected = [
        ("queries".to_owned(), 7.0, false),
        ("queries.dot".to_owned(), 0.0, false),
        ("cpu".to_owned(), 1.5, false),
        ("backend{server=\"a\"}".to_owned(), 3.0, false),
        ("backend{server=\"b\"}".to_owned(), 1.0, false),
    ];
    assert_eq!(values(&mut picker, text), expected);
    // Nothing that it could be zero beside.
    assert_eq!(
        values(&mut picker, "cpu_msec 0\n"),
        [("cpu".to_owned(), 0.0, false)]
    );
}

#[test]
fn counter_of_several_samples_does_not_fall_when_one_of_them_ends() {
    let mut picker = Picker::new(&PROFILE, &[], Vec::new());
    let queries = |picker: &mut Picker, text: &str| values(picker, text)[0].1;
    let both = "q{proto=\"udp\"} 500\nq{proto=\"tcp\"} 20\n";
    assert_eq!(queries(&mut picker, both), 520.0);
    assert_eq!(queries(&mut picker, "q{proto=\"tcp\"} 23\n"), 523.0);
    let again = "q{proto=\"udp\"} 4\nq{proto=\"tcp\"} 25\n";
    assert_eq!(queries(&mut picker, again), 529.0);
    // The server was started again.
    let anew = "q{proto=\"udp\"} 1\nq{proto=\"tcp\"} 2\n";
    assert_eq!(queries(&mut picker, anew), 3.0);
}

#[test]
fn a_value_that_is_not_newer_than_the_one_before_is_stale() {
    let mut picker = Picker::new(&PROFILE, &[], Vec::new());
    let stale = |picker: &mut Picker, at: u64| values(picker, &format!("cpu_msec 5 {at}\n"))[0].2;
    assert!(!stale(&mut picker, 1_000_000_000_000));
    assert!(stale(&mut picker, 1_000_000_000_000));
    assert!(!stale(&mut picker, 1_000_000_001_000));
}

#[test]
fn an_allow_list_passes_series_as_they_are_named() {
    let nothing = Profile {
        rows: &[],
        ..PROFILE
    };
    let allowed = ["a_*", "b{x=\"1\"}"].map(|it| Selector::parse(it).unwrap());
    let mut picker = Picker::new(&nothing, &[], allowed.to_vec());
    assert!(picker.wants("a_seconds_total") && picker.wants("b") && !picker.wants("c"));
    let text = "a_seconds_total{y=\"2\"} 4\nb{x=\"1\"} 5\nb{x=\"2\"} 6\nc 7\n";
    let picked = picker.pick(&reading(text));
    let names: Vec<&str> = picked.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["a_seconds_total{y=\"2\"}", "b{x=\"1\"}"]);
    assert_eq!(
        (picked[0].unit.as_str(), picked[0].kind),
        ("seconds", SeriesKind::Counter)
    );
}

#[test]
fn facts_come_from_where_the_profile_says() {
    let facts = PROFILE.facts(&reading("build_info{version=\"1.2\"} 1\nstart 17\n"));
    assert_eq!(facts.product.as_deref(), Some("Sample"));
    assert_eq!(facts.version.as_deref(), Some("1.2"));
    assert_eq!(facts.started.as_deref(), Some("17"));
}

#[test]
fn what_is_not_a_series_is_refused() {
    for text in ["", "a b", "a{", "a{x}", "a{x=1}", "{x=\"1\"}"] {
        assert!(Selector::parse(text).is_err(), "{text}");
    }
    assert!(Selector::parse("*").is_ok());
}
