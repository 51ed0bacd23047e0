//! What was asked for: dnsperf's options with their defaults.

use std::ffi::{OsStr, OsString};
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use load::line_options::parse_edns_option;
use proto::Transport;
use proto::query::Edns;
use proto::tsig::{Algorithm, Key};

use super::command_line::{Given, echo, split};
use super::complaint::Complaint;
use super::options::LongSettings;
use super::usage::{SHORT_OPTIONS, ShortOption};

/// The UDP payload size that dnsperf advertises.
const EDNS_OCTETS: u16 = 4096;
const OUTSTANDING: u32 = 100;
const STATS_INTERVAL_MIN: Duration = Duration::from_millis(1);
const TIMEOUT: Duration = Duration::from_secs(5);

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
    /// `-B`
    pub(super) binary: bool,
    /// `-v`
    pub(super) verbose: bool,
    /// `-W`
    pub(super) log_to_stdout: bool,
    /// `-O`
    pub(super) long: LongSettings,
}

impl Settings {
    /// The unit of the labels, `Queries` or `Updates`.
    pub(super) fn unit(&self) -> &'static str {
        if self.updates { "Updates" } else { "Queries" }
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
            server: "127.0.0.1".to_owned(),
            port: 0,
            local_address: None,
            local_port: 0,
            data_file: None,
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
            binary: false,
            verbose: false,
            log_to_stdout: false,
            long: LongSettings::default(),
        }
    }

    fn apply(&mut self, given: &Given<'_>) -> Result<(), Complaint> {
        let value = || text(given);
        match given.letter {
            'f' => self.family = family(value()?)?,
            'm' => self.transport = transport(value()?)?,
            's' => self.server = value()?.to_owned(),
            'p' => self.port = port(given)?,
            'a' => self.local_address = Some(local_address(value()?)?),
            'x' => self.local_port = port(given)?,
            'd' => self.data_file = Some(PathBuf::from(given.value)),
            'c' => self.clients = count(given)?,
            'T' => self.threads = count(given)?,
            'n' => self.runs = Some(count(given)?),
            'l' => self.time_limit = Some(seconds(given)?).filter(|limit| !limit.is_zero()),
            'b' => self.buffer_octets = Some(count(given)?.saturating_mul(1024)),
            't' => self.timeout = seconds(given)?,
            'e' => drop(self.edns_mut()),
            'E' => self.edns_mut().options = vec![edns_option(value()?)?],
            'D' => self.edns_mut().dnssec_ok = true,
            'y' => self.tsig = Some(tsig(value()?)?),
            'q' => self.outstanding = count(given)?,
            'Q' => self.rate_qps_max = Some(count(given)?),
            'S' => self.stats_interval = stats_interval(given)?,
            'u' => self.updates = true,
            'B' => self.binary = true,
            'v' => self.verbose = true,
            'W' => self.log_to_stdout = true,
            'O' => self.long.set(value()?)?,
            // `split` lets no other letter through, and the caller has dealt with -h and -H.
            _ => {}
        }
        Ok(())
    }

    fn complete(mut self, port_given: bool) -> Result<Self, Complaint> {
        if !port_given {
            self.port = self.transport.default_port();
        }
        if self.port == 0 {
            return Err(Complaint::new(
                "the server cannot have port 0 (-p)",
                "leave out -p",
            ));
        }
        if self.binary && (self.edns.is_some() || self.tsig.is_some() || self.updates) {
            return Err(Complaint::new(
                "-B contradicts -D, -e, -E, -u and -y",
                "messages of a -B file are sent as they are: leave out one or the other",
            ));
        }
        if self.runs.is_none() && self.time_limit.is_none() {
            self.runs = Some(1);
        }
        Ok(self)
    }
}

/// What a program's options come to, those of dnsperf or of resperf.
pub(super) trait Options: Sized {
    const PROGRAM: &str;
    const TABLE: &[ShortOption];

    fn new(command_line: String) -> Self;
    fn apply(&mut self, given: &Given<'_>) -> Result<(), Complaint>;
    /// Fills in what depends on several options, and looks for contradictions.
    fn complete(self, port_given: bool) -> Result<Self, Complaint>;
}

/// Reads a command line, without the program's name.
///
/// # Errors
/// The first option that cannot be used.
pub(super) fn parse<S: Options>(arguments: &[OsString]) -> Result<Invocation<S>, Complaint> {
    let given = split(arguments, S::TABLE)?;
    let mut settings = S::new(echo(S::PROGRAM, arguments, &given));
    let mut port_given = false;
    for option in &given {
        match option.letter {
            'h' => return Ok(Invocation::Help),
            'H' => return Ok(Invocation::LongHelp),
            letter => port_given |= letter == 'p',
        }
        settings.apply(option)?;
    }
    Ok(Invocation::Run(Box::new(settings.complete(port_given)?)))
}

pub(super) fn text<'a>(given: &Given<'a>) -> Result<&'a str, Complaint> {
    let not_text = || {
        let value = given.value.to_string_lossy();
        Complaint::plain(format!("-{}: `{value}` is not UTF-8", given.letter))
    };
    given.value.to_str().ok_or_else(not_text)
}

