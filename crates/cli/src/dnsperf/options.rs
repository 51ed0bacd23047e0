//! Long options, `-O name=value`.
//!
//! As in dnsperf, a name may be cut short as long as it stays clear which one is meant. Those for
//! DNS over HTTPS have no effect with the other transports, which also goes for
//! `qps-threshold-wait`: pacing has no busy wait to tune here. The URI says what requests name, not
//! where they go: that is said by `-s` and `-p`.

use proto::doh::{DohRequest, Method};

use super::complaint::Complaint;

/// dnsperf's URI of DNS over HTTPS where none is given.
const DOH_URI: &str = "https://localhost/dns-query";

/// A long option.
pub(super) struct LongOption {
    name_of: Name,
    pub(super) name: &'static str,
    /// What its value is called; none if it takes none.
    pub(super) value: Option<&'static str>,
    pub(super) help: &'static str,
    pub(super) default: Option<&'static str>,
}

#[derive(Clone, Copy)]
enum Name {
    Suppress,
    QueriesPerConnection,
    VerboseIntervals,
    Histogram,
    ThresholdWait,
    TlsSni,
    DohUri,
    DohMethod,
    AllowPublic,
}

/// dnsperf 2.14's long options, then our own.
pub(super) const LONG_OPTIONS: [LongOption; 9] = [
    LongOption {
        name_of: Name::TlsSni,
        name: "tls-sni",
        value: Some("tls_sni"),
        help: "server name indication of TLS",
        default: None,
    },
    LongOption {
        name_of: Name::ThresholdWait,
        name: "qps-threshold-wait",
        value: Some("microseconds"),
        help: "accepted; rate limiting needs no tuning here",
        default: None,
    },
    LongOption {
        name_of: Name::Histogram,
        name: "latency-histogram",
        value: None,
        help: "print latency histograms",
        default: None,
    },
    LongOption {
        name_of: Name::VerboseIntervals,
        name: "verbose-interval-stats",
        value: None,
        help: "print whole statistics at each interval of -S",
        default: None,
    },
    LongOption {
        name_of: Name::QueriesPerConnection,
        name: "num-queries-per-conn",
        value: Some("queries"),
        help: "close a connection after that many queries and open a new one",
        default: None,
    },
    LongOption {
        name_of: Name::Suppress,
        name: "suppress",
        value: Some("message[,message,...]"),
        help: "messages not to print: timeouts, congestion, sendfailed, sockready, unexpected",
        default: None,
    },
    LongOption {
        name_of: Name::DohMethod,
        name: "doh-method",
        value: Some("doh_method"),
        help: "HTTP method of DNS over HTTPS: GET or POST",
        default: Some("GET"),
    },
    LongOption {
        name_of: Name::DohUri,
        name: "doh-uri",
        value: Some("doh_uri"),
        help: "URI of DNS over HTTPS",
        default: Some(DOH_URI),
    },
    LongOption {
        name_of: Name::AllowPublic,
        name: "allow-public",
        value: None,
        help: "throng's own: allow a target on a public address, where you have permission",
        default: None,
    },
];

const MESSAGES: [&str; 5] = [
    "timeouts",
    "congestion",
    "sendfailed",
    "sockready",
    "unexpected",
];

/// The long options as given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LongSettings {
    pub(super) doh_uri: Option<String>,
    pub(super) doh_method: Option<Method>,
    pub(super) tls_sni: Option<String>,
    pub(super) latency_histogram: bool,
    pub(super) verbose_interval_stats: bool,
    pub(super) queries_per_connection: Option<u32>,
    pub(super) suppress_send_failures: bool,
    pub(super) allow_public: bool,
}

impl LongSettings {
    /// Takes in the value of one `-O`.
    ///
    /// # Errors
    /// The name is unknown (the nearest known one is named), or the value is missing or wrong.
    pub(super) fn set(&mut self, text: &str) -> Result<(), Complaint> {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value).filter(|value| !value.is_empty())),
            None => (text, None),
        };
        let option = find(name)?;
        let needed = || {
            let form = option.value.unwrap_or_default();
            let hint = format!("write -O {}=<{form}>", option.name);
            value.ok_or_else(|| Complaint::new(format!("-O {text} needs a value"), hint))
        };
        match option.name_of {
            Name::TlsSni => self.tls_sni = Some(needed()?.to_owned()),
            Name::Histogram => self.latency_histogram = true,
            Name::VerboseIntervals => self.verbose_interval_stats = true,
            Name::AllowPublic => self.allow_public = true,
            Name::QueriesPerConnection => {
                self.queries_per_connection = Some(number(option.name, needed()?, 1)?);
            }
            Name::ThresholdWait => drop(number(option.name, needed()?, 0)?),
            Name::Suppress => self.suppress(needed()?)?,
            Name::DohUri => self.doh_uri = Some(needed()?.to_owned()),
            Name::DohMethod => self.doh_method = Some(method(needed()?)?),
        }
        Ok(())
    }

    /// The requests of DNS over HTTPS: dnsperf asks by GET unless told otherwise.
    ///
    /// # Errors
    /// The URI is none.
    pub(super) fn doh_request(&self) -> Result<DohRequest, Complaint> {
        let uri = self.doh_uri.as_deref().unwrap_or(DOH_URI);
        let method = self.doh_method.unwrap_or(Method::Get);
        DohRequest::new(method, uri, &[])
            .map_err(|error| Complaint::new(format!("-O doh-uri: {}", error.fault), error.cure))
    }

    /// Most of these messages are about single queries or about sockets that dnsperf polls; they
    /// do not exist here, so that there is nothing to suppress.
    fn suppress(&mut self, list: &str) -> Result<(), Complaint> {
        for word in list.split(',').filter(|word| !word.is_empty()) {
            // `timeout`, as in many scripts, is `timeouts` cut short.
            let known = MESSAGES.iter().find(|message| message.starts_with(word));
            match known {
                Some(&"sendfailed") => self.suppress_send_failures = true,
                Some(_) => {}
                None => {
                    let what = format!("-O suppress: unknown message `{word}`");
                    return Err(Complaint::new(
                        what,
                        format!("known are {}", MESSAGES.join(", ")),
                    ));
                }
            }
        }
        Ok(())
    }
}

