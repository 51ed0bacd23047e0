//! What was asked for: dnsperf's options with their defaults.

use std::ffi::OsString;
use std::fs::File;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use proto::Transport;
use proto::doh::DohRequest;
use proto::query::Edns;
use proto::tsig::{Algorithm, Key};

use super::command_line::{Given, Split, echo, split};
use super::complaint::Complaint;
use super::options::{LongSettings, number};
use super::usage::{SHORT_OPTIONS, ShortOption};

/// The UDP payload size that dnsperf advertises.
const EDNS_OCTETS: u16 = 4096;
const OUTSTANDING: u32 = 100;
const STATS_INTERVAL_MIN: Duration = Duration::from_millis(1);
const TIMEOUT: Duration = Duration::from_secs(5);
/// What `-t 0` is: no response comes in time.
const TIMEOUT_MIN: Duration = Duration::from_nanos(1);

/// What the command line asks for.
#[derive(Debug)]
pub(super) enum Invocation<S> {
    Help,
    LongHelp,
    Run(Box<S>),
}

/// Which addresses a server name may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    Any,
    Inet,
    Inet6,
}

/// The options, each with its letter.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    /// The command line as it is shown, without a secret.
    pub(super) command_line: String,
    /// `-f`
    pub(super) family: Family,
    /// `-m`
    pub(super) transport: Transport,
    /// Where `-s` is.
    pub(super) target: SocketAddr,
    /// What requests over HTTPS look like.
    pub(super) doh: Option<Arc<DohRequest>>,
    /// `-s`
    pub(super) server: String,
    /// `-p`, or the transport's own.
    pub(super) port: u16,
    /// `-a`
    pub(super) local_address: Option<IpAddr>,
    /// `-x`
    pub(super) local_port: u16,
    /// `-d`; none for standard input.
    pub(super) data_file: Option<PathBuf>,
    /// The same, open.
    pub(super) input: Input,
    /// `-c`
    pub(super) clients: u32,
    /// `-T`
    pub(super) threads: u32,
    /// `-n`; 1 if neither it nor `-l` is given.
    pub(super) runs: Option<u32>,
    /// `-l`
    pub(super) time_limit: Option<Duration>,
    /// `-b` in octets.
    pub(super) buffer_octets: Option<u32>,
    /// `-t`
    pub(super) timeout: Duration,
    /// `-e`, `-D`, `-E`
    pub(super) edns: Option<Edns>,
    /// `-y`
    pub(super) tsig: Option<Key>,
    /// `-q`
    pub(super) outstanding: u32,
    /// `-Q`
    pub(super) rate_qps_max: Option<u32>,
    /// `-S`
    pub(super) stats_interval: Option<Duration>,
    /// `-u`
    pub(super) updates: bool,
    /// The RD bit is set, which only queryperf can do without.
    pub(super) recursion: bool,
    /// `-B`
    pub(super) binary: bool,
    /// `-v`
    pub(super) verbose: bool,
    /// `-W`
    pub(super) log_to_stdout: bool,
    /// `-O`
    pub(super) long: LongSettings,
    pub(super) texts: Texts,
}

/// Values as given that are read once all options are known.
#[derive(Clone, Debug, Default)]
pub(super) struct Texts {
    family: Option<String>,
    mode: Option<String>,
    local_address: Option<String>,
    edns_option: Option<String>,
    tsig: Option<String>,
}

/// Where the questions come from.
#[derive(Clone, Debug, Default)]
pub(super) enum Input {
    #[default]
    Standard,
    File(Arc<File>),
}

impl Input {
    fn open(path: Option<&Path>) -> Result<Self, Complaint> {
        let Some(path) = path else {
            return Ok(Input::Standard);
        };
        let shown = path.display();
        let unopened = |error: std::io::Error| {
            Complaint::new(format!("unable to open file: {shown}"), error.to_string())
        };
        File::open(path)
            .map(Arc::new)
            .map(Input::File)
            .map_err(unopened)
    }
}

