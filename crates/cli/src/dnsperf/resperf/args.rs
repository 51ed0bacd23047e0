//! What was asked for: resperf's options with their defaults. Those that dnsperf has too are
//! dnsperf's, some with another letter.

use std::path::PathBuf;
use std::time::Duration;

use measure::ramp::RampPlan;

use super::super::args::{
    self as dnsperf, Options, count, decimal, digits, invalid, seconds, text,
};
use super::super::command_line::Given;
use super::super::complaint::Complaint;
use super::super::equivalent::duration;
use super::super::options::find;
use super::super::usage::ShortOption;
use super::usage::{LONG_OPTIONS, SHORT_OPTIONS};

/// What `-q` is unless it is given.
pub(super) const OUTSTANDING: u64 = 65_536;
const TIMEOUT: Duration = Duration::from_secs(45);
/// Shorter points would be of a handful of queries each.
const PLOT_INTERVAL_MIN: Duration = Duration::from_millis(10);

/// The options, each with its letter.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    /// Those of dnsperf.
    pub(super) base: dnsperf::Settings,
    /// `-i`
    pub(super) plot_interval: Duration,
    /// `-m`
    pub(super) max_qps: f64,
    /// `-P`
    pub(super) plot_file: PathBuf,
    /// `-r`
    pub(super) ramp: Duration,
    /// `-c`
    pub(super) constant: Duration,
    /// `-L`, from 0 to 100
    pub(super) max_loss_percent: f64,
    /// `-q`
    pub(super) outstanding: u64,
    /// `-F`; none for 0.
    pub(super) fall_behind: Option<u64>,
    /// `-R`
    pub(super) reopen: bool,
}

impl Options for Settings {
    const PROGRAM: &str = "resperf";
    const TABLE: &[ShortOption] = &SHORT_OPTIONS;

    fn new(command_line: String) -> Self {
        Settings {
            base: dnsperf::Settings {
                timeout: TIMEOUT,
                ..dnsperf::Settings::new(command_line)
            },
            plot_interval: Duration::from_millis(500),
            max_qps: 100_000.0,
            plot_file: PathBuf::from("resperf.gnuplot"),
            ramp: Duration::from_secs(60),
            constant: Duration::ZERO,
            max_loss_percent: 100.0,
            outstanding: OUTSTANDING,
            fall_behind: Some(1_000),
            reopen: false,
        }
    }

    fn apply(&mut self, given: &Given<'_>) -> Result<(), Complaint> {
        match given.letter {
            'i' => self.plot_interval = plot_interval(given)?,
            'm' => self.max_qps = decimal::<Self>(given)?,
            'P' => self.plot_file = PathBuf::from(given.value),
            'r' => self.ramp = seconds::<Self>(given)?,
            'c' => self.constant = seconds::<Self>(given)?,
            'L' => self.max_loss_percent = percent(given)?,
            'q' => self.outstanding = count::<Self>(given)?.into(),
            'F' => {
                let most = u64::from(digits::<Self>(given)?);
                self.fall_behind = Some(most).filter(|most| *most > 0);
            }
            'R' => self.reopen = true,
            'O' => {
                let name = text(given)?.split('=').next().unwrap_or_default();
                let known = find(name).map(|option| LONG_OPTIONS.contains(&option.name));
                if known == Ok(false) {
                    let what = format!("invalid long option: {}", text(given)?);
                    return Err(Complaint::usage(what));
                }
                self.base.apply(given)?;
            }
            'M' => self.base.apply(&given.with_letter('m'))?,
            'C' => self.base.apply(&given.with_letter('c'))?,
            _ => self.base.apply(given)?,
        }
        Ok(())
    }

    fn complete(&mut self) -> Result<(), Complaint> {
        self.base.complete_transport()?;
        if self.outstanding > OUTSTANDING * u64::from(self.base.clients) {
            return Err(Complaint::plain(format!(
                "number of outstanding packets ({}) must not be more than 64K per client",
                self.outstanding
            )));
        }
        if (self.ramp + self.constant).is_zero() {
            return Err(Complaint::plain(
                "rampup_time and constant_traffic_time must not both be 0",
            ));
        }
        self.base.complete_rest()
    }
}

