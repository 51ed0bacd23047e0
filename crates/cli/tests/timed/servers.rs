//! Caches of servers: what is in them is answered without the delay of what is behind them.

use std::fs;

use measure::RunRecord;
use measure::internet::Internet;
use testing::folder::Folder;
use testing::quiet::{Disturbance, Quiet};
use testing::timed::{Attempt, on_quiet_host};

use crate::experiments::{EXTERNAL, experiment};
use crate::host::wrong_unless;

#[test]
fn names_outside_the_zone_are_asked_of_a_resolver_once_and_kept() {
    on_quiet_host(Quiet::VERDICT, || {
        let folder = Folder::new("timed-external");
        let names = (1..=20).map(|number| match number % 2 {
            0 => format!("test-record-{}.lab.test. A\n", number / 2),
            _ => format!("www.{number}.example. A\n"),
        });
        folder.write("names", names.collect::<String>());
        let text = EXTERNAL.replace("queries = 60", "queries = 40");
        experiment(&folder, &text, "run FILE --output OUT").succeeded();
        let only = |part: &str| {
            let mut files = fs::read_dir(folder.path(&format!("out/{part}"))).unwrap();
            fs::read_to_string(files.next().unwrap().unwrap().path()).unwrap()
        };
        let record = RunRecord::from_json(&only("records")).unwrap();
        let internet: Internet = serde_json::from_str(&only("internet")).unwrap();
        let least = record.total.distributions.service.min_ns();
        let queries = internet.servers[0].counts.queries;
        let is_right = least < Some(30_000_000) && queries == 10;
        let outcome = wrong_unless(is_right, || format!("{queries} queries, {least:?} ns"));
        Attempt {
            disturbance: Disturbance::of(&record),
            outcome,
        }
    });
}
