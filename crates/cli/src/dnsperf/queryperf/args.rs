//! What was asked for: queryperf's options with their defaults. Those that dnsperf has too are
//! dnsperf's, some with another letter.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use super::super::args::{self as dnsperf, Options};
use super::super::command_line::{Given, split};
use super::super::usage::{ShortOption, switch, takes};

/// Queries in flight unless `-q` says otherwise.
const OUTSTANDING: u32 = 20;
const TIMEOUT: Duration = Duration::from_secs(5);
const BUFFER_OCTETS: u32 = 32 << 10;

/// The options, with the names of their values.
const OPTIONS: [ShortOption; 21] = [
    takes(b'd', "datafile", ""),
    takes(b's', "server_addr", ""),
    takes(b'p', "port", ""),
    takes(b'q', "num_queries", ""),
    takes(b'b', "bufsize", ""),
    takes(b't', "timeout", ""),
    switch(b'n', ""),
    takes(b'l', "limit", ""),
    takes(b'f', "family", ""),
    switch(b'1', ""),
    takes(b'i', "interval", ""),
    takes(b'r', "arraysize", ""),
    takes(b'u', "unit", ""),
    takes(b'H', "histfile", ""),
    takes(b'T', "qps", ""),
    switch(b'e', ""),
    switch(b'D', ""),
    switch(b'R', ""),
    switch(b'c', ""),
    switch(b'v', ""),
    switch(b'h', ""),
];

/// The help of `-h`.
pub(super) const USAGE: &str = "
Usage: queryperf [-d datafile] [-s server_addr] [-p port] [-q num_queries]
                 [-b bufsize] [-t timeout] [-n] [-l limit] [-f family] [-1]
                 [-i interval] [-r arraysize] [-u unit] [-H histfile]
                 [-T qps] [-e] [-D] [-R] [-c] [-v] [-h]
  -d file of the questions (default: stdin)
  -s server to query (default: 127.0.0.1)
  -p port of the server (default: 53)
  -q queries in flight at a time (default: 20)
  -t seconds until a query counts as lost (default: 5)
  -n ignore configuration in the file (it always is)
  -l seconds to run (no default)
  -1 run through the file once (default: many times if -l is given)
  -b socket buffers in kilobytes (default: 32)
  -i seconds between intermediate statistics, with -l (default: 0 for none)
  -f address family, inet or inet6 (default: any)
  -r slots of the array of RTTs (default: 50000)
  -u microseconds of a slot (default: 100)
  -H file for the histogram of RTTs (default: none)
  -T most queries a second (default: 0 for any number)
  -e send EDNS
  -D set the DO bit (implies EDNS)
  -R clear the RD bit
  -c show the number of responses with each RCODE
  -v show the RCODE of each response
  -h show this
";

/// The options, each with its letter.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    /// Those of dnsperf.
    pub(super) base: dnsperf::Settings,
    /// `-1`, or no `-l`.
    pub(super) is_once: bool,
    /// `-l` in seconds.
    pub(super) limit_s: Option<u32>,
    /// `-r`
    pub(super) slots: u32,
    /// `-u`
    pub(super) slot_us: u32,
    /// `-H`
    pub(super) histogram: Option<PathBuf>,
    /// `-T`, 0 for any.
    pub(super) target_qps: u32,
    /// `-c`
    pub(super) counts_rcodes: bool,
}

/// Why nothing is run, if there is anything to say beside the usage.
pub(super) type Refusal = Option<String>;

/// Reads a command line, without the program's name.
///
/// # Errors
/// The first option that cannot be read, or `-h`.
pub(super) fn parse(arguments: &[OsString]) -> Result<Settings, Refusal> {
    let taken = split("queryperf", arguments, &OPTIONS);
    let mut settings = Settings {
        base: dnsperf::Settings {
            outstanding: OUTSTANDING,
            timeout: TIMEOUT,
            buffer_octets: Some(BUFFER_OCTETS),
            ..dnsperf::Settings::new(String::new())
        },
        is_once: false,
        limit_s: None,
        slots: 50_000,
        slot_us: 100,
        histogram: None,
        target_qps: 0,
        counts_rcodes: false,
    };
    for given in &taken.given {
        settings.apply(given)?;
    }
    if let Some(fault) = taken.fault {
        return Err(Some(fault.what));
    }
    settings.is_once |= settings.limit_s.is_none();
    settings.base.runs = settings.is_once.then_some(1);
    let limit = settings
        .limit_s
        .map(|limit| Duration::from_secs(limit.into()));
    settings.base.time_limit = limit.filter(|limit| !limit.is_zero());
    settings
        .base
        .complete()
        .map_err(|refused| Some(refused.what))?;
    Ok(settings)
}