fn plot_interval(given: &Given<'_>) -> Result<Duration, Complaint> {
    let interval = seconds::<Settings>(given)?;
    match interval >= PLOT_INTERVAL_MIN {
        true => Ok(interval),
        false => Err(invalid::<Settings>(given).with_hint("give 0.01 seconds or more")),
    }
}

fn percent(given: &Given<'_>) -> Result<f64, Complaint> {
    Ok(decimal::<Settings>(given)?.min(100.0))
}

/// A complaint of what the options of dnsperf come to, in the letters of resperf.
pub(super) fn with_letters(mut complaint: Complaint) -> Complaint {
    for text in std::iter::once(&mut complaint.what).chain(&mut complaint.hint) {
        *text = text.replace("-c: ", "-C: ").replace("-c ", "-C ");
    }
    complaint
}

/// The flags of `throng ramp` that say the same.
pub(super) fn words(settings: &Settings, plan: &RampPlan) -> Vec<String> {
    let mut words = vec![
        format!("--to {}", settings.max_qps),
        format!("--over {}", duration(settings.ramp)),
    ];
    if !settings.constant.is_zero() {
        words.push(format!("--sustain {}", duration(settings.constant)));
    }
    words.push(format!("--max-outstanding {}", plan.outstanding_max));
    words.push(format!("--max-behind {}", plan.behind_max.unwrap_or(0)));
    words.push(format!("--interval {}", duration(settings.plot_interval)));
    words.push(format!("--plot {}", settings.plot_file.display()));
    if !settings.reopen {
        words.push("--loops 1".to_owned());
    }
    words
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::super::super::args::{Invocation, parse};
    use super::*;

    fn settings(line: &str) -> Result<Settings, Complaint> {
        let arguments: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        match parse::<Settings>(&arguments)? {
            Invocation::Run(mut settings) => settings.complete().map(|()| *settings),
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn defaults_are_those_of_resperf() {
        let settings = settings("").unwrap();
        assert_eq!(
            (settings.max_qps, settings.outstanding),
            (100_000.0, 65_536)
        );
        assert_eq!(settings.ramp, Duration::from_secs(60));
        assert_eq!(settings.base.timeout, Duration::from_secs(45));
        assert_eq!(settings.plot_interval, Duration::from_millis(500));
        assert_eq!(settings.fall_behind, Some(1_000));
        assert_eq!(settings.plot_file, PathBuf::from("resperf.gnuplot"));
        assert_eq!((settings.base.clients, settings.base.port), (1, 53));
    }

    #[test]
    fn letters_that_dnsperf_uses_otherwise_are_those_of_resperf() {
        let line = "-M dot -C 7 -c 3 -m 500 -q 9 -r 0 -L 2.5 -F 0 -R -t 1 -i 0.1 -P x.txt";
        let settings = settings(line).unwrap();
        assert_eq!(settings.base.transport, proto::Transport::Dot);
        assert_eq!((settings.base.clients, settings.base.port), (7, 853));
        assert_eq!(settings.constant, Duration::from_secs(3));
        assert_eq!((settings.max_qps, settings.outstanding), (500.0, 9));
        assert_eq!(
            (settings.max_loss_percent, settings.fall_behind),
            (2.5, None)
        );
        assert!(settings.reopen && settings.ramp.is_zero());
        assert_eq!(settings.base.command_line, format!("resperf {line}"));
    }

    #[test]
    fn bad_values_are_named_in_the_words_of_resperf() {
        for (line, what) in [
            ("-m 123..", "invalid max_qps: 123.."),
            ("-m 123a", "invalid max_qps: 123a"),
            ("-L x", "invalid max_query_loss: x"),
            ("-C 0", "invalid clients: 0"),
            ("-i 0.001", "invalid plot_interval: 0.001"),
            (
                "-r 0",
                "rampup_time and constant_traffic_time must not both be 0",
            ),
            (
                "-q 256000",
                "number of outstanding packets (256000) must not be more than 64K per client",
            ),
            ("-n 3", "resperf: invalid option -- 'n'"),
            ("-T 3", "resperf: invalid option -- 'T'"),
            ("-M quic", "invalid socket mode"),
            (
                "-O latency-histogram",
                "invalid long option: latency-histogram",
            ),
            ("-m 123.45 more", "unexpected argument more"),
        ] {
            let complaint = settings(line).unwrap_err();
            assert_eq!(complaint.what, what, "{line}: {complaint:?}");
        }
    }
}
