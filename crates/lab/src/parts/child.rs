//! The side of a part: what the parent says, and how to answer it.

use std::io::{BufRead, Write};

use serde_json::Value;

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

/// Says one line to the parent; without a parent this process exits.
pub fn say(word: &str, text: &str) {
    let mut out = std::io::stdout().lock();
    let said = writeln!(out, "{word} {text}").and_then(|()| out.flush());
    if said.is_err() {
        std::process::exit(1);
    }
}
