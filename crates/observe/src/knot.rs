//! Knot DNS by `knotc`, its control utility. Queries are counted only where its module `mod-stats`
//! is loaded.

use std::path::{Path, PathBuf};

use measure::observation::ServerFacts;

use crate::command;
use crate::gap::Gap;
use crate::proc::Inside;
use crate::reading::{RawSample, Reading};
use crate::source::{Answer, Source};
use crate::stream::{Allowance, found_socket};

/// One server by its control socket.
pub(crate) struct KnotControl {
    socket: PathBuf,
    /// In whose file system it is, if not in the own one.
    inside: Option<Inside>,
}

impl KnotControl {
    pub(crate) fn new(socket: PathBuf, inside: Option<Inside>) -> KnotControl {
        KnotControl { socket, inside }
    }

    fn ask(&self, words: &[&str], allowance: &Allowance) -> Result<String, Gap> {
        let found = found_socket(&self.socket, self.inside.as_ref())?;
        let (socket, folder) = match &found {
            Some(found) => (found.path(), None),
            None => self.near(),
        };
        let socket = socket.to_string_lossy();
        let mut arguments = vec!["-s", &socket];
        arguments.extend(words);
        let octets = command::output("knotc", (&arguments, folder), allowance)?;
        String::from_utf8(octets).map_err(|_| Gap::Malformed("it is not UTF-8".to_owned()))
    }

    /// The socket from its folder, for its whole path may be too long, and the folder.
    fn near(&self) -> (PathBuf, Option<&Path>) {
        let folder = self.socket.parent().filter(|it| it.is_dir());
        let name = folder.and(self.socket.file_name());
        let near = name.map(|name| Path::new(".").join(name));
        (near.unwrap_or_else(|| self.socket.clone()), folder)
    }
}

impl Source for KnotControl {
    fn read(&mut self, allowance: &Allowance) -> Result<Answer, Gap> {
        // Counters of value 0 are shown by force only.
        let text = self.ask(&["-f", "stats"], allowance)?;
        let reading = parse(&text).map_err(Gap::Malformed)?;
        Ok(Answer {
            reading,
            octets: text.len() as u64,
        })
    }

    fn facts(&mut self) -> ServerFacts {
        let allowance = Allowance::starting_now(Default::default());
        let version = self
            .ask(&["status", "version"], &allowance)
            .unwrap_or_default();
        let version = version.trim().strip_prefix("Version:");
        ServerFacts {
            product: Some("Knot DNS".to_owned()),
            version: version.map(|version| version.trim().to_owned()),
            ..ServerFacts::default()
        }
    }
}

/// Reads `section.counter[item] = value` a line, the item as a label. A counter of a zone is
/// `[zone] section.counter = value`, with the zone as another.
///
/// # Errors
/// A line that is none, with its number.
pub fn parse(text: &str) -> Result<Reading, String> {
    let mut reading = Reading::default();
    for (index, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let wrong = || format!("line {}: it is not `counter = value`", index + 1);
        let (name, value) = line.rsplit_once('=').ok_or_else(wrong)?;
        let value = value.trim().parse().map_err(|_| wrong())?;
        let mut labels = Vec::new();
        let mut name = name.trim();
        if let Some((zone, rest)) = name.strip_prefix('[').and_then(|it| it.split_once(']')) {
            labels.push(("zone".to_owned(), zone.to_owned()));
            name = rest.trim();
        }
        if let Some((counter, item)) = name.strip_suffix(']').and_then(|it| it.split_once('[')) {
            labels.push(("item".to_owned(), item.to_owned()));
            name = counter;
        }
        reading.samples.push(RawSample {
            name: name.to_owned(),
            labels,
            value,
            taken_s: None,
        });
    }
    match reading.samples.is_empty() {
        true => Err("it is empty".to_owned()),
        false => Ok(reading),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_of_knot_are_read() {
        let text = include_str!("../tests/samples/knot-3.2.txt");
        let reading = parse(text).unwrap();
        // Recorded after 6 queries over UDP, one over TCP.
        let of = |item: &str| {
            let mut all = reading.samples.iter();
            let found = all.find(|it| {
                it.name == "mod-stats.request-protocol" && it.label("item") == Some(item)
            });
            found.map(|it| it.value)
        };
        assert_eq!(
            (of("udp4"), of("tcp4"), of("quic4")),
            (Some(6.0), Some(1.0), None)
        );
        assert_eq!(reading.value("server.zone-count"), Some(1.0));
        let of_zone = parse("[a.test.] mod-stats.query-type[A] = 3\n").unwrap();
        assert_eq!(of_zone.samples[0].label("zone"), Some("a.test."));
    }

    #[test]
    fn what_is_not_statistics_is_refused() {
        for text in ["", "error: no\n", "a = b\n"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
