//! `--grafana`: each run of a command, and what happened in it, as annotations in Grafana.
//!
//! The follower's thread makes them from snapshots and posts them, one request each. A run has its
//! annotations when it has ended; Grafana cannot delay it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lab::live::{EventKind, Follower, Live, Next, Phase, ShownEvent, Snapshot, yield_to_workers};
use measure::printable;
use observe::{Gap, JsonPost, Limits};
use serde_json::{Value, json};

/// What annotations are posted to, below the URL of Grafana.
const PATH: &str = "/api/annotations";
/// What a request may take and bring.
const LIMITS: Limits = Limits {
    time: Duration::from_secs(3),
    octets: 64 << 10,
};
/// How long the end of a command waits for the annotations of its last run.
const PATIENCE: Duration = Duration::from_secs(5);

/// Grafana, and the token for it.
#[derive(Debug)]
pub struct Grafana(JsonPost);

impl Grafana {
    /// At the URL of its first page.
    ///
    /// # Errors
    /// The URL or the token cannot be one: what is wrong with it.
    pub fn new(url: &str, token: Option<String>) -> Result<Grafana, String> {
        JsonPost::new(url, PATH, token).map(Grafana)
    }
}

/// Writes annotations until it is dropped.
#[derive(Debug)]
pub struct Annotator {
    follower: Option<Follower>,
    warner: Arc<Warner>,
}

impl Annotator {
    /// Writes annotations of everything that is published from now on. `warn` gets the first
    /// failure and its cure.
    ///
    /// # Errors
    /// The system allows no further thread.
    pub fn start(
        live: &Live,
        mut grafana: Grafana,
        command: &str,
        warn: impl Fn(&str, &str) + Send + Sync + 'static,
    ) -> io::Result<Annotator> {
        let warner = Arc::new(Warner {
            has_warned: AtomicBool::new(false),
            warn: Box::new(warn),
        });
        let warns = Arc::clone(&warner);
        let mut watched = Watched {
            command: command.to_owned(),
            ..Watched::default()
        };
        let mut is_nice = false;
        let follower = live.follow(move |next: &Next| {
            if !std::mem::replace(&mut is_nice, true) {
                yield_to_workers();
            }
            for snapshot in &next.snapshots {
                for annotation in watched.read(snapshot) {
                    // Further ones of this run would fail alike, each after its time limit.
                    if let Err(gap) = grafana.0.send(&annotation, LIMITS) {
                        warns.warn_of(&grafana.0, &gap);
                        break;
                    }
                }
            }
        })?;
        Ok(Annotator {
            follower: Some(follower),
            warner,
        })
    }
}

impl Drop for Annotator {
    /// Waits for the annotations of the last run, but only for a short time.
    fn drop(&mut self) {
        if let Some(follower) = self.follower.take()
            && !follower.end(PATIENCE)
        {
            let what = format!("Grafana has not taken all annotations within {PATIENCE:?}");
            self.warner.warn(&what, REACH);
        }
    }
}

/// What helps where Grafana does not answer.
const REACH: &str = "check that Grafana runs, and that this host reaches it";

/// Takes a failure and its cure.
type Warn = dyn Fn(&str, &str) + Send + Sync;

/// Warns once.
struct Warner {
    has_warned: AtomicBool,
    warn: Box<Warn>,
}

impl std::fmt::Debug for Warner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Warner").field(&self.has_warned).finish()
    }
}

impl Warner {
    fn warn(&self, what: &str, cure: &str) {
        if !self.has_warned.swap(true, Ordering::Relaxed) {
            (self.warn)(what, cure);
        }
    }

    fn warn_of(&self, post: &JsonPost, gap: &Gap) {
        let what = format!("an annotation was not written to {post}: {gap}");
        self.warn(&printable(&what), cure(gap));
    }
}

/// What helps.
fn cure(gap: &Gap) -> &'static str {
    let is_denied = |what: &str| {
        let statuses = ["HTTP status 401", "HTTP status 403"];
        statuses.iter().any(|it| what.starts_with(it))
    };
    match gap {
        Gap::Refused(what) if is_denied(what) => {
            "set GRAFANA_TOKEN to the token of a service account with the role Editor"
        }
        Gap::Gone(_) | Gap::Slow(_) => REACH,
        Gap::Refused(_) | Gap::Large(_) | Gap::Malformed(_) => {
            "give the URL of Grafana's first page, such as http://127.0.0.1:3000"
        }
    }
}

/// The run that goes on. Instants are since 1970.
#[derive(Debug, Default)]
struct Watched {
    command: String,
    /// Its first snapshot.
    first: Option<Duration>,
    /// The start of its load; none before its first interval.
    began: Option<Duration>,
}

