//! Long options, `-O name=value`.
//!
//! As in dnsperf, a name may be cut short as long as it stays clear which one is meant. Those for
//! DNS over HTTPS have no effect with the other transports, which also goes for
//! `qps-threshold-wait`: pacing has no busy wait to tune here. The URI says what requests name, not
//! where they go: that is said by `-s` and `-p`. What is not a number is refused as it is read, all
//! other values once all options are known.

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
        help: "the TLS SNI to use for TLS connections",
        default: None,
    },
    LongOption {
        name_of: Name::ThresholdWait,
        name: "qps-threshold-wait",
        value: Some("microseconds"),
        help: "minimum threshold for enabling wait in rate limiting",
        default: None,
    },
    LongOption {
        name_of: Name::Histogram,
        name: "latency-histogram",
        value: None,
        help: "collect and print detailed latency histograms",
        default: None,
    },
    LongOption {
        name_of: Name::VerboseIntervals,
        name: "verbose-interval-stats",
        value: None,
        help: "print detailed statistics for each stats_interval",
        default: None,
    },
    LongOption {
        name_of: Name::QueriesPerConnection,
        name: "num-queries-per-conn",
        value: Some("queries"),
        help: "Number of queries to send per connection",
        default: None,
    },
    LongOption {
        name_of: Name::Suppress,
        name: "suppress",
        value: Some("message[,message,...]"),
        help: "suppress messages/warnings, see man-page for list of message types",
        default: None,
    },
    LongOption {
        name_of: Name::DohMethod,
        name: "doh-method",
        value: Some("doh_method"),
        help: "the HTTP method to use for DNS-over-HTTPS: GET or POST",
        default: Some("GET"),
    },
    LongOption {
        name_of: Name::DohUri,
        name: "doh-uri",
        value: Some("doh_uri"),
        help: "the URI to use for DNS-over-HTTPS",
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
    TIMEOUTS,
    "congestion",
    SEND_FAILED,
    "sockready",
    "unexpected",
];

/// The long options as given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LongSettings {
    pub(super) doh_uri: Option<String>,
    pub(super) doh_method: Option<String>,
    pub(super) tls_sni: Option<String>,
    pub(super) latency_histogram: bool,
    pub(super) verbose_interval_stats: bool,
    pub(super) queries_per_connection: Option<u32>,
    suppressed: Option<String>,
    pub(super) allow_public: bool,
}

impl LongSettings {
    /// Takes in the value of one `-O`.
    ///
    /// # Errors
    /// The name is unknown (the nearest known one is named), or the value is missing or no number.
    pub(super) fn set(&mut self, text: &str) -> Result<(), Complaint> {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value).filter(|value| !value.is_empty())),
            None => (text, None),
        };
        let invalid =
            |hint| Complaint::usage(format!("invalid long option: {text}")).with_hint(hint);
        let option = find(name).map_err(invalid)?;
        let needed = || {
            let form = option.value.unwrap_or_default();
            let hint = format!("write -O {}=<{form}>", option.name);
            value.map(str::to_owned).ok_or_else(|| invalid(hint))
        };
        let value_name = option.value.unwrap_or_default();
        match option.name_of {
            Name::TlsSni => self.tls_sni = Some(needed()?),
            Name::Histogram => self.latency_histogram = true,
            Name::VerboseIntervals => self.verbose_interval_stats = true,
            Name::AllowPublic => self.allow_public = true,
            Name::QueriesPerConnection => {
                self.queries_per_connection = Some(number((value_name, &needed()?), 1)?);
            }
            Name::ThresholdWait => drop(number((value_name, &needed()?), 0)?),
            Name::Suppress => self.suppressed = Some(needed()?),
            Name::DohUri => self.doh_uri = Some(needed()?),
            Name::DohMethod => self.doh_method = Some(needed()?),
        }
        Ok(())
    }

    /// The requests of DNS over HTTPS: dnsperf asks by GET unless told otherwise.
    ///
    /// # Errors
    /// The URI is none of https, or the method unknown.
    pub(super) fn doh_request(&self) -> Result<DohRequest, Complaint> {
        let uri = self.doh_uri.as_deref().unwrap_or(DOH_URI);
        let wrong_uri = |hint| Complaint::value("invalid DNS-over-HTTPS URI").with_hint(hint);
        if !uri.starts_with("https://") {
            return Err(wrong_uri("it starts with https://".to_owned()));
        }
        let method = match self.doh_method.as_deref() {
            None | Some("GET") => Method::Get,
            Some("POST") => Method::Post,
            Some(_) => return Err(Complaint::value("invalid DNS-over-HTTPS method")),
        };
        DohRequest::new(method, uri, &[]).map_err(|error| wrong_uri(error.cure.to_owned()))
    }

    /// True if messages of this kind are not to be printed.
    pub(super) fn suppresses(&self, message: &str) -> bool {
        let words = self.suppressed.iter().flat_map(|list| list.split(','));
        // `timeout`, as in many scripts, is `timeouts` cut short.
        words
            .into_iter()
            .any(|word| !word.is_empty() && message.starts_with(word))
    }

    /// Refuses kinds of messages that there are not.
    pub(super) fn check_suppressed(&self) -> Result<(), Complaint> {
        let words = self.suppressed.iter().flat_map(|list| list.split(','));
        for word in words.filter(|word| !word.is_empty()) {
            if !MESSAGES.iter().any(|message| message.starts_with(word)) {
                let what = format!("unknown message type to suppress: {word}");
                let hint = format!("known are {}", MESSAGES.join(", "));
                return Err(Complaint::usage(what).with_hint(hint));
            }
        }
        Ok(())
    }
}

