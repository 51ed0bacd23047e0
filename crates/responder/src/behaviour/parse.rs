//! The forms in which behaviour is typed on the command line.

use std::fmt;
use std::time::Duration;

use super::{ConnectionEnd, Delay, Stall, check_stall};

/// What is wrong with a behaviour or with its text form.
#[derive(Clone, Debug, PartialEq)]
pub enum BehaviourError {
    /// Not a duration.
    Duration(String),
    /// Not a delay.
    Delay(String),
    /// `min` of a uniform delay is above `max`.
    DelayOrder {
        /// The shortest delay.
        min: Duration,
        /// The longest delay.
        max: Duration,
    },
    /// Not a number from 0 to 1.
    Share(String),
    /// Not `status=share`.
    HttpStatusShare(String),
    /// Not a final HTTP status, 200 to 999.
    HttpStatus(String),
    /// The shares of all faults together are more than 1.
    SharesSum(f64),
    /// The shares of QUIC connections together are more than 1.
    QuicSharesSum(f64),
    /// Not `RCODE=share`.
    RcodeShare(String),
    /// Not the mnemonic of an RCODE from 0 to 15.
    Rcode(String),
    /// A part of a stall that is not `at=`, `for=` or `every=` with a duration.
    StallPart(String),
    /// A stall without this part.
    StallWithout(&'static str),
    /// A stall that starts again before it ends.
    StallForever {
        /// How long one lasts.
        length: Duration,
        /// From start to start.
        every: Duration,
    },
    /// Not a positive rate.
    Rate(f64),
    /// A connection that would end before its first query.
    EndAfterNone,
    /// Not a way in which a connection ends.
    ConnectionEnd(String),
}

impl BehaviourError {
    /// What was typed and what was expected, for texts of the wrong form.
    fn form(&self) -> Option<(&str, &'static str)> {
        Some(match self {
            BehaviourError::Duration(text) => (
                text,
                "a duration: expected numbers with ns, us, ms, s, m or h, such as 500ms or 1m30s",
            ),
            BehaviourError::Delay(text) => (
                text,
                "a delay: expected `5ms`, `uniform:1ms..10ms` or `exponential:5ms`",
            ),
            BehaviourError::Share(text) => {
                (text, "a share: expected a number from 0 to 1, such as 0.01")
            }
            BehaviourError::RcodeShare(text) => (
                text,
                "an RCODE share: expected `NXDOMAIN=0.1,SERVFAIL=0.01`",
            ),
            BehaviourError::Rcode(text) => (text, "an RCODE from 0 to 15, such as NXDOMAIN"),
            BehaviourError::HttpStatusShare(text) => {
                (text, "an HTTP status share: expected `429=0.1,503=0.01`")
            }
            BehaviourError::HttpStatus(text) => (text, "an HTTP status from 200 to 999"),
            BehaviourError::StallPart(text) => {
                (text, "part of a stall: expected `at=3s,for=1s[,every=10s]`")
            }
            BehaviourError::ConnectionEnd(text) => (
                text,
                "a way to end a connection: expected close, reset, half-close, stop-reading, \
                 tls-alert, goaway or error=CODE",
            ),
            _ => return None,
        })
    }
}

impl fmt::Display for BehaviourError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((text, expected)) = self.form() {
            return write!(f, "`{text}` is not {expected}");
        }
        match self {
            BehaviourError::DelayOrder { min, max } => {
                write!(
                    f,
                    "uniform delay: {min:?} is more than {max:?}; put the lesser first"
                )
            }
            BehaviourError::SharesSum(sum) => write!(
                f,
                "the shares of loss and faults sum to {sum}; they exclude each other, so that the \
                 sum is at most 1"
            ),
            BehaviourError::QuicSharesSum(sum) => write!(
                f,
                "the shares of QUIC connections sum to {sum}; they exclude each other, so that the \
                 sum is at most 1"
            ),
            BehaviourError::StallWithout(part) => {
                write!(
                    f,
                    "a stall needs `{part}=`: expected `at=3s,for=1s[,every=10s]`"
                )
            }
            BehaviourError::StallForever { length, every } => {
                write!(
                    f,
                    "a stall of {length:?} every {every:?} never ends; make `every` longer"
                )
            }
            BehaviourError::Rate(rate) => {
                write!(
                    f,
                    "a ceiling of {rate} queries a second answers nothing; expected above 0"
                )
            }
            // All others are texts of the wrong form.
            _ => f.write_str("a connection cannot end after 0 queries; expected 1 or more"),
        }
    }
}

impl std::error::Error for BehaviourError {}

/// Reads a duration such as `5ms`, `1.5s`, `200us`, `2m`; 0 needs no unit.
///
/// # Errors
/// [`BehaviourError::Duration`] for anything else.
pub fn parse_duration(text: &str) -> Result<Duration, BehaviourError> {
    proto::time::parse_duration(text).ok_or_else(|| BehaviourError::Duration(text.to_owned()))
}

