//! What a request asks for. Without I/O: nothing of a request is ever a path of the file system.

use history::Filter;
use measure::metric::Metric;

use super::pages::{self, Links, Made};

/// Most characters of a text that is looked for, and of a fact's name.
const TEXT_MAX: usize = 200;
/// The metric of a trend, and the fact that groups its runs, where a request names none.
const METRIC: Metric = Metric::P99;
const BY: &str = "transport";

/// A page that there can be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Question {
    /// A page of the runs that match.
    List { filter: Filter, page: u64 },
    /// The report on a run.
    Record { id: i64 },
    /// B compared with A; `is_forced` if they may be of different scenarios.
    Compare { a: i64, b: i64, is_forced: bool },
    /// A metric of the runs that match, over time.
    Trend {
        metric: Metric,
        by: String,
        filter: Filter,
    },
}

/// A request that cannot be for a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// There is no such page.
    NotFound,
    /// What is wrong with its parameters.
    Malformed(String),
}

impl Wrong {
    pub(crate) fn page(&self, links: &Links) -> Made {
        match self {
            Wrong::NotFound => pages::error(404, "There is no such page.", links),
            Wrong::Malformed(what) => pages::error(400, what, links),
        }
    }
}

impl Question {
    pub(crate) fn parse(path: &str, query: &str) -> Result<Question, Wrong> {
        let parameters = Parameters::parse(query)?;
        match path {
            "/" => Ok(Question::List {
                filter: parameters.filter()?,
                page: match parameters.get("page") {
                    None => 1,
                    Some(text) => number(text).ok_or_else(|| {
                        malformed("The number of the page is not a number from 1 up.")
                    })?,
                },
            }),
            "/compare" => {
                let run = |name: &str| parameters.get(name).and_then(id);
                let (Some(a), Some(b)) = (run("a"), run("b")) else {
                    return Err(malformed("Choose one run as A and one as B, then compare."));
                };
                let is_forced = parameters.get("force").is_some();
                Ok(Question::Compare { a, b, is_forced })
            }
            "/trend" => Ok(Question::Trend {
                metric: match parameters.get("metric") {
                    None => METRIC,
                    Some(name) => Metric::named(name)
                        .ok_or_else(|| malformed("There is no metric of that name."))?,
                },
                by: parameters.bounded("by")?.unwrap_or(BY).to_owned(),
                filter: parameters.filter()?,
            }),
            _ => {
                let id = path.strip_prefix("/record/").and_then(id);
                id.map(|id| Question::Record { id }).ok_or(Wrong::NotFound)
            }
        }
    }
}

fn malformed(what: &str) -> Wrong {
    Wrong::Malformed(what.to_owned())
}

/// The number of a run: digits alone.
fn id(text: &str) -> Option<i64> {
    let id = number(text)?;
    i64::try_from(id).ok()
}

fn number(text: &str) -> Option<u64> {
    let is_number = text.bytes().all(|it| it.is_ascii_digit());
    text.parse().ok().filter(|it| is_number && *it > 0)
}

/// Names and values of a query, as forms write them (`application/x-www-form-urlencoded`). An empty
/// value is none.
struct Parameters(Vec<(String, String)>);

impl Parameters {
    fn parse(query: &str) -> Result<Parameters, Wrong> {
        let pairs = query.split('&').filter(|it| !it.is_empty());
        let decoded = pairs.map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Some((decode(name)?, decode(value)?))
        });
        let decoded: Option<Vec<_>> = decoded.collect();
        let what = "The address has a percent sign that two hexadecimal digits do not follow, or \
                    text that is not UTF-8.";
        decoded.map(Parameters).ok_or_else(|| malformed(what))
    }

    fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found
            .map(|(_, value)| value.trim())
            .filter(|it| !it.is_empty())
    }

    fn bounded(&self, name: &str) -> Result<Option<&str>, Wrong> {
        let value = self.get(name);
        match value.is_some_and(|it| it.chars().count() > TEXT_MAX) {
            true => Err(Wrong::Malformed(format!(
                "A text may have at most {TEXT_MAX} characters."
            ))),
            false => Ok(value),
        }
    }

    fn filter(&self) -> Result<Filter, Wrong> {
        let text = |name: &str| Ok(self.bounded(name)?.unwrap_or_default().to_owned());
        Ok(Filter {
            text: text("text")?,
            transport: text("transport")?,
            limit: text("limit")?,
        })
    }
}

/// None of what is not encoded.
fn decode(text: &str) -> Option<String> {
    let mut bytes = text.bytes();
    let mut decoded = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'+' => b' ',
            b'%' => {
                let mut digit = || char::from(bytes.next()?).to_digit(16);
                let (high, low) = (digit()?, digit()?);
                u8::try_from(16 * high + low).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(decoded).ok()
}

/// Text as a value of a query.
pub(crate) fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' => {
                encoded.push(char::from(byte));
            }
            byte => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(target: &str) -> Result<Question, Wrong> {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        Question::parse(path, query)
    }

    fn status(target: &str) -> u16 {
        match parse(target) {
            Ok(_) => 200,
            Err(wrong) => wrong.page(&Links::default()).status,
        }
    }

    #[test]
    fn runs_have_numbers_and_nothing_else_is_one() {
        assert_eq!(parse("/record/12"), Ok(Question::Record { id: 12 }));
        for path in [
            "/record/",
            "/record/0",
            "/record/-1",
            "/record/+1",
            "/record/1/",
            "/record/1.json",
            "/record/99999999999999999999",
            "/record/..",
            "/record/../../etc/passwd",
            "/record/..%2f..%2fetc%2fpasswd",
            "/record/%31",
            "/record//etc/passwd",
            "/../1",
            "//",
            "/records",
            "/index.sqlite",
            "",
        ] {
            assert_eq!(status(path), 404, "{path}");
        }
    }

    #[test]
    fn parameters_that_mean_nothing_are_refused() {
        for (target, expected) in [
            ("/?page=2", 200),
            ("/?page=", 200),
            ("/?page=0", 400),
            ("/?page=-1", 400),
            ("/?page=one", 400),
            ("/?page=99999999999999999999", 400),
            ("/?text=%zz", 400),
            ("/?text=%e", 400),
            ("/?text=%ff", 400),
            ("/?text", 200),
            ("/?other=1&&=", 200),
            ("/compare?a=1&b=2", 200),
            ("/compare?a=1", 400),
            ("/compare?a=1&b=../2", 400),
            ("/trend", 200),
            ("/trend?metric=p99&by=version", 200),
            ("/trend?metric=speed", 400),
        ] {
            assert_eq!(status(target), expected, "{target}");
        }
        let long = "x".repeat(TEXT_MAX + 1);
        assert_eq!(status(&format!("/?text={long}")), 400);
        assert_eq!(status(&format!("/?text={}", &long[1..])), 200);
    }

    #[test]
    fn text_is_decoded_as_forms_encode_it() {
        let text = "a b+ü/&%<'\"";
        let target = format!("/?text={}&transport=udp", encode(text));
        let filter = Filter {
            text: text.to_owned(),
            transport: "udp".to_owned(),
            limit: String::new(),
        };
        assert_eq!(parse(&target), Ok(Question::List { filter, page: 1 }));
        assert_eq!(decode("a+b%2B%C3%BC").as_deref(), Some("a b+\u{fc}"));
    }
}
