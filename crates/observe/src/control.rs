//! Unbound's remote control: one command a connection, over a Unix socket in the clear, over TCP
//! with TLS and certificates on both sides (unless `control-use-cert` is off, `tcp://`), or by
//! `unbound-control`, which knows where its server is: `command:FILE`, the file its configuration.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use measure::observation::ServerFacts;
use proto::tls::rustls::ClientConfig;

use crate::asked::Asked;
use crate::command;
use crate::gap::Gap;
use crate::http::{Credentials, authority_parts, tls_config};
use crate::network::Network;
use crate::proc::Inside;
use crate::reading::{RawSample, Reading};
use crate::source::{Answer, Source};
use crate::stream::{Allowance, Timed};

/// The version of the protocol, which is that of all releases since 1.0.
const PROTOCOL: &str = "UBCT1";

/// The port unless another is given.
const PORT: u16 = 8953;

/// Where `unbound-control-setup` puts certificates.
const SETUP_FOLDER: &str = "/etc/unbound";

/// One server's remote control.
pub(crate) struct UnboundControl {
    way: Way,
    network: Network,
    config: Option<Arc<ClientConfig>>,
}

enum Way {
    Unix(PathBuf, Option<Inside>),
    Tcp(String, u16),
    Tls(String, u16, Credentials),
    /// The configuration of `unbound-control`; empty for its own.
    Command(PathBuf),
}

impl UnboundControl {
    pub(crate) fn new(asked: &Asked) -> Result<UnboundControl, String> {
        let (place, credentials) = (asked.place.as_str(), &asked.credentials);
        let way = if let Some(file) = place.strip_prefix("command:") {
            Way::Command(PathBuf::from(file))
        } else if place.starts_with('/') {
            Way::Unix(PathBuf::from(place), asked.inside.clone())
        } else if let Some(rest) = place.strip_prefix("tcp://") {
            let (host, port) = authority_parts(rest, PORT)?;
            Way::Tcp(host, port)
        } else {
            let (host, port) = authority_parts(place, PORT)?;
            Way::Tls(host, port, with_setup(credentials))
        };
        Ok(UnboundControl {
            way,
            network: asked.network.clone(),
            config: None,
        })
    }

    /// The whole answer to a command.
    fn ask(&mut self, command: &str, allowance: &Allowance) -> Result<String, Gap> {
        let line = format!("{PROTOCOL} {command}\n");
        let octets = match &self.way {
            Way::Unix(path, inside) => {
                let stream = Timed::unix(path, inside.as_ref(), allowance)?;
                exchange(stream, &line, allowance)?
            }
            Way::Tcp(host, port) => {
                let stream = Timed::tcp(&self.network, (host, *port), allowance)?;
                exchange(stream, &line, allowance)?
            }
            Way::Tls(host, port, credentials) => {
                let config = match &self.config {
                    Some(config) => config.clone(),
                    None => tls_config(credentials, credentials.authorities.as_deref())?,
                };
                self.config = Some(config.clone());
                let stream = Timed::tcp(&self.network, (host, *port), allowance)?;
                let stream = stream.with_tls(&config, host)?;
                exchange(stream, &line, allowance)?
            }
            Way::Command(file) => {
                let mut arguments: Vec<&str> = Vec::new();
                // Its folder is left for that of the file.
                let file = std::path::absolute(file).unwrap_or_default();
                let folder = file.parent();
                let file = file.to_string_lossy();
                if !file.is_empty() {
                    arguments.extend(["-c", &file]);
                }
                arguments.push(command);
                command::output("unbound-control", (&arguments, folder), allowance)?
            }
        };
        let text =
            String::from_utf8(octets).map_err(|_| Gap::Malformed("it is not UTF-8".to_owned()))?;
        match text.strip_prefix("error") {
            Some(what) => Err(Gap::Refused(what.trim().to_owned())),
            None => Ok(text),
        }
    }
}