impl Settings {
    /// The unit of the labels, `Queries` or `Updates`.
    pub(super) fn unit(&self) -> &'static str {
        if self.updates { "Updates" } else { "Queries" }
    }

    /// What is checked first: kinds of messages, transport, port, requests over HTTPS.
    pub(super) fn complete_transport(&mut self) -> Result<(), Complaint> {
        self.long.check_suppressed()?;
        if let Some(mode) = &self.texts.mode {
            self.transport = transport(mode)?;
        }
        if self.port == 0 {
            self.port = self.transport.default_port();
        }
        self.doh = Some(Arc::new(self.long.doh_request()?));
        Ok(())
    }

    /// What is checked after the transport: server, addresses, input, keys.
    pub(super) fn complete_rest(&mut self) -> Result<(), Complaint> {
        if let Some(name) = &self.texts.family {
            self.family = family(name)?;
        }
        self.target = resolve(self)?;
        if let Some(address) = &self.texts.local_address {
            self.local_address = Some(local_address(address)?);
        }
        let signs = self.texts.tsig.is_some();
        let has_edns = self.edns.is_some() || self.texts.edns_option.is_some();
        if self.binary && (has_edns || signs || self.updates) {
            return Err(Complaint::bare(
                "-B is mutually exclusive with -D, -e, -E, -u, -y",
            ));
        }
        self.input = Input::open(self.data_file.as_deref())?;
        if self.runs.is_none() && self.time_limit.is_none() {
            self.runs = Some(1);
        }
        if let Some(key) = &self.texts.tsig {
            self.tsig = Some(tsig(key)?);
        }
        if let Some(option) = &self.texts.edns_option {
            self.edns_mut().options = vec![edns_option(&option.clone())?];
        }
        Ok(())
    }

    fn edns_mut(&mut self) -> &mut Edns {
        let new = || Edns {
            udp_payload_octets: EDNS_OCTETS,
            ..Edns::default()
        };
        self.edns.get_or_insert_with(new)
    }
}

impl Options for Settings {
    const PROGRAM: &str = "dnsperf";
    const TABLE: &[ShortOption] = &SHORT_OPTIONS;

    fn new(command_line: String) -> Self {
        Settings {
            command_line,
            family: Family::Any,
            transport: Transport::Udp,
            target: SocketAddr::from(([127, 0, 0, 1], 53)),
            doh: None,
            server: "127.0.0.1".to_owned(),
            port: 0,
            local_address: None,
            local_port: 0,
            data_file: None,
            input: Input::default(),
            clients: 1,
            threads: 1,
            runs: None,
            time_limit: None,
            buffer_octets: None,
            timeout: TIMEOUT,
            edns: None,
            tsig: None,
            outstanding: OUTSTANDING,
            rate_qps_max: None,
            stats_interval: None,
            updates: false,
            recursion: true,
            binary: false,
            verbose: false,
            log_to_stdout: false,
            long: LongSettings::default(),
            texts: Texts::default(),
        }
    }

    fn apply(&mut self, given: &Given<'_>) -> Result<(), Complaint> {
        let value = || text(given).map(str::to_owned);
        match given.letter {
            'f' => self.texts.family = Some(value()?),
            'm' => self.texts.mode = Some(value()?),
            's' => self.server = value()?,
            'p' => self.port = port::<Self>(given)?,
            'a' => self.texts.local_address = Some(value()?),
            'x' => self.local_port = port::<Self>(given)?,
            'd' => self.data_file = Some(PathBuf::from(given.value)),
            'c' => self.clients = count::<Self>(given)?,
            'T' => self.threads = count::<Self>(given)?,
            'n' => self.runs = Some(count::<Self>(given)?),
            'l' => self.time_limit = Some(seconds::<Self>(given)?).filter(|limit| !limit.is_zero()),
            'b' => self.buffer_octets = Some(count::<Self>(given)?.saturating_mul(1024)),
            't' => self.timeout = seconds::<Self>(given)?.max(TIMEOUT_MIN),
            'e' => drop(self.edns_mut()),
            'E' => self.texts.edns_option = Some(value()?),
            'D' => self.edns_mut().dnssec_ok = true,
            'y' => self.texts.tsig = Some(value()?),
            'q' => self.outstanding = count::<Self>(given)?,
            'Q' => self.rate_qps_max = Some(count::<Self>(given)?),
            'S' => self.stats_interval = stats_interval(given)?,
            'u' => self.updates = true,
            'B' => self.binary = true,
            'v' => self.verbose = true,
            'W' => self.log_to_stdout = true,
            'O' => self.long.set(&value()?)?,
            // `split` lets no other letter through, and the caller has dealt with -h and -H.
            _ => {}
        }
        Ok(())
    }

    fn complete(&mut self) -> Result<(), Complaint> {
        self.complete_transport()?;
        self.complete_rest()
    }
}

/// What a program's options come to, those of dnsperf or of resperf.
pub(super) trait Options: Sized {
    const PROGRAM: &str;
    const TABLE: &[ShortOption];

