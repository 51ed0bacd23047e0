//! Which requests are answered, and with what. Without I/O.

use std::hint::black_box;
use std::net::{IpAddr, SocketAddr};

/// Most bytes of a path and its query: many times those of any link of a page.
pub(crate) const TARGET_BYTES_MAX: usize = 4_096;

/// Who may see the page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Everything on this host: it listens on loopback alone.
    Loopback,
    /// Requests with this token.
    Token(String),
}

/// The parts of a request that decide.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Asked<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) query: &'a str,
    /// The `Host` header, or the authority of the target; none unless there is exactly one.
    pub(crate) host: Option<&'a str>,
    pub(crate) last_event_id: Option<&'a str>,
    /// There are too many connections with this one.
    pub(crate) is_refused: bool,
}

/// What is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Page,
    /// Events after that number; the newest first if there is none.
    Events {
        after: Option<u64>,
    },
    /// Charts of the runs that are over.
    Earlier,
    Refusal(Refusal),
}

/// Why a request is not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    Unauthorized,
    WrongHost,
    NotFound,
    NotAllowed,
    TooLong,
    TooMany,
}

impl Refusal {
    /// Its status, and a line for people.
    pub(crate) fn words(self) -> (u16, &'static str) {
        match self {
            Refusal::Unauthorized => (
                401,
                "the token is missing or wrong: use the address shown\n",
            ),
            Refusal::WrongHost => (403, "use the IP address in place of a name\n"),
            Refusal::NotFound => (404, "the page is at /\n"),
            Refusal::NotAllowed => (405, "this page is read only\n"),
            Refusal::TooLong => (414, "the address is too long\n"),
            Refusal::TooMany => (503, "too many connections: close other pages\n"),
        }
    }
}

impl Asked<'_> {
    /// Why it is not answered, whatever it is about.
    pub(crate) fn refusal(&self, access: &Access) -> Option<Refusal> {
        if self.is_refused {
            return Some(Refusal::TooMany);
        }
        match access {
            Access::Loopback if !self.host.is_some_and(is_address) => {
                return Some(Refusal::WrongHost);
            }
            Access::Token(token) if !self.has_token(token) => {
                return Some(Refusal::Unauthorized);
            }
            Access::Loopback | Access::Token(_) => {}
        }
        if !matches!(self.method, "GET" | "HEAD") {
            return Some(Refusal::NotAllowed);
        }
        let is_too_long = self.path.len() + self.query.len() > TARGET_BYTES_MAX;
        is_too_long.then_some(Refusal::TooLong)
    }

    pub(crate) fn answer(&self, access: &Access) -> Answer {
        if let Some(refusal) = self.refusal(access) {
            return Answer::Refusal(refusal);
        }
        match self.path {
            "/" => Answer::Page,
            "/events" => Answer::Events {
                after: self.after(),
            },
            "/earlier" => Answer::Earlier,
            _ => Answer::Refusal(Refusal::NotFound),
        }
    }

    fn has_token(&self, token: &str) -> bool {
        let given = self.parameter("token").unwrap_or_default();
        is_equal(given.as_bytes(), token.as_bytes())
    }

    /// The header comes from a browser that connects again, the parameter from the page.
    fn after(&self) -> Option<u64> {
        let number = self.last_event_id.or_else(|| self.parameter("after"))?;
        number.trim().parse().ok()
    }

    fn parameter(&self, name: &str) -> Option<&str> {
        let mut pairs = self.query.split('&').filter_map(|it| it.split_once('='));
        pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
    }
}

/// Takes as long for every text of the same length.
fn is_equal(one: &[u8], other: &[u8]) -> bool {
    let pairs = one.iter().zip(other);
    let differences = pairs.fold(0, |all, (one, other)| black_box(all | (one ^ other)));
    one.len() == other.len() && differences == 0
}

/// A name of another host that an attacker has pointed at this one is none of these.
fn is_address(host: &str) -> bool {
    let is_localhost = |name: &str| name.eq_ignore_ascii_case("localhost");
    let (name, port) = host.rsplit_once(':').unwrap_or((host, "0"));
    host.parse::<SocketAddr>().is_ok()
        || host.parse::<IpAddr>().is_ok_and(|it| it.is_ipv4())
        || is_bracketed(host)
        || (is_localhost(name) && port.parse::<u16>().is_ok())
}

