//! The side of a part: what the parent says, and how to answer it.

use std::io::{BufRead, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use serde_json::Value;

/// For how long a part that sends load goes on without a word of its parent.
pub const DEAD_MAN: Duration = Duration::from_secs(10);
/// How long a part looks once more whether its parent has said something.
const LAST_LOOK: Duration = Duration::from_millis(200);
/// How long a part may take to stop sending.
pub(super) const STOP_MAX: Duration = Duration::from_secs(1);
/// The exit code of a part that stopped for that.
pub(super) const MISSED_PARENT: i32 = 97;
/// Set when it stops: from then on it says nothing more, for its parent takes it for lost.
static HAS_STOPPED: AtomicBool = AtomicBool::new(false);

/// Reads the first line: what this part is to do.
///
/// # Errors
/// It is not there, or of another form: nobody started this process as a part.
pub fn receive_setup() -> Result<Value, String> {
    let mut line = String::new();
    let read = std::io::stdin().lock().read_line(&mut line);
    read.map_err(|error| error.to_string())?;
    let setup = line.strip_prefix("setup ").ok_or("no setup")?;
    serde_json::from_str(setup).map_err(|error| error.to_string())
}

/// From now on hands every line of the parent to `on_line`, its word and the rest. When the parent
/// has gone, however that came, this process exits at once.
pub fn watch_parent(mut on_line: impl FnMut(&str, &str) + Send + 'static) {
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let Ok(line) = line else { break };
            let (word, rest) = line.split_once(' ').unwrap_or((&line, ""));
            on_line(word, rest);
        }
        std::process::exit(1);
    });
}

/// As [`watch_parent`], for a part that sends load: its parent says a line every second at least.
/// When none has come for [`DEAD_MAN`], `on_silence` stops what the part does, and the process
/// ends: its parent could not stop it any more.
pub fn watch_beats(
    mut on_line: impl FnMut(&str, &str) + Send + 'static,
    on_silence: impl FnOnce() + Send + 'static,
) {
    let (hears, heard) = channel();
    watch_parent(move |word, rest| {
        // The other end is there as long as this process.
        let _ = hears.send(());
        on_line(word, rest);
    });
    std::thread::spawn(move || {
        // Before its first word the parent prepares the run, and nothing is sent.
        let mut is_there = heard.recv().is_ok();
        while is_there {
            // A process that was stopped itself has yet to read what was said meanwhile.
            let says = |time| heard.recv_timeout(time).is_ok();
            is_there = says(DEAD_MAN) || says(LAST_LOOK);
        }
        HAS_STOPPED.store(true, Ordering::Relaxed);
        on_silence();
        // Words that come now are too late.
        let until = Instant::now() + STOP_MAX;
        while heard
            .recv_timeout(until.saturating_duration_since(Instant::now()))
            .is_ok()
        {}
        std::process::exit(MISSED_PARENT);
    });
}

/// Says one line to the parent; without a parent this process exits.
pub fn say(word: &str, text: &str) {
    while HAS_STOPPED.load(Ordering::Relaxed) {
        std::thread::park();
    }
    let mut out = std::io::stdout().lock();
    let said = writeln!(out, "{word} {text}").and_then(|()| out.flush());
    if said.is_err() {
        std::process::exit(1);
    }
}