    fn new(command_line: String) -> Self;
    /// Takes in one option; looks at numbers, times and ports only.
    fn apply(&mut self, given: &Given<'_>) -> Result<(), Complaint>;
    /// Reads the values that are no numbers, fills in what depends on several options, and looks
    /// for contradictions, all in dnsperf's order.
    fn complete(&mut self) -> Result<(), Complaint>;
}

/// Reads a command line, without the program's name.
///
/// # Errors
/// The first option that cannot be read.
pub(super) fn parse<S: Options>(arguments: &[OsString]) -> Result<Invocation<S>, Complaint> {
    let Split { given, fault } = split(S::PROGRAM, arguments, S::TABLE);
    let mut settings = S::new(echo(S::PROGRAM, arguments, &given));
    for option in &given {
        match option.letter {
            'h' => return Ok(Invocation::Help),
            'H' => return Ok(Invocation::LongHelp),
            _ => settings.apply(option)?,
        }
    }
    match fault {
        Some(fault) => Err(fault),
        None => Ok(Invocation::Run(Box::new(settings))),
    }
}

pub(super) fn text<'a>(given: &Given<'a>) -> Result<&'a str, Complaint> {
    let not_text = || {
        let value = given.value.to_string_lossy();
        Complaint::plain(format!("-{}: `{value}` is not UTF-8", given.letter))
    };
    given.value.to_str().ok_or_else(not_text)
}

