//! Which question is asked next, and names that are generated.

use std::collections::HashSet;

use testing::folder::Folder;
use testing::ports::Listener;

use crate::process::{Responder, measured, queries_of};

/// The QNAMEs and QTYPEs that a run asks for with one client, such as `a.example. 1`.
fn asked(listener: &Listener, flags: &str) -> Vec<String> {
    let queries = queries_of(listener, &format!("--clients 1 {flags}"));
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
    // The built-in responder knows no names from before; its runs can be repeated.
    let record = measured("--queries 10 --random-labels a");
    assert_eq!(record.scenario.questions.choice.labels.unwrap().seed, 1);
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