/// Reads a share, a number from 0 to 1.
///
/// # Errors
/// [`BehaviourError::Share`] for anything else.
pub fn parse_share(text: &str) -> Result<f64, BehaviourError> {
    match text.parse() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err(BehaviourError::Share(text.to_owned())),
    }
}

/// Reads shares of RCODEs such as `NXDOMAIN=0.1,SERVFAIL=0.01`.
///
/// # Errors
/// The first part that is not of that form.
pub fn parse_rcode_shares(text: &str) -> Result<Vec<(u8, f64)>, BehaviourError> {
    let share = |part: &str| {
        let (rcode, share) = part
            .split_once('=')
            .ok_or_else(|| BehaviourError::RcodeShare(part.to_owned()))?;
        let number = proto::rr::rcode_from_text(rcode.trim())
            .and_then(|number| u8::try_from(number).ok())
            .filter(|number| *number <= 15)
            .ok_or_else(|| BehaviourError::Rcode(rcode.to_owned()))?;
        Ok((number, parse_share(share.trim())?))
    };
    text.split(',').map(str::trim).map(share).collect()
}

/// Reads shares of HTTP statuses such as `429=0.1,503=0.01`.
///
/// # Errors
/// The first part that is not of that form.
pub fn parse_http_status_shares(text: &str) -> Result<Vec<(u16, f64)>, BehaviourError> {
    let share = |part: &str| {
        let (status, share) = part
            .split_once('=')
            .ok_or_else(|| BehaviourError::HttpStatusShare(part.to_owned()))?;
        let number = status.trim().parse().ok();
        let number = number
            .filter(|number| (200..1_000).contains(number))
            .ok_or_else(|| BehaviourError::HttpStatus(status.to_owned()))?;
        Ok((number, parse_share(share.trim())?))
    };
    text.split(',').map(str::trim).map(share).collect()
}

/// Reads a delay such as `5ms`, `uniform:1ms..10ms` or `exponential:5ms`.
///
/// # Errors
/// What is not of that form.
pub fn parse_delay(text: &str) -> Result<Delay, BehaviourError> {
    let duration =
        |part: &str| parse_duration(part).map_err(|_| BehaviourError::Delay(text.to_owned()));
    if let Some(range) = text.strip_prefix("uniform:") {
        let (min, max) = range
            .split_once("..")
            .ok_or_else(|| BehaviourError::Delay(text.to_owned()))?;
        let (min, max) = (duration(min)?, duration(max)?);
        if min > max {
            return Err(BehaviourError::DelayOrder { min, max });
        }
        return Ok(Delay::Uniform { min, max });
    }
    if let Some(mean) = text.strip_prefix("exponential:") {
        return Ok(Delay::Exponential {
            mean: duration(mean)?,
        });
    }
    match text.strip_prefix("constant:").unwrap_or(text) {
        "none" => Ok(Delay::None),
        constant => match duration(constant)? {
            Duration::ZERO => Ok(Delay::None),
            delay => Ok(Delay::Constant(delay)),
        },
    }
}

/// Reads a stall such as `at=3s,for=1s,every=10s`.
///
/// # Errors
/// What is not of that form.
pub fn parse_stall(text: &str) -> Result<Stall, BehaviourError> {
    let (mut at, mut length, mut every) = (None, None, None);
    for part in text.split(',').map(str::trim) {
        let error = || BehaviourError::StallPart(part.to_owned());
        let (key, value) = part.split_once('=').ok_or_else(error)?;
        let field = match key {
            "at" => &mut at,
            "for" => &mut length,
            "every" => &mut every,
            _ => return Err(error()),
        };
        if field.replace(parse_duration(value)?).is_some() {
            return Err(error());
        }
    }
    let stall = Stall {
        at: at.ok_or(BehaviourError::StallWithout("at"))?,
        length: length.ok_or(BehaviourError::StallWithout("for"))?,
        every,
    };
    check_stall(&stall)?;
    Ok(stall)
}

/// Reads how a connection ends, such as `goaway` or `error=4`.
///
/// # Errors
/// What is not of that form.
pub fn parse_connection_end(text: &str) -> Result<ConnectionEnd, BehaviourError> {
    match text {
        "close" => Ok(ConnectionEnd::Close),
        "reset" => Ok(ConnectionEnd::Reset),
        "half-close" => Ok(ConnectionEnd::HalfClose),
        "stop-reading" => Ok(ConnectionEnd::StopReading),
        "tls-alert" => Ok(ConnectionEnd::TlsAlert),
        "goaway" => Ok(ConnectionEnd::GoAway),
        _ => match text.strip_prefix("error=").map(parse_code) {
            Some(Some(code)) => Ok(ConnectionEnd::Error(code)),
            _ => Err(BehaviourError::ConnectionEnd(text.to_owned())),
        },
    }
}

/// An error code of QUIC, below 2^62, in decimal or with 0x in hexadecimal.
fn parse_code(text: &str) -> Option<u64> {
    let code = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok()?,
        None => text.parse().ok()?,
    };
    (code < 1 << 62).then_some(code)
}