/// What the value of an option is called in the help, and so in complaints.
fn value_name<S: Options>(given: &Given<'_>) -> &'static str {
    let option = S::TABLE
        .iter()
        .find(|option| char::from(option.letter) == given.letter);
    option.and_then(|option| option.value).unwrap_or_default()
}

pub(super) fn invalid<S: Options>(given: &Given<'_>) -> Complaint {
    let value = given.value.to_string_lossy();
    Complaint::usage(format!("invalid {}: {value}", value_name::<S>(given)))
}

/// A whole number, 0 included.
pub(super) fn digits<S: Options>(given: &Given<'_>) -> Result<u32, Complaint> {
    number((value_name::<S>(given), text(given)?), 0)
}

pub(super) fn count<S: Options>(given: &Given<'_>) -> Result<u32, Complaint> {
    number((value_name::<S>(given), text(given)?), 1)
}

fn port<S: Options>(given: &Given<'_>) -> Result<u16, Complaint> {
    let number = digits::<S>(given)?;
    u16::try_from(number).map_err(|_| invalid::<S>(given))
}

/// A number with at most one dot; as in dnsperf, none at all is 0.
pub(super) fn decimal<S: Options>(given: &Given<'_>) -> Result<f64, Complaint> {
    let value = text(given)?;
    let plain = value
        .bytes()
        .all(|octet| octet.is_ascii_digit() || octet == b'.');
    if !plain || value.matches('.').count() > 1 {
        return Err(invalid::<S>(given));
    }
    Ok(value.parse().unwrap_or(0.0))
}

/// In whole microseconds, as dnsperf counts time.
pub(super) fn seconds<S: Options>(given: &Given<'_>) -> Result<Duration, Complaint> {
    Ok(Duration::from_micros((decimal::<S>(given)? * 1e6) as u64))
}

/// None for 0, as in dnsperf. The record keeps every interval, so there must not be millions.
fn stats_interval(given: &Given<'_>) -> Result<Option<Duration>, Complaint> {
    let interval = seconds::<Settings>(given)?;
    if !interval.is_zero() && interval < STATS_INTERVAL_MIN {
        return Err(invalid::<Settings>(given).with_hint("give 0.001 seconds or more"));
    }
    Ok(Some(interval).filter(|interval| !interval.is_zero()))
}

fn family(value: &str) -> Result<Family, Complaint> {
    match value {
        "any" => Ok(Family::Any),
        "inet" => Ok(Family::Inet),
        "inet6" => Ok(Family::Inet6),
        _ => Err(Complaint::usage(format!("invalid family {value}"))),
    }
}

fn transport(value: &str) -> Result<Transport, Complaint> {
    match value {
        // What the option was called before dnsperf 2.5.
        "tls" => Ok(Transport::Dot),
        "udp" => Ok(Transport::Udp),
        "tcp" => Ok(Transport::Tcp),
        "dot" => Ok(Transport::Dot),
        "doh" => Ok(Transport::Doh2),
        _ => Err(Complaint::value("invalid socket mode")),
    }
}

fn resolve(settings: &Settings) -> Result<SocketAddr, Complaint> {
    let server = settings.server.as_str();
    let invalid = |why: &str| {
        Complaint::usage(format!("invalid server address {server}")).with_hint(why.to_owned())
    };
    let fits = |address: &SocketAddr| match settings.family {
        Family::Any => true,
        Family::Inet => address.is_ipv4(),
        Family::Inet6 => address.is_ipv6(),
    };
    let mut addresses = (server, settings.port)
        .to_socket_addrs()
        .map_err(|error| invalid(&error.to_string()))?;
    addresses
        .find(fits)
        .ok_or_else(|| invalid("it has no address of the family of -f"))
}

fn local_address(value: &str) -> Result<IpAddr, Complaint> {
    let wrong = |_| Complaint::usage(format!("invalid local address {value}"));
    value.parse().map_err(wrong)
}

/// `code:value`, the value in hex; dnsperf takes the last 16 bits of the code.
fn edns_option(text: &str) -> Result<(u16, Vec<u8>), Complaint> {
    let wrong = |what: String| Complaint::value(format!("invalid EDNS Option{what}"));
    let Some((code, value)) = text.split_once(':') else {
        return Err(wrong(", must be code:value".to_owned()));
    };
    if value.is_empty() {
        return Err(wrong(", value is empty".to_owned()));
    }
    if !value.len().is_multiple_of(2) {
        let what = ", value must hex string (even number of characters)";
        return Err(wrong(what.to_owned()));
    }
    let number = match code {
        "" => Some(0),
        digits => digits.parse::<u64>().ok(),
    };
    let number = number.ok_or_else(|| wrong(format!(" code '{code}'")))?;
    let mut octets = Vec::with_capacity(value.len() / 2);
    for pair in value.as_bytes().chunks(2) {
        let pair = String::from_utf8_lossy(pair);
        let octet = u8::from_str_radix(&pair, 16);
        octets.push(octet.map_err(|_| wrong(format!(" hex value '{pair}'")))?);
    }
    Ok((number as u16, octets))
}

/// Octets of the longest name of a key in dnsperf.
const KEY_NAME_OCTETS_MAX: usize = 256;

/// `[alg:]name:secret`. No complaint shows the secret.
fn tsig(text: &str) -> Result<Key, Complaint> {
    let unusable = |what: &str| Complaint::plain(format!("unable to setup TSIG, {what}"));
    let Some((first, rest)) = text.split_once(':') else {
        return Err(Complaint::value("invalid TSIG [alg:]name:secret"));
    };
    let (name, secret) = match rest.split_once(':') {
        None => (first, rest),
        Some((name, secret)) => {
            if first.parse::<Algorithm>().is_err() {
                return Err(Complaint::value(format!("invalid TSIG algorithm {first}")));
            }
            (name, secret)
        }
    };
    if name.len() > KEY_NAME_OCTETS_MAX {
        return Err(unusable("name too long"));
    }
    if secret.is_empty() {
        return Err(Complaint::value("unable to setup TSIG, secret empty"));
    }
    Key::parse(text, Algorithm::HmacMd5).map_err(|what| {
        let octets = data_encoding::BASE64.decode(secret.as_bytes());
        match octets {
            Err(_) => unusable("invalid base64 secret"),
            Ok(_) => unusable(&what),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(line: &str) -> Result<Settings, Complaint> {
        let arguments: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        match parse::<Settings>(&arguments)? {
            Invocation::Run(mut settings) => settings.complete().map(|()| *settings),
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn defaults_are_those_of_dnsperf() {
        let settings = settings("").unwrap();
        assert_eq!((settings.server.as_str(), settings.port), ("127.0.0.1", 53));
        assert_eq!(
            (settings.clients, settings.threads, settings.outstanding),
            (1, 1, 100)
        );
        assert_eq!((settings.runs, settings.time_limit), (Some(1), None));
        assert_eq!(
            (settings.timeout, settings.transport),
            (TIMEOUT, Transport::Udp)
        );
        assert_eq!(settings.edns, None);
        assert!(settings.data_file.is_none());
    }

    #[test]
    fn the_commands_of_the_article_are_taken() {
        let line = "-f inet -m tcp -s localhost -p 53 -T 4 -c 200 -q 1000 -l 120 \
                    -d /dev/null -O latency-histogram -O verbose-interval-stats -S 1 \
                    -O suppress=timeout,unexpected";
        let settings = settings(line).unwrap();
        assert_eq!(
            (settings.family, settings.transport),
            (Family::Inet, Transport::Tcp)
        );
        assert_eq!(
            (settings.threads, settings.clients, settings.outstanding),
            (4, 200, 1000)
        );
        assert_eq!(
            (settings.runs, settings.time_limit),
            (None, Some(Duration::from_secs(120)))
        );
        assert_eq!(settings.stats_interval, Some(Duration::from_secs(1)));
        assert!(settings.long.latency_histogram && settings.long.verbose_interval_stats);
    }

    #[test]
    fn edns_has_dnsperfs_size_and_the_do_bit_implies_it() {
        let edns = |line| settings(line).unwrap().edns.unwrap();
        assert_eq!(edns("-e").udp_payload_octets, 4096);
        assert!(edns("-D").dnssec_ok);
        assert_eq!(edns("-E 10:0102").options, [(10, vec![1, 2])]);
    }

    #[test]
    fn a_key_without_algorithm_is_hmac_md5() {
        let algorithm = |line| settings(line).unwrap().tsig.unwrap().algorithm;
        assert_eq!(algorithm("-y key:c2VjcmV0"), Algorithm::HmacMd5);
        assert_eq!(
            algorithm("-y hmac-sha256:key:c2VjcmV0"),
            Algorithm::HmacSha256
        );
    }

    #[test]
    fn ports_follow_the_transport() {
        assert_eq!(settings("-m dot").unwrap().port, 853);
        assert_eq!(settings("-m tls -p 8853").unwrap().port, 8853);
        assert_eq!(settings("-m doh -p 0").unwrap().port, 443);
    }

    #[test]
    fn loops_and_limit_go_together_and_fractions_are_seconds() {
        let both = settings("-n 3 -l 0.5 -t 0.25 -b 2048").unwrap();
        assert_eq!(
            (both.runs, both.time_limit),
            (Some(3), Some(Duration::from_millis(500)))
        );
        assert_eq!(both.timeout, Duration::from_millis(250));
        assert_eq!(both.buffer_octets, Some(2 << 20));
    }

    #[test]
    fn bad_values_are_named_in_the_words_of_dnsperf() {
        for (line, what) in [
            ("-c 0", "invalid clients: 0"),
            ("-n 4x", "invalid maxruns: 4x"),
            ("-q 5000000000", "invalid num_queries: 5000000000"),
            ("-l 1.2.3", "invalid timelimit: 1.2.3"),
            ("-t -1", "invalid timeout: -1"),
            ("-S 0.0001", "invalid stats_interval: 0.0001"),
            ("-l inf", "invalid timelimit: inf"),
            ("-p 65536", "invalid port: 65536"),
            ("-x 65536", "invalid local_port: 65536"),
            ("-f inet7", "invalid family inet7"),
            ("-m quic", "invalid socket mode"),
            ("-a localhost", "invalid local address localhost"),
            (
                "-s 256.256.256.256",
                "invalid server address 256.256.256.256",
            ),
            ("-f inet6 -s 127.0.0.1", "invalid server address 127.0.0.1"),
            ("-d /nowhere/names", "unable to open file: /nowhere/names"),
            ("-E 8", "invalid EDNS Option, must be code:value"),
            ("-E 8:", "invalid EDNS Option, value is empty"),
            ("-E 1:xx", "invalid EDNS Option hex value 'xx'"),
            ("-E a:aa", "invalid EDNS Option code 'a'"),
            ("-y name", "invalid TSIG [alg:]name:secret"),
            ("-y md4:name:AA==", "invalid TSIG algorithm md4"),
            ("-y name:", "unable to setup TSIG, secret empty"),
            ("-B -e", "-B is mutually exclusive with -D, -e, -E, -u, -y"),
            ("-B -u", "-B is mutually exclusive with -D, -e, -E, -u, -y"),
            // The first that dnsperf looks at is the one complained of.
            ("-f inet7 -m quic -c 0", "invalid clients: 0"),
            ("-f inet7 -m quic", "invalid socket mode"),
        ] {
            let complaint = settings(line).unwrap_err();
            assert_eq!(complaint.what, what, "{line}: {complaint:?}");
        }
        let long = format!("-y {}:AA==", "x".repeat(300));
        let complaint = settings(&long).unwrap_err();
        assert_eq!(complaint.what, "unable to setup TSIG, name too long");
    }

    #[test]
    fn a_bad_key_is_refused_without_showing_the_secret() {
        let complaint = settings("-y hmac-sha256:key:%%secret%%").unwrap_err();
        assert_eq!(
            complaint.what,
            "unable to setup TSIG, invalid base64 secret"
        );
        assert!(
            !format!("{complaint:?}").contains("%%secret"),
            "{complaint:?}"
        );
    }

    #[test]
    fn a_time_out_of_zero_lets_every_query_time_out() {
        assert_eq!(settings("-t 0").unwrap().timeout, TIMEOUT_MIN);
        assert_eq!(settings("-l 0 -S 0").unwrap().time_limit, None);
    }
}
