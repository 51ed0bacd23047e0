//! A capture or query log: read to its end whatever is in it, fitted and made a replay list.

#![no_main]

mod shared;

use capture::{Capture, Fit, Observed, Options, ReplayBuilder, ReplayFilter, ReplayList};
use libfuzzer_sys::fuzz_target;
use load::Profile;
use load::replay::{Replay, ReplayCursor};

/// Hands out a few octets at a time, so that nothing depends on where reads end.
struct Dribble<'a>(&'a [u8], usize);

impl std::io::Read for Dribble<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let octets = self.1.min(buffer.len());
        self.0.read(&mut buffer[..octets])
    }
}

fn read(reader: impl std::io::Read) -> Option<(Vec<Observed>, String)> {
    let mut capture = Capture::new(reader, &Options::default()).ok()?;
    let observed: Vec<Observed> = capture.by_ref().collect();
    let counted = format!("{:?} {:?}", capture.skipped(), capture.end());
    Some((observed, counted))
}

/// Two workers, each with half of the clients, are told every query once.
fn walk(list: ReplayList) {
    let (queries, clients) = (list.queries.len() as u64, list.clients);
    let replay = Replay::new(list.queries, clients, 1).expect("there are queries");
    let mut told = 0;
    for own in [0..clients / 2, clients / 2..clients] {
        let mut cursor = ReplayCursor::new(&replay, own.clone());
        let mut last_ns = 0;
        while let Some(query) = cursor.peek(&replay) {
            assert!(own.contains(&query.client) && query.at_ns >= last_ns);
            last_ns = query.at_ns;
            told += 1;
            cursor.advance(&replay);
        }
    }
    assert_eq!(told, queries);
}

fuzz_target!(|octets: &[u8]| {
    let whole = read(octets);
    assert_eq!(whole, read(Dribble(octets, 7)));
    let Some((observed, _)) = whole else {
        return;
    };
    let mut fit = Fit::default();
    let mut replay = ReplayBuilder::new(ReplayFilter::default()).expect("speed 1");
    for query in &observed {
        assert!(proto::name::to_text(&query.question.name).is_some());
        fit.add(query);
        assert!(replay.add(query));
    }
    if let Ok(list) = replay.finish() {
        assert_eq!(list.queries.len(), observed.len());
        assert_eq!(list.queries[0].at_ns, 0);
        assert!(list.queries.is_sorted_by_key(|query| query.at_ns));
        walk(list);
    }
    let Ok(fitted) = fit.finish() else {
        return;
    };
    let text = fitted
        .profile
        .to_toml()
        .expect("what was fitted is a profile");
    let profile = Profile::from_toml(&text).expect("and stays one");
    assert!(shared::profiles::draw(&profile), "which can be drawn from");
});
