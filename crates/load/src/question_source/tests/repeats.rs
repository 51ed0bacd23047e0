//! Cache-hit ratios: repeated questions were sent before, fresh ones were not.

use super::*;

fn source(share: f64, ttl: Option<Duration>, names_max: u32) -> QuestionSource {
    QuestionSource {
        labels: unique_labels(),
        repeats: Some(Repeats {
            share,
            ttl,
            names_max,
        }),
        ..QuestionSource::default()
    }
}

fn key(question: Question) -> (u32, u64, u8) {
    (question.template, question.label(), question.qtype())
}

#[test]
fn the_share_of_repeats_is_kept_from_the_start_to_the_end() {
    for share in [0.05, 0.5, 0.8, 0.99] {
        let plan = plan("zone.test A", source(share, None, 1_000));
        assert_eq!(plan.validate(), Ok(()));
        let mut repeats = 0;
        for (index, choice) in choices(&plan, 1).take(200_000).enumerate() {
            repeats += u32::from(choice.is_repeat);
            let wanted = share * (index + 1) as f64;
            let deviation = (f64::from(repeats) - wanted).abs();
            assert!(deviation < 20.0, "{repeats} of {} for {share}", index + 1);
        }
    }
}

#[test]
fn single_queries_cannot_be_told_in_advance() {
    let plan = plan("zone.test A", source(0.5, None, 1_000));
    let kinds: Vec<bool> = choices(&plan, 0)
        .take(100_000)
        .map(|it| it.is_repeat)
        .collect();
    let mut fours = [0; 16];
    for four in kinds.chunks_exact(4) {
        let index = four
            .iter()
            .fold(0, |bits, &is_repeat| bits << 1 | usize::from(is_repeat));
        fours[index] += 1;
    }
    assert!(
        fours.iter().all(|count| (1_300..1_850).contains(count)),
        "{fours:?}"
    );
}

#[test]
fn repeats_are_of_the_names_asked_last_and_fresh_names_are_fresh_for_all_workers() {
    let mut source = source(0.8, None, 100);
    source.qtypes = Some("A=1,AAAA=1".parse().unwrap());
    let plan = plan("zone.test A", source);
    let mut all = HashSet::new();
    for worker in 0..2 {
        let mut asked = Vec::new();
        for choice in choices(&plan, worker).take(20_000) {
            let key = key(choice.question);
            if choice.is_repeat {
                // Of this worker's half of the hundred.
                let last = &asked[asked.len().saturating_sub(50)..];
                assert!(last.contains(&key));
            } else {
                assert!(key.1 > 0);
                assert!(all.insert(key.1), "asked before");
                asked.push(key);
            }
        }
    }
}

#[test]
fn nothing_is_repeated_after_its_ttl() {
    let ttl = Duration::from_secs(2);
    let plan = plan("zone.test A", source(0.8, Some(ttl), 1_000_000));
    let mut chooser = QuestionChooser::new(&plan, 0);
    let mut asked_at = HashMap::new();
    let mut repeats = 0;
    for step in 0..50_000 {
        let now = Instant::from_nanos(step * 1_000_000);
        let choice = chooser.next(now);
        let key = key(choice.question);
        if choice.is_repeat {
            assert!(now < asked_at[&key] + ttl);
            repeats += 1;
        } else {
            assert_eq!(asked_at.insert(key, now), None);
        }
    }
    assert!((39_950..40_050).contains(&repeats), "{repeats}");
}

#[test]
fn without_anything_to_repeat_all_is_fresh_and_soon_forgiven() {
    let ttl = Duration::from_secs(1);
    let plan = plan("zone.test A", source(0.8, Some(ttl), 1_000));
    let mut chooser = QuestionChooser::new(&plan, 0);
    // One query in two seconds: all earlier questions have expired.
    for step in 0..1_000 {
        assert!(
            !chooser
                .next(Instant::from_nanos(step * 2_000_000_000))
                .is_repeat
        );
    }
    let now = Instant::from_nanos(3_000_000_000_000);
    let repeats = (0..10_000).filter(|_| chooser.next(now).is_repeat).count();
    assert!((8_000..8_100).contains(&repeats), "{repeats}");
}

#[test]
fn names_of_a_list_are_asked_once_then_repeated_and_asked_afresh_after_their_ttl() {
    let ttl = Duration::from_secs(10);
    let plan = plan(&(names(40) + "zone.test A"), source(0.5, Some(ttl), 1));
    assert_eq!(plan.validate(), Ok(()));
    let mut chooser = QuestionChooser::new(&plan, 1);
    let mut fresh_at: HashMap<u32, Instant> = HashMap::new();
    let mut generated = HashSet::new();
    for step in 0..60_000 {
        let now = Instant::from_nanos(step * 1_000_000);
        let Choice {
            question,
            is_repeat,
        } = chooser.next(now);
        let fresh = fresh_at.get(&question.template).copied();
        if question.template == 40 {
            assert!(!is_repeat && generated.insert(question.label()));
        } else if is_repeat {
            assert!(now < fresh.unwrap() + ttl);
        } else {
            // The other worker has the other names.
            assert_eq!((question.template % 2, question.label()), (1, 0));
            assert!(fresh.is_none_or(|at| at + ttl <= now));
            fresh_at.insert(question.template, now);
        }
    }
    assert_eq!(fresh_at.len(), 20);
    // Half of 60,000, less 20 names in each of six times ten seconds.
    let fresh = 30_000 - 6 * 20;
    assert!(
        (fresh - 50..fresh + 50).contains(&generated.len()),
        "{}",
        generated.len()
    );
}

#[test]
fn repeats_that_cannot_be_are_refused() {
    let unlabelled = QuestionSource {
        labels: None,
        ..source(0.8, None, 10)
    };
    let shuffled = QuestionSource {
        order: Order::Shuffled,
        ..source(0.8, None, 10)
    };
    let cases = [
        ("z A", source(0.8, None, 2), ""),
        (
            "z A",
            source(0.0, None, 10),
            "cache-hit-ratio: 0 is not a share",
        ),
        (
            "z A",
            source(1.0, None, 10),
            "cache-hit-ratio: 1 is not a share",
        ),
        (
            "z A",
            source(0.8, None, 1),
            "hot-names: 1 to repeat are too few",
        ),
        (
            "a A\nz A",
            source(0.8, None, 10),
            "names: 1 to repeat are too few",
        ),
        (
            "z A",
            source(0.8, Some(Duration::ZERO), 10),
            "cache-ttl: must not be zero",
        ),
        (
            "z A",
            unlabelled,
            "cache-hit-ratio: it needs names that were never asked",
        ),
        (
            "a A\nz A",
            shuffled,
            "question-order: with a cache-hit ratio",
        ),
    ];
    for (names, source, expected) in cases {
        let said = fault(names, source);
        assert!(said.starts_with(expected), "{said}");
        assert!(!expected.is_empty() || said.is_empty(), "{said}");
    }
}
