//! `throng names`: the way from a set to a server and a measured run.

use testing::folder::Folder;
use testing::program::execute;

use crate::process::{Responder, measured, throng};

fn names(flags: &str) -> String {
    throng(&format!("names {flags}")).succeeded()
}

#[test]
fn zones_of_both_sets_load_in_named_checkzone() {
    let folder = Folder::new("checkzone");
    for (origin, flags, records) in [
        (
            "lab.test",
            "records --zone lab.test --count 1000 --format zone",
            1000,
        ),
        ("cluster.local", "services --format zone", 500),
    ] {
        let zone = folder.write("checked.zone", names(flags));
        let said = execute(&format!("named-checkzone -D {origin} {zone}")).succeeded();
        let addresses = said.lines().filter(|line| line.contains("IN A\t")).count();
        // The name server of the zone has one too.
        assert_eq!(addresses, records + 1, "{origin}");
    }
}

#[test]
fn a_set_is_served_by_the_responder_and_measured_without_loss() {
    let folder = Folder::new("served");
    let zone = folder.write(
        "lab.zone",
        names("records --zone lab.test --count 200 --format zone"),
    );
    let file = folder.write(
        "names.txt",
        names("records --zone lab.test --count 200 --shuffle 3"),
    );
    let listen = "udp:127.0.0.1:0,tcp:127.0.0.1:0";
    let responder = Responder::start(listen, &format!("--zone {zone}"));
    for (transport, address) in responder.addresses.clone() {
        let flags = format!("--server {address} --transport {transport} --names {file}");
        let record = measured(&format!("{flags} --loops 5"));
        let counts = &record.total.counts;
        assert_eq!((counts.sent, counts.lost()), (1000, 0), "{transport}");
        assert_eq!(counts.rcodes.by_rcode[0], 1000, "{transport}");
    }
    let counters = responder.counters();
    assert_eq!(counters.get("NOERROR"), 2000, "{}", counters.0);
}

#[test]
fn missing_services_do_not_exist_and_external_names_are_elsewhere() {
    let folder = Folder::new("services");
    let set = "services --existing 40 --missing 30 --external 20";
    let zone = folder.write("services.zone", names(&format!("{set} --format zone")));
    let file = folder.write("names.txt", names(&format!("{set} --shuffle 1")));
    let responder = Responder::start("udp:127.0.0.1:0", &format!("--zone {zone}"));
    let address = responder.address();
    let record = measured(&format!("--server {address} --names {file} --loops 2"));
    let counts = &record.total.counts;
    assert_eq!((counts.sent, counts.lost()), (180, 0));
    let rcode = |number: usize| counts.rcodes.by_rcode[number];
    assert_eq!(
        [rcode(0), rcode(3), rcode(5)],
        [80, 60, 40],
        "NOERROR, NXDOMAIN, REFUSED"
    );
    assert_eq!(record.goodput(), 140);
}