pub(super) fn invalid(given: &Given<'_>, form: &str) -> Complaint {
    let value: &OsStr = given.value;
    let what = format!(
        "-{}: invalid value `{}`",
        given.letter,
        value.to_string_lossy()
    );
    Complaint::new(what, form)
}

pub(super) fn digits(given: &Given<'_>) -> Result<u32, Complaint> {
    let form = "give a whole number";
    let value = text(given)?;
    let plain = value.bytes().all(|octet| octet.is_ascii_digit());
    value
        .parse()
        .ok()
        .filter(|_| plain)
        .ok_or_else(|| invalid(given, form))
}

pub(super) fn count(given: &Given<'_>) -> Result<u32, Complaint> {
    match digits(given)? {
        0 => Err(invalid(given, "give 1 or more")),
        count => Ok(count),
    }
}

fn port(given: &Given<'_>) -> Result<u16, Complaint> {
    let number = digits(given)?;
    u16::try_from(number).map_err(|_| invalid(given, "give a port from 0 to 65535"))
}

pub(super) fn seconds(given: &Given<'_>) -> Result<Duration, Complaint> {
    let value = text(given)?;
    let plain = value
        .bytes()
        .all(|octet| octet.is_ascii_digit() || octet == b'.');
    let parsed = value.parse::<f64>().ok().filter(|_| plain);
    let duration = parsed.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    duration.ok_or_else(|| invalid(given, "give seconds, such as 5 or 0.25"))
}

/// None for 0, as in dnsperf. The record keeps every interval, so there must not be millions.
fn stats_interval(given: &Given<'_>) -> Result<Option<Duration>, Complaint> {
    let interval = seconds(given)?;
    if !interval.is_zero() && interval < STATS_INTERVAL_MIN {
        return Err(invalid(given, "give 0.001 seconds or more"));
    }
    Ok(Some(interval).filter(|interval| !interval.is_zero()))
}

fn family(value: &str) -> Result<Family, Complaint> {
    match value {
        "any" => Ok(Family::Any),
        "inet" => Ok(Family::Inet),
        "inet6" => Ok(Family::Inet6),
        _ => Err(Complaint::new(
            format!("invalid family `{value}`"),
            "-f is inet, inet6 or any",
        )),
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
        _ => Err(Complaint::new(
            format!("invalid mode `{value}`"),
            "-m is udp, tcp, dot or doh",
        )),
    }
}

fn local_address(value: &str) -> Result<IpAddr, Complaint> {
    let hint = "-a is an IPv4 or IPv6 address of this host";
    value
        .parse()
        .map_err(|_| Complaint::new(format!("invalid local address `{value}`"), hint))
}

fn edns_option(value: &str) -> Result<(u16, Vec<u8>), Complaint> {
    parse_edns_option(value)
        .map_err(|what| Complaint::new(format!("-E: {what}"), "-E is code:value, such as 10:0a1b"))
}

fn tsig(value: &str) -> Result<Key, Complaint> {
    Key::parse(value, Algorithm::HmacMd5)
        .map_err(|what| Complaint::new(format!("-y: {what}"), "-y is [alg:]name:secret"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(line: &str) -> Result<Settings, Complaint> {
        let arguments: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        parse::<Settings>(&arguments).map(|invocation| match invocation {
            Invocation::Run(settings) => *settings,
            other => panic!("{line}: {other:?}"),
        })
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
        let line = "-f inet -m tcp -s demo-0.example -p 53 -T 4 -c 200 -q 1000 -l 120 \
                    -d /tmp/records.txt -O latency-histogram -O verbose-interval-stats -S 1 \
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
        assert!(settings("-p 0").is_err());
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
    fn bad_values_are_named_with_their_letter() {
        for (line, part) in [
            ("-c 0", "-c: invalid value `0`"),
            ("-c 4x", "-c: invalid value `4x`"),
            ("-q 5000000000", "-q: invalid value"),
            ("-l 1.2.3", "-l: invalid value `1.2.3`"),
            ("-t -1", "-t: invalid value `-1`"),
            ("-S 0.0001", "-S: invalid value `0.0001`"),
            ("-l inf", "-l: invalid value `inf`"),
            ("-p 65536", "-p: invalid value `65536`"),
            ("-f inet7", "invalid family `inet7`"),
            ("-m quic", "invalid mode `quic`"),
            ("-m doq", "invalid mode `doq`"),
            ("-a localhost", "invalid local address `localhost`"),
            ("-E 8:xx", "-E: `xx` is not"),
            ("-y name", "-y: "),
            ("-B -e", "-B contradicts"),
            ("-B -u", "-B contradicts"),
        ] {
            let complaint = settings(line).unwrap_err();
            assert!(complaint.what.contains(part), "{line}: {complaint:?}");
        }
    }

    #[test]
    fn a_bad_key_is_refused_without_showing_the_secret() {
        let complaint = settings("-y hmac-sha256:key:%%secret%%").unwrap_err();
        assert!(
            !format!("{complaint:?}").contains("%%secret%%"),
            "{complaint:?}"
        );
    }
}