impl Settings {
    fn apply(&mut self, given: &Given<'_>) -> Result<(), Refusal> {
        let number = || number(given);
        match given.letter {
            'q' => self.base.outstanding = number()?.max(1),
            't' => self.base.timeout = Duration::from_secs(number()?.max(1).into()),
            'b' => self.base.buffer_octets = Some(number()?.saturating_mul(1024)),
            'l' => self.limit_s = Some(number()?),
            'i' => {
                let seconds = Duration::from_secs(number()?.into());
                self.base.stats_interval = Some(seconds).filter(|time| !time.is_zero());
            }
            'r' => self.slots = number()?,
            'u' => self.slot_us = number()?.max(1),
            'H' => self.histogram = Some(PathBuf::from(given.value)),
            'T' => {
                self.target_qps = number()?;
                self.base.rate_qps_max = Some(self.target_qps).filter(|qps| *qps > 0);
            }
            '1' => self.is_once = true,
            'c' => self.counts_rcodes = true,
            'R' => self.base.recursion = false,
            'h' => return Err(None),
            // What the file says of the configuration is never followed.
            'n' => {}
            _ => {
                let applied = self.base.apply(given);
                applied.map_err(|refused| Some(refused.what))?;
            }
        }
        Ok(())
    }
}

fn number(given: &Given<'_>) -> Result<u32, Refusal> {
    let value = given.value.to_string_lossy();
    let plain = value.bytes().all(|octet| octet.is_ascii_digit());
    let parsed = value.parse().ok().filter(|_| plain);
    parsed.ok_or_else(|| {
        let letter = given.letter;
        Some(format!(
            "Option requires a positive integer value: -{letter} {value}"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(line: &str) -> Result<Settings, Refusal> {
        let arguments: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        parse(&arguments)
    }

    #[test]
    fn defaults_are_those_of_queryperf() {
        let settings = settings("").unwrap();
        let base = &settings.base;
        assert_eq!((base.outstanding, base.timeout), (20, TIMEOUT));
        assert_eq!((base.clients, base.runs), (1, Some(1)));
        assert_eq!((settings.slots, settings.slot_us), (50_000, 100));
        assert!(settings.is_once && base.recursion);
    }

    #[test]
    fn every_option_of_queryperf_is_taken() {
        let line = "-d /dev/null -s ::1 -p 5353 -q 7 -b 64 -t 2 -n -l 3 -f inet6 -i 1 -r 9 -u 5 \
                    -H hist -T100 -e -D -R -c -v";
        let settings = settings(line).unwrap();
        let base = &settings.base;
        assert_eq!(base.target.to_string(), "[::1]:5353");
        assert_eq!((base.outstanding, base.rate_qps_max), (7, Some(100)));
        assert_eq!(
            (base.runs, base.time_limit),
            (None, Some(Duration::from_secs(3)))
        );
        assert_eq!(base.stats_interval, Some(Duration::from_secs(1)));
        assert!(base.edns.as_ref().unwrap().dnssec_ok && base.verbose && !base.recursion);
        assert!(settings.counts_rcodes && !settings.is_once);
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        for (line, what) in [
            ("-q x", "Option requires a positive integer value: -q x"),
            ("-z", "queryperf: invalid option -- 'z'"),
            ("-d /nowhere/names", "unable to open file: /nowhere/names"),
        ] {
            assert_eq!(settings(line).unwrap_err().as_deref(), Some(what));
        }
        assert_eq!(settings("-h").unwrap_err(), None);
    }
}
