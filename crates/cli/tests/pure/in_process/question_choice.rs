//! Which question is asked next, and names that are generated.

use measure::scenario::LabelForm;
use testing::folder::Folder;

use crate::call::{simulated, throng};

#[test]
fn random_labels_are_seeded_by_the_label_seed_or_the_seed_of_the_run() {
    let seed = |flags: &str| {
        let record = simulated(&format!("--queries 10 --random-labels a {flags}"));
        let labels = record.scenario.questions.choice.labels.unwrap();
        assert_eq!(labels.form, LabelForm::Random);
        labels.seed
    };
    assert_eq!(
        (seed(""), seed("--seed 5"), seed("--label-seed 6")),
        (1, 5, 6)
    );
}

#[test]
fn padding_has_the_octets_of_the_label_in_its_sum() {
    let folder = Folder::new("padded-labels");
    let names = folder.write("names.txt", "a.example A\nanother.name.example AAAA\n");
    for flags in [
        "--random-labels zone.example".to_owned(),
        "--walk zone.example".to_owned(),
        format!("--names {names} --water-torture --label-octets 12"),
        format!("--names {names} --random-labels zone.example --cache-hit-ratio 0.5"),
    ] {
        let record = simulated(&format!("{flags} --edns-padding -t dot --queries 50"));
        let counts = &record.total.counts;
        assert_eq!(
            (counts.responses, counts.sent_octets),
            (50, 50 * 128),
            "{flags}"
        );
    }
}

#[test]
fn a_cache_hit_ratio_is_kept_and_told() {
    let ratio = "--random-labels zone.example --cache-hit-ratio 0.8";
    let sim = "run --quiet --driver sim --queries 5000";
    let text = throng(&format!(
        "{sim} {ratio} --cache-ttl 1s --hot-names 50 --details"
    ))
    .succeeded();
    for part in [
        "random labels under zone.example; random labels of 10 bytes; 80.0 % repeat one of 50",
        "80.0 % wanted",
    ] {
        assert!(text.contains(part), "{text}");
    }
    let record = simulated(&format!("{ratio} --queries 5000 --workers 2"));
    let repeated = record.total.counts.repeated;
    assert_eq!(repeated, 4_005);
    let folder = Folder::new("hot-names");
    let names = folder.write("names.txt", "a.example A\nb.example A\nc.example A\n");
    let record = simulated(&format!(
        "{ratio} --names {names} --queries 500 --workers 1"
    ));
    let questions = &record.scenario.questions;
    assert_eq!(questions.count, 3);
    assert!(
        questions
            .source
            .ends_with("names.txt, and random labels under zone.example")
    );
    assert_eq!(questions.choice.repeats.unwrap().names_max, 3);
}

/// Checks that a run with these flags is refused with these parts in its error and its hint.
fn check(flags: &str, error_part: &str, hint_part: &str) {
    throng(&format!("run {flags}")).refused_with(error_part, hint_part);
}

#[test]
fn orders_and_qtypes_that_cannot_be_are_refused_with_their_cure() {
    let folder = Folder::new("order-faults");
    let names = folder.write("names.txt", "a.example A\n");
    for (flags, error_part, hint_part) in [
        ("--names FILE --zipf 1", "only one name", "more names"),
        (
            "--names FILE --question-order uniform",
            "only one name",
            "more names",
        ),
        ("--walk a --zipf 1", "only one name", "leave it out"),
        ("--zipf=-1", "zipf: -1 is not an exponent", "0 or more"),
        ("--zipf 1 --loops 2", "order is random", "--queries"),
        ("--walk a --loops 2", "order is random", "--queries"),
        (
            "--qtypes A",
            "qtypes: `A` is not a QTYPE with a weight",
            "A=60",
        ),
        ("--qtypes NO=1", "unknown QTYPE `NO`", "A=60"),
        (
            "--names FILE --names-format stream --qtypes A=1",
            "--qtypes has no effect on whole messages",
            "--names-format text",
        ),
    ] {
        check(&flags.replace("FILE", &names), error_part, hint_part);
    }
}

#[test]
fn generated_names_that_cannot_be_are_refused_with_their_cure() {
    let folder = Folder::new("label-faults");
    let names = folder.write("names.txt", "a.example A\n");
    for (flags, error_part, hint_part) in [
        ("--walk a..b", "walk: `a..b`", "name of a zone"),
        (
            "--names FILE --walk a",
            "--names has no effect on --walk",
            "--water-torture",
        ),
        (
            "--names FILE --random-labels a",
            "no effect on --random-labels",
            "leave out one",
        ),
        (
            "--random-labels a --label-octets 9",
            "would repeat",
            "10 or more",
        ),
        (
            "--walk a --label-octets 2..3",
            "cannot be counted",
            "at most 15",
        ),
        (
            "--water-torture --label-octets 0..3",
            "0 to 3 bytes",
            "1 to 63",
        ),
        (
            "--water-torture --label-octets x",
            "`x` is not a length",
            "4..16",
        ),
        (
            "--label-octets 5",
            "--label-octets has no effect",
            "leave out",
        ),
        (
            "--walk a --label-seed 5",
            "--label-seed has no effect",
            "leave out",
        ),
        (
            "--random-labels a --cache-hit-ratio 1.5",
            "1.5 is not a share",
            "such as 0.8",
        ),
        (
            "--random-labels a --cache-hit-ratio 0.5 --question-order shuffled",
            "equally likely",
            "leave out one",
        ),
        (
            "--water-torture -t dot --edns-padding",
            "not padded to one multiple",
            "one length",
        ),
    ] {
        check(&flags.replace("FILE", &names), error_part, hint_part);
    }
    check("--server 127.0.0.1", "no questions", "--random-labels ZONE");
    let line = "compare-transports --transports udp,tcp --random-labels a --label-seed 5";
    throng(line).refused_with("--label-seed cannot be used", "names of the one before");
}
