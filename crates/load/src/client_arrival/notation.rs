//! Parses the notation of a client's arrivals.

use std::time::Duration;

use proto::time::parse_duration;

use super::{ClientArrival, Think, validate};
use crate::arrival::parse_rate;
use crate::plan_error::PlanError;

/// Queries that a client has open at once if it sends as fast as its connection allows: enough to
/// keep a connection busy over 1 ms of distance, and below every server's usual limit of streams.
pub const FULL_SPEED_OUTSTANDING: u32 = 32;
/// Default exponent of ON/OFF periods: in the middle of what traffic studies found.
const PARETO_SHAPE: f64 = 1.5;

/// Reads how each client asks:
///
/// | text | meaning |
/// |---|---|
/// | `constant:2` | 2 queries a second, evenly spaced |
/// | `turns:2,of=10` | the same, ten clients taking turns |
/// | `poisson:0.5` | one every 2 s on average, exponential gaps |
/// | `onoff:5,on=2s,off=30s,shape=1.5` | 5 a second for 2 s, then 30 s of pause (Pareto) |
/// | `bursts:8,every=20s` | 8 at once, every 20 s on average |
/// | `closed:4,think=1s` | 4 open at once, 1 s between a response and the next query |
/// | `closed:1,think=exp(1s)` | the same with an exponential time to think |
/// | `full` | as fast as the connection allows |
///
/// # Errors
/// The part that cannot be parsed, with an example.
pub fn parse(text: &str) -> Result<ClientArrival, PlanError> {
    let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
    let mut words = rest.split(',').map(str::trim);
    let first = words.next().unwrap_or("");
    let options = Options::read(words)?;
    let arrival = match kind {
        "constant" => ClientArrival::Constant {
            rate_qps: parse_rate(first)?,
        },
        "turns" => ClientArrival::Turns {
            rate_qps: parse_rate(first)?,
            clients: count(options.needed("of", "CLIENTS")?)?,
        },
        "poisson" => ClientArrival::Poisson {
            rate_qps: parse_rate(first)?,
        },
        "onoff" => ClientArrival::OnOff {
            rate_qps: parse_rate(first)?,
            on_mean: options.time("on")?,
            off_mean: options.time("off")?,
            pareto_shape: options.shape()?,
        },
        "bursts" => ClientArrival::Bursts {
            queries: count(first)?,
            every: options.time("every")?,
        },
        "closed" => ClientArrival::Closed {
            outstanding: count(first)?,
            think: options.think()?,
        },
        "full" => ClientArrival::Closed {
            outstanding: match first {
                "" => FULL_SPEED_OUTSTANDING,
                given => count(given)?,
            },
            think: Think::Constant(Duration::ZERO),
        },
        _ => return Err(wrong(format!("`{kind}` is not a way of sending queries"))),
    };
    options.reject_unused(kind)?;
    validate(&arrival).map(|()| arrival)
}

/// `NAME=VALUE` words.
struct Options<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Options<'a> {
    fn read(words: impl Iterator<Item = &'a str>) -> Result<Self, PlanError> {
        let pair = |word: &'a str| {
            word.split_once('=')
                .ok_or_else(|| wrong(format!("`{word}` is not NAME=VALUE")))
        };
        words.map(pair).collect::<Result<_, _>>().map(Options)
    }

    fn get(&self, name: &str) -> Option<&'a str> {
        let found = self.0.iter().find(|(given, _)| *given == name);
        found.map(|(_, value)| *value)
    }

    fn needed(&self, name: &str, value: &str) -> Result<&'a str, PlanError> {
        let missing = || wrong(format!("`{name}={value}` is missing"));
        self.get(name).ok_or_else(missing)
    }

    fn time(&self, name: &str) -> Result<Duration, PlanError> {
        let text = self.needed(name, "TIME")?;
        parse_duration(text)
            .filter(|time| !time.is_zero())
            .ok_or_else(|| wrong(format!("`{text}` is not a time above zero")))
    }

    fn shape(&self) -> Result<f64, PlanError> {
        let Some(text) = self.get("shape") else {
            return Ok(PARETO_SHAPE);
        };
        text.parse()
            .ok()
            .filter(|shape: &f64| shape.is_finite())
            .ok_or_else(|| wrong(format!("`{text}` is not a number")))
    }

    fn think(&self) -> Result<Think, PlanError> {
        let Some(text) = self.get("think") else {
            return Ok(Think::Constant(Duration::ZERO));
        };
        let exponential = text
            .strip_prefix("exp(")
            .and_then(|rest| rest.strip_suffix(')'));
        let time = parse_duration(exponential.unwrap_or(text));
        let time = time.ok_or_else(|| wrong(format!("`{text}` is not a time")))?;
        Ok(match exponential {
            Some(_) => Think::Exponential(time),
            None => Think::Constant(time),
        })
    }

    fn reject_unused(&self, kind: &str) -> Result<(), PlanError> {
        let known: &[&str] = match kind {
            "turns" => &["of"],
            "onoff" => &["on", "off", "shape"],
            "bursts" => &["every"],
            "closed" => &["think"],
            _ => &[],
        };
        match self.0.iter().find(|(name, _)| !known.contains(name)) {
            Some((name, _)) => Err(wrong(format!("`{kind}` has no option `{name}`"))),
            None => Ok(()),
        }
    }
}

fn count(text: &str) -> Result<u32, PlanError> {
    text.parse()
        .map_err(|_| wrong(format!("`{text}` is not a number of queries")))
}

fn wrong(what: String) -> PlanError {
    let hint = "write constant:2, poisson:0.5, onoff:5,on=2s,off=30s, bursts:8,every=20s, \
                closed:4,think=1s or full";
    PlanError::new("per-client", what, hint)
}
