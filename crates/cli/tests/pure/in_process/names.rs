//! `throng names`: each set in each form, and shuffling.

use std::collections::BTreeSet;

use testing::folder::Folder;

use crate::call::{throng, throng_with};

fn names(flags: &str) -> String {
    throng(&format!("names {flags}")).succeeded()
}

#[test]
fn the_record_set_has_every_form() {
    let set = "records --count 3 --zone lab.test --ttl 7 --format";
    let third = |form: &str| {
        names(&format!("{set} {form}"))
            .lines()
            .last()
            .unwrap()
            .to_owned()
    };
    let lines = names(&format!("{set} names"));
    let expected = "test-record-1.lab.test A\ntest-record-2.lab.test A\ntest-record-3.lab.test A\n";
    assert_eq!(lines, expected);
    assert_eq!(names("records --count 3 --zone lab.test"), expected);
    assert_eq!(
        third("ipa"),
        "ipa dnsrecord-add lab.test test-record-3 --a-rec=10.0.0.3 --ttl=7"
    );
    assert_eq!(third("zone"), "test-record-3 IN A 10.0.0.3");
    assert!(names(&format!("{set} zone")).contains("$TTL 7\n"));
    let updates = names(&format!("{set} updates"));
    assert!(
        updates.ends_with("lab.test.\nadd test-record-3 7 A 10.0.0.3\nsend\n"),
        "{updates}"
    );
    let nsupdate = names(&format!("{set} nsupdate"));
    let added = "update add test-record-3.lab.test. 7 A 10.0.0.3\nsend\n";
    assert!(
        nsupdate.starts_with("zone lab.test.\n") && nsupdate.ends_with(added),
        "{nsupdate}"
    );
    let usual = names("records");
    assert_eq!(usual.lines().count(), 1000);
    assert!(
        usual.starts_with("test-record-1.throng.test A\n"),
        "{usual}"
    );
    assert!(
        names("records --format zone").contains("$TTL 1\n"),
        "one second, as in the article"
    );
}

#[test]
fn the_service_set_has_every_form() {
    let usual = names("services");
    let count = |start: &str| usual.lines().filter(|line| line.starts_with(start)).count();
    assert_eq!((count("service-"), count("missing-")), (500, 500));
    assert_eq!(usual.lines().count(), 1100);
    let set = "services --existing 4 --missing 3 --external 2 --format";
    assert_eq!(names(&format!("{set} names")).lines().count(), 9);
    let zone = names(&format!("{set} zone"));
    assert_eq!(zone.matches("\nservice-").count(), 4, "{zone}");
    assert!(!zone.contains("missing-"), "{zone}");
    let manifests = names(&format!("{set} manifests"));
    assert_eq!(
        manifests.matches("kind: Service\n").count(),
        4,
        "{manifests}"
    );
}

#[test]
fn a_shuffle_is_a_permutation_that_its_seed_repeats() {
    let sorted = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let folder = Folder::new("shuffle");
    for set in ["records", "services"] {
        let plain = names(set);
        let file = folder.write("names.txt", &plain);
        let orders = [
            names(&format!("{set} --shuffle 5")),
            names(&format!("{set} --shuffle 6")),
            plain.clone(),
        ];
        for order in &orders {
            assert_eq!(sorted(order), sorted(&plain), "{set}");
        }
        let different: BTreeSet<&String> = orders.iter().collect();
        assert_eq!(different.len(), orders.len(), "{set}");
        assert_eq!(names(&format!("{set} --shuffle 5")), orders[0], "{set}");
        assert_eq!(
            names(&format!("shuffle {file} --seed 5")),
            orders[0],
            "{set}"
        );
        let piped = throng_with("names shuffle - --seed 5", plain.as_bytes()).succeeded();
        assert_eq!(piped, orders[0], "{set}");
    }
}