/// `[::1]`, without a port.
fn is_bracketed(host: &str) -> bool {
    let inner = host.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    inner.is_some_and(|it| it.parse::<std::net::Ipv6Addr>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    const GET: Asked<'_> = Asked {
        method: "GET",
        path: "/",
        query: "",
        host: Some("127.0.0.1:8053"),
        last_event_id: None,
        is_refused: false,
    };

    fn refusal(asked: Asked<'_>, access: &Access) -> Option<u16> {
        match asked.answer(access) {
            Answer::Refusal(refusal) => Some(refusal.words().0),
            Answer::Page | Answer::Events { .. } | Answer::Earlier => None,
        }
    }

    #[test]
    fn page_and_events_are_there_and_nothing_else() {
        assert_eq!(GET.answer(&Access::Loopback), Answer::Page);
        let path = |path| Asked { path, ..GET };
        let events = path("/events").answer(&Access::Loopback);
        assert_eq!(events, Answer::Events { after: None });
        assert_eq!(refusal(path("/metrics"), &Access::Loopback), Some(404));
    }

    #[test]
    fn nothing_but_get_and_head_is_allowed() {
        for (method, expected) in [
            ("GET", None),
            ("HEAD", None),
            ("POST", Some(405)),
            ("PUT", Some(405)),
            ("DELETE", Some(405)),
            ("OPTIONS", Some(405)),
        ] {
            let asked = Asked { method, ..GET };
            assert_eq!(refusal(asked, &Access::Loopback), expected, "{method}");
        }
    }

    #[test]
    fn loopback_serves_addresses_and_localhost_alone() {
        for (host, expected) in [
            (Some("127.0.0.1:80"), None),
            (Some("127.0.0.1"), None),
            (Some("[::1]:8053"), None),
            (Some("[::1]"), None),
            (Some("localhost:8053"), None),
            (Some("LOCALHOST"), None),
            (Some("rebound.example:8053"), Some(403)),
            (Some("localhost.example"), Some(403)),
            (Some("127.0.0.1.example:80"), Some(403)),
            (Some("localhost:x"), Some(403)),
            (Some(""), Some(403)),
            (None, Some(403)),
        ] {
            let asked = Asked { host, ..GET };
            assert_eq!(refusal(asked, &Access::Loopback), expected, "{host:?}");
        }
    }

    #[test]
    fn elsewhere_the_token_decides() {
        let access = Access::Token("0123abcd".to_owned());
        for (query, expected) in [
            ("token=0123abcd", None),
            ("after=3&token=0123abcd", None),
            ("", Some(401)),
            ("token=", Some(401)),
            ("token=0123abce", Some(401)),
            ("token=0123abc", Some(401)),
            ("token=0123abcde", Some(401)),
            ("xtoken=0123abcd", Some(401)),
        ] {
            let asked = Asked {
                query,
                host: Some("loadgen.example"),
                ..GET
            };
            assert_eq!(refusal(asked, &access), expected, "{query}");
        }
    }

    #[test]
    fn header_of_a_browser_that_connects_again_comes_before_the_parameter() {
        let asked = Asked {
            path: "/events",
            query: "after=3",
            ..GET
        };
        let after = |asked: Asked<'_>| asked.answer(&Access::Loopback);
        assert_eq!(after(asked), Answer::Events { after: Some(3) });
        let again = Asked {
            last_event_id: Some("7"),
            ..asked
        };
        assert_eq!(after(again), Answer::Events { after: Some(7) });
        let wrong = Asked {
            last_event_id: Some("seven"),
            ..asked
        };
        assert_eq!(after(wrong), Answer::Events { after: None });
    }

    #[test]
    fn address_that_is_too_long_gets_414() {
        let long = "x".repeat(TARGET_BYTES_MAX);
        let query = |query| Asked { query, ..GET };
        assert_eq!(refusal(query(&long), &Access::Loopback), Some(414));
        assert_eq!(refusal(query(&long[1..]), &Access::Loopback), None);
    }

    #[test]
    fn connection_above_the_limit_gets_503_for_everything() {
        let asked = Asked {
            is_refused: true,
            ..GET
        };
        assert_eq!(refusal(asked, &Access::Loopback), Some(503));
    }
}