/// Messages of single queries that got no response in time.
pub(super) const TIMEOUTS: &str = "timeouts";
/// Messages of queries that could not be sent.
pub(super) const SEND_FAILED: &str = "sendfailed";

/// Reads a whole number, which dnsperf calls by this name.
pub(super) fn number((name, value): (&str, &str), min: u32) -> Result<u32, Complaint> {
    // As the C library reads numbers.
    let digits = value.trim_start();
    let digits = digits.strip_prefix('+').unwrap_or(digits);
    let plain = digits.bytes().all(|octet| octet.is_ascii_digit());
    let parsed = digits.parse().ok().filter(|number| plain && *number >= min);
    parsed.ok_or_else(|| Complaint::usage(format!("invalid {name}: {value}")))
}

/// The long option with that name.
pub(super) fn named(name: &str) -> Option<&'static LongOption> {
    LONG_OPTIONS.iter().find(|option| option.name == name)
}

/// The long option that is meant.
///
/// # Errors
/// None is, or several may be; the text is a hint.
pub(super) fn find(name: &str) -> Result<&'static LongOption, String> {
    if let Some(option) = named(name) {
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
    Err(match nearest {
        Some(option) if distance(name, option.name) <= option.name.len() / 2 => {
            format!(
                "did you mean `{}`? `-H` lists all long options",
                option.name
            )
        }
        _ => "`-H` lists all long options".to_owned(),
    })
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
            doh_method: Some("POST".to_owned()),
            tls_sni: Some("dns.example".to_owned()),
            latency_histogram: true,
            verbose_interval_stats: true,
            queries_per_connection: Some(7),
            suppressed: Some("timeout,unexpected,sendfailed".to_owned()),
            allow_public: false,
        };
        assert_eq!(settings, Ok(expected));
        let settings = settings.unwrap();
        assert!(settings.suppresses(TIMEOUTS) && settings.suppresses(SEND_FAILED));
        assert!(!settings.suppresses("congestion"));
        assert_eq!(settings.check_suppressed(), Ok(()));
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
            assert_eq!(complaint.what, format!("invalid long option: {text}"));
            assert!(
                complaint.hint.as_deref().unwrap().contains(meant),
                "{complaint:?}"
            );
        }
        let complaint = set(&["doh"]).unwrap_err();
        assert!(
            complaint.what.ends_with(": doh"),
            "ambiguous: {complaint:?}"
        );
        assert!(set(&[""]).is_err());
    }

    #[test]
    fn a_missing_or_wrong_value_is_refused() {
        for text in [
            "tls-sni",
            "tls-sni=",
            "num-queries-per-conn=0",
            "num-queries-per-conn=-1",
            "qps-threshold-wait=x",
        ] {
            assert!(set(&[text]).is_err(), "{text}");
        }
        let suppressing = set(&["suppress=timeout,nothing"]).unwrap();
        let complaint = suppressing.check_suppressed().unwrap_err();
        assert_eq!(complaint.what, "unknown message type to suppress: nothing");
        let asking = set(&["doh-method=PUT"]).unwrap();
        let complaint = asking.doh_request().unwrap_err();
        assert_eq!(complaint.what, "invalid DNS-over-HTTPS method");
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
        for uri in ["doh-uri=/dns-query", "doh-uri=http://localhost/dns-query"] {
            let complaint = set(&[uri]).unwrap().doh_request().unwrap_err();
            assert_eq!(complaint.what, "invalid DNS-over-HTTPS URI");
        }
    }

    #[test]
    fn distance_counts_single_changes() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("same", "same"), 0);
    }
}