impl Watched {
    /// The annotations that a snapshot is a reason for.
    fn read(&mut self, snapshot: &Snapshot) -> Vec<Value> {
        let shown = &snapshot.shown;
        if shown.phase == Phase::Before {
            // The run before may have ended without a snapshot that says so.
            (self.first, self.began) = (None, None);
        }
        let first = *self.first.get_or_insert(snapshot.at);
        if let Some(interval) = &shown.interval {
            let length = Duration::from_nanos(interval.end_ns);
            // Virtual time may be longer than the time that passed.
            let began = snapshot.at.saturating_sub(length).max(first);
            self.began.get_or_insert(began);
        }
        let Some(began) = self.began else {
            return Vec::new();
        };
        let instant = |ns| {
            (began + Duration::from_nanos(ns))
                .min(snapshot.at)
                .as_millis() as u64
        };
        let events = shown.events.iter();
        let annotations = events.map(|event| {
            json!({
                "time": instant(event.from_ns),
                "timeEnd": instant(event.until_ns),
                "tags": self.tags(event.kind),
                "text": self.text(event, &snapshot.place.name),
            })
        });
        annotations.collect()
    }

    /// What dashboards choose annotations by.
    fn tags(&self, kind: EventKind) -> Vec<&str> {
        let mut tags = vec!["throng", self.command.as_str()];
        tags.extend(match kind {
            EventKind::Run => None,
            EventKind::Outage => Some("outage"),
            EventKind::Aborted => Some("aborted"),
        });
        tags
    }

    fn text(&self, event: &ShownEvent, name: &str) -> String {
        let name = match name {
            "" => String::new(),
            name => format!(", {name}"),
        };
        format!("throng {}{name}: {}", self.command, event.text)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use lab::live::{Place, Shown};
    use measure::Interval;

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn snapshot(at: u64, shown: Shown) -> Snapshot {
        Snapshot {
            number: 1,
            at: Duration::from_secs(at),
            place: Arc::new(Place::new("search", 1, None)),
            shown,
        }
    }

    fn before() -> Shown {
        Shown::default()
    }

    fn load(end_ns: u64) -> Shown {
        let interval = Interval {
            end_ns,
            ..Interval::default()
        };
        Shown {
            phase: Phase::Load,
            interval: Some(Arc::new(interval)),
            ..Shown::default()
        }
    }

    /// Of a run of that length, with an outage until then.
    fn ended(run_ns: u64, outage_until_ns: u64) -> Shown {
        let event = |kind, from_ns, until_ns| ShownEvent {
            kind,
            from_ns,
            until_ns,
            text: "as it is".to_owned(),
        };
        Shown {
            phase: Phase::Ended,
            events: vec![
                event(EventKind::Run, 0, run_ns),
                event(EventKind::Outage, SECOND, outage_until_ns),
            ],
            ..Shown::default()
        }
    }

    /// Start and end of the annotations of the last snapshot, in seconds; those before have none.
    fn check(snapshots: Vec<(u64, Shown)>, expected: &[(u64, u64)]) -> Vec<Value> {
        let mut watched = Watched {
            command: "capacity".to_owned(),
            ..Watched::default()
        };
        let mut all = Vec::new();
        for (at, shown) in snapshots {
            assert_eq!(all, [] as [Value; 0]);
            all = watched.read(&snapshot(at, shown));
        }
        let second = |value: &Value| value.as_u64().unwrap() / 1_000;
        let spans = all
            .iter()
            .map(|it| (second(&it["time"]), second(&it["timeEnd"])));
        assert_eq!(spans.collect::<Vec<_>>(), expected);
        all
    }

    #[test]
    fn run_and_its_events_are_annotated_at_its_end() {
        let snapshots = vec![
            (100, before()),
            (103, load(SECOND)),
            (104, load(2 * SECOND)),
            (105, ended(2 * SECOND, 2 * SECOND)),
        ];
        let all = check(snapshots, &[(102, 104), (103, 104)]);
        assert_eq!(all[0]["tags"], json!(["throng", "capacity"]));
        assert_eq!(all[0]["text"], "throng capacity, search: as it is");
        assert_eq!(all[1]["tags"], json!(["throng", "capacity", "outage"]));
    }

    #[test]
    fn virtual_time_is_held_within_the_time_that_passed() {
        let (minutes, hour) = (600 * SECOND, 3_600 * SECOND);
        let snapshots = vec![
            (100, before()),
            (101, load(minutes)),
            (102, ended(hour, hour)),
        ];
        check(snapshots, &[(100, 102), (101, 102)]);
    }

    #[test]
    fn run_that_was_cut_off_leaves_nothing_to_the_next() {
        let snapshots = vec![
            (100, before()),
            (101, load(SECOND)),
            (200, before()),
            (202, load(SECOND)),
            (203, ended(SECOND, SECOND)),
        ];
        check(snapshots, &[(201, 202), (202, 202)]);
    }

    #[test]
    fn run_without_an_interval_has_no_annotation() {
        check(vec![(100, before()), (101, ended(0, 0))], &[]);
    }

    #[test]
    fn failures_have_their_cures() {
        for (gap, words) in [
            (
                Gap::Refused("HTTP status 401: Unauthorized".to_owned()),
                "GRAFANA_TOKEN",
            ),
            (Gap::Refused("HTTP status 403".to_owned()), "GRAFANA_TOKEN"),
            (Gap::Refused("HTTP status 404".to_owned()), "first page"),
            (Gap::Malformed("no head of HTTP/1".to_owned()), "first page"),
            (Gap::Slow(Duration::from_secs(3)), "check that Grafana runs"),
            (Gap::Gone("refused".to_owned()), "check that Grafana runs"),
        ] {
            assert!(cure(&gap).contains(words), "{gap}");
        }
    }
}
