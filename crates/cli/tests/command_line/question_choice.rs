//! Which question is asked next, and names that are generated.

use std::collections::HashSet;

use measure::scenario::LabelForm;
use testing::folder::Folder;
use testing::ports::Listener;

use crate::process::{Responder, measured, queries_of, throng};

/// The QNAMEs and QTYPEs that a run asks for with one client, such as `a.example. 1`.
fn asked(listener: &Listener, flags: &str) -> Vec<String> {
    let queries = queries_of(&listener, &format!("--clients 1 {flags}"));
    let text = |query: &[u8]| {
        let octets = proto::name::wire_length(&query[12..]).unwrap();
        let qtype = query[12 + octets + 1];
        format!("{} {qtype}", proto::name::to_text(&query[12..]).unwrap())
    };
    queries.iter().map(|(_, query)| text(query)).collect()
}

#[test]
fn names_come_in_the_order_asked_for() {
    let folder = Folder::new("question-order");
    let lines: String = (0..8).map(|it| format!("n{it}.example A\n")).collect();
    let names = folder.write("names.txt", &lines);
    let listener = Listener::new();
    let ask = |flags: &str| asked(&listener, &format!("--names {names} {flags}"));
    let in_order = ask("--loops 2");
    let shuffled = ask("--loops 2 --question-order shuffled");
    assert_ne!(shuffled, in_order);
    for round in shuffled.chunks(8) {
        let distinct: HashSet<&String> = round.iter().collect();
        assert_eq!(distinct, in_order.iter().collect());
    }
    let uniform = ask("--queries 40 --question-order uniform");
    assert!((2..8).contains(&uniform[..8].iter().collect::<HashSet<_>>().len()));
    let zipf = ask("--queries 60 --zipf 3");
    let first = zipf.iter().filter(|name| name.starts_with("n0.")).count();
    assert!((35..60).contains(&first), "{first}");
    let typed = ask("--loops 2 --qtypes AAAA=1,MX=1");
    assert!(
        typed
            .iter()
            .zip(&in_order)
            .all(|(it, other)| it[..10] == other[..10])
    );
    assert!(
        typed
            .iter()
            .all(|it| it.ends_with(" 28") || it.ends_with(" 15"))
    );
    assert!(typed.iter().collect::<HashSet<_>>().len() > 8);
}

#[test]
fn generated_names_are_those_of_their_flags() {
    let listener = Listener::new();
    let ask = |flags: &str| asked(&listener, &format!("--queries 12 {flags}"));
    let walk = ask("--walk zone.example --label-octets 1");
    let digits: String = walk.iter().map(|name| &name[..1]).collect();
    assert_eq!(digits, "012345678901");
    assert!(walk.iter().all(|name| name[1..] == *".zone.example. 1"));
    assert_eq!(ask("--walk example.")[11], "000000011.example. 1");

    let random = ask("--random-labels zone.example --qtypes TXT=1");
    assert!(random.iter().all(|name| name[10..] == *".zone.example. 16"));
    assert_eq!(random.iter().collect::<HashSet<_>>().len(), 12);

    let folder = Folder::new("water-torture");
    let names = folder.write("names.txt", "a.example A\nb.example NS\n");
    let torture = ask(&format!(
        "--names {names} --water-torture --label-octets 3..5"
    ));
    for (name, rest) in torture
        .iter()
        .zip([".a.example. 1", ".b.example. 2"].iter().cycle())
    {
        let (label, _) = name.split_at(name.find('.').unwrap());
        assert!(
            (3..=5).contains(&label.len()) && name.ends_with(rest),
            "{name}"
        );
    }
}

#[test]
fn no_run_asks_a_server_for_the_labels_of_another_unless_told_to() {
    let listener = Listener::new();
    let ask = |flags: &str| asked(&listener, &format!("--queries 3 --random-labels a {flags}"));
    let (first, second) = (ask(""), ask(""));
    assert!(first.iter().all(|name| !second.contains(name)));
    assert_eq!(ask("--label-seed 7"), ask("--label-seed 7"));
    // The responder knows no names from before; its runs can be repeated.
    let seed = |flags: &str| {
        let record = measured(&format!("--queries 10 --random-labels a {flags}"));
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
        let record = measured(&format!("{flags} --edns-padding -t dot --queries 50"));
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
    let text = throng(&format!("{sim} {ratio} --cache-ttl 1s --hot-names 50")).succeeded();
    for part in [
        "random labels under zone.example; random labels of 10 bytes; 80.0 % repeat one of 50",
        "80.0 % wanted",
    ] {
        assert!(text.contains(part), "{text}");
    }
    let record = measured(&format!("{ratio} --queries 5000 --workers 2"));
    let repeated = record.total.counts.repeated;
    assert!((3_960..=4_040).contains(&repeated), "{repeated}");
    let folder = Folder::new("hot-names");
    let names = folder.write("names.txt", "a.example A\nb.example A\nc.example A\n");
    let record = measured(&format!(
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

#[test]
fn a_walk_through_the_zone_of_a_responder_counts_what_is_missing() {
    let folder = Folder::new("walked-zone");
    let mut zone = "$ORIGIN zone.example.\n@ 60 SOA ns h 1 1 1 1 1\n".to_owned();
    (0..10).for_each(|number| zone.push_str(&format!("{number:02} 60 A 192.0.2.1\n")));
    let zone = folder.write("zone", &zone);
    let responder = Responder::start("udp:127.0.0.1:0", &format!("--zone {zone}"));
    let record = measured(&format!(
        "--server {} --walk zone.example --label-octets 2 --queries 200",
        responder.address()
    ));
    let rcodes = &record.total.counts.rcodes.by_rcode;
    assert_eq!((rcodes[0], rcodes[3]), (20, 180));
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
        ("--zipf 1 --loops 2", "which chance decides", "--queries"),
        ("--walk a --loops 2", "which chance decides", "--queries"),
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