/// What `unbound-control-setup` made, where nothing else was given. Its server's certificate is its
/// own authority: it is known by its key.
fn with_setup(credentials: &Credentials) -> Credentials {
    let file = |name: &str| Some(Path::new(SETUP_FOLDER).join(name));
    let given = credentials.clone();
    Credentials {
        token: None,
        authorities: given.authorities.or_else(|| file("unbound_server.pem")),
        certificate: given.certificate.or_else(|| file("unbound_control.pem")),
        key: given.key.or_else(|| file("unbound_control.key")),
    }
}

fn exchange(
    mut stream: impl Read + Write,
    line: &str,
    allowance: &Allowance,
) -> Result<Vec<u8>, Gap> {
    let sent = stream
        .write_all(line.as_bytes())
        .and_then(|()| stream.flush());
    sent.map_err(|error| allowance.gap(&error))?;
    allowance.read_all(stream)
}

impl Source for UnboundControl {
    fn read(&mut self, allowance: &Allowance) -> Result<Answer, Gap> {
        let text = self.ask("stats_noreset", allowance)?;
        let reading = parse(&text).map_err(Gap::Malformed)?;
        Ok(Answer {
            reading,
            octets: text.len() as u64,
        })
    }

    fn facts(&mut self) -> ServerFacts {
        let allowance = Allowance::starting_now(Default::default());
        let text = self.ask("status", &allowance).unwrap_or_default();
        let field = |name: &str| {
            let mut lines = text.lines();
            let value = lines.find_map(|line| line.strip_prefix(name))?;
            Some(value.trim().to_owned())
        };
        ServerFacts {
            product: Some("Unbound".to_owned()),
            version: field("version:"),
            threads: field("threads:").and_then(|threads| threads.parse().ok()),
            ..ServerFacts::default()
        }
    }
}

/// Reads `name=value` a line. What is of a thread has its number as a label, `thread.num.queries`;
/// the histogram of recursion is left out, its sums are there.
///
/// # Errors
/// A line that is none, with its number.
pub fn parse(text: &str) -> Result<Reading, String> {
    let mut reading = Reading::default();
    for (index, line) in text.lines().enumerate() {
        if line.is_empty() || line.starts_with("histogram.") {
            continue;
        }
        let wrong = || format!("line {}: it is not `name=value`", index + 1);
        let (name, value) = line.split_once('=').ok_or_else(wrong)?;
        let value: f64 = value.trim().parse().map_err(|_| wrong())?;
        reading.samples.push(of_thread(name, value));
    }
    match reading.value("total.num.queries") {
        Some(_) => Ok(reading),
        None => Err("it has no `total.num.queries`".to_owned()),
    }
}

fn of_thread(name: &str, value: f64) -> RawSample {
    let parts = name
        .strip_prefix("thread")
        .and_then(|rest| rest.split_once('.'));
    match parts {
        Some((number, rest)) if number.bytes().all(|it| it.is_ascii_digit()) => RawSample {
            name: format!("thread.{rest}"),
            labels: vec![("thread".to_owned(), number.to_owned())],
            value,
            taken_s: None,
        },
        _ => RawSample::plain(name, value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_of_unbound_are_read() {
        let reading = parse(include_str!("../tests/samples/unbound-1.17.txt")).unwrap();
        // Recorded after 6 queries over UDP, one over TCP.
        assert_eq!(reading.value("total.num.queries"), Some(7.0));
        assert_eq!(reading.value("num.query.tcp"), Some(1.0));
        let threads = reading
            .samples
            .iter()
            .filter(|it| it.name == "thread.num.queries");
        let threads: Vec<&RawSample> = threads.collect();
        assert_eq!(threads.len(), 2);
        assert_eq!(threads[1].label("thread"), Some("1"));
        assert_eq!(threads.iter().map(|it| it.value).sum::<f64>(), 7.0);
        assert!(
            reading
                .samples
                .iter()
                .all(|it| !it.name.starts_with("histogram"))
        );
    }

    #[test]
    fn what_is_not_statistics_is_refused() {
        for text in ["", "no\n", "total.num.queries=x\n", "a=1\n"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