fn method(value: &str) -> Result<Method, Complaint> {
    match value {
        "GET" => Ok(Method::Get),
        "POST" => Ok(Method::Post),
        _ => Err(Complaint::new(
            format!("-O doh-method: `{value}` is no method"),
            "give GET or POST",
        )),
    }
}

fn number(name: &str, value: &str, min: u32) -> Result<u32, Complaint> {
    let digits = value.bytes().all(|octet| octet.is_ascii_digit());
    let parsed = value.parse().ok().filter(|number| digits && *number >= min);
    parsed.ok_or_else(|| {
        let hint = format!("give a number from {min} to {}", u32::MAX);
        Complaint::new(
            format!("-O {name}: `{value}` is not a number that fits"),
            hint,
        )
    })
}

fn find(name: &str) -> Result<&'static LongOption, Complaint> {
    if let Some(option) = LONG_OPTIONS.iter().find(|option| option.name == name) {
        return Ok(option);
    }
    let meant = |option: &&LongOption| !name.is_empty() && option.name.starts_with(name);
    let mut candidates = LONG_OPTIONS.iter().filter(meant);
    if let (Some(option), None) = (candidates.next(), candidates.next()) {
        return Ok(option);
    }
    let nearest = LONG_OPTIONS
        .iter()
        .min_by_key(|option| distance(name, option.name));
    let hint = match nearest {
        Some(option) if distance(name, option.name) <= option.name.len() / 2 => {
            format!(
                "did you mean `{}`? `-H` lists all long options",
                option.name
            )
        }
        _ => "`-H` lists all long options".to_owned(),
    };
    Err(Complaint::new(
        format!("unknown long option `{name}` (-O)"),
        hint,
    ))
}

/// How many octets must be changed, added or left out to make one text the other.
fn distance(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (index, left) in one.bytes().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], index + 1);
        for (place, right) in other.bytes().enumerate() {
            let changed = diagonal + usize::from(left != right);
            diagonal = row[place + 1];
            row[place + 1] = changed.min(row[place] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(texts: &[&str]) -> Result<LongSettings, Complaint> {
        let mut settings = LongSettings::default();
        for text in texts {
            settings.set(text)?;
        }
        Ok(settings)
    }

    #[test]
    fn options_of_the_article_and_short_forms_are_taken() {
        let settings = set(&[
            "latency-histogram",
            "verbose-interval-stats=yes",
            "suppress=timeout,unexpected,sendfailed",
            "num-queries=7",
            "tls-sni=dns.example",
            "doh-uri=https://localhost/q",
            "doh-method=POST",
            "qps-threshold-wait=0",
        ]);
        let expected = LongSettings {
            doh_uri: Some("https://localhost/q".to_owned()),
            doh_method: Some(Method::Post),
            tls_sni: Some("dns.example".to_owned()),
            latency_histogram: true,
            verbose_interval_stats: true,
            queries_per_connection: Some(7),
            suppress_send_failures: true,
            allow_public: false,
        };
        assert_eq!(settings, Ok(expected));
    }

    #[test]
    fn a_misspelled_name_is_refused_with_the_one_meant() {
        for (text, meant) in [
            ("latency-histogramam", "`latency-histogram`"),
            ("verbose_interval_stats", "`verbose-interval-stats`"),
            ("supress=timeout", "`suppress`"),
            ("allow-pubic", "`allow-public`"),
        ] {
            let complaint = set(&[text]).unwrap_err();
            let name = text.split('=').next().unwrap();
            assert_eq!(complaint.what, format!("unknown long option `{name}` (-O)"));
            assert!(
                complaint.hint.as_deref().unwrap().contains(meant),
                "{complaint:?}"
            );
        }
        let complaint = set(&["doh"]).unwrap_err();
        assert!(complaint.what.contains("`doh`"), "ambiguous: {complaint:?}");
        assert!(set(&[""]).is_err());
    }

    #[test]
    fn a_missing_or_wrong_value_is_refused() {
        for text in [
            "tls-sni",
            "tls-sni=",
            "num-queries-per-conn=0",
            "num-queries-per-conn=+1",
            "qps-threshold-wait=x",
            "suppress=timeout,nothing",
            "doh-method=PUT",
        ] {
            assert!(set(&[text]).is_err(), "{text}");
        }
    }

    #[test]
    fn requests_are_those_of_dnsperf_unless_told_otherwise() {
        let request = set(&[]).unwrap().doh_request().unwrap();
        assert_eq!(request.method(), Method::Get);
        assert_eq!(
            (request.authority(), request.path()),
            ("localhost", "/dns-query")
        );
        let options = ["doh-uri=https://dns.example:8443/q", "doh-method=POST"];
        let request = set(&options).unwrap().doh_request().unwrap();
        assert_eq!(request.method(), Method::Post);
        assert_eq!(
            (request.authority(), request.path()),
            ("dns.example:8443", "/q")
        );
        let complaint = set(&["doh-uri=/dns-query"])
            .unwrap()
            .doh_request()
            .unwrap_err();
        assert!(complaint.what.starts_with("-O doh-uri: "), "{complaint:?}");
    }

    #[test]
    fn distance_counts_single_changes() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("same", "same"), 0);
    }
}
