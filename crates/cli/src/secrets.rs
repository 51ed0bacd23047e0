//! Command lines without what may be a secret in them: keys, values of header fields that are not
//! known to be harmless, and what a URI has beside host and path.

use std::borrow::Cow;

use proto::doh::is_harmless;
use settings::{Run, Tsig};

/// Stands for what is left out.
const NOT_SHOWN: &str = "(not shown)";

/// Flags whose value is a key.
const KEYS: [&str; 1] = ["--tsig"];
/// The flag whose value is a header field.
const FIELD: &str = "--doh-header";

/// The words of a command line as they may be shown.
pub(crate) fn shown<'a>(words: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut flag = "";
    let mut shown = Vec::new();
    for word in words {
        let (own_flag, value) = match word.split_once('=') {
            Some((name, value)) if name.starts_with("--") => (name, value),
            _ if word.starts_with("--") => ("", ""),
            _ => (flag, word),
        };
        let before = &word[..word.len() - value.len()];
        shown.push(match value {
            "" => word.to_owned(),
            value => format!("{before}{}", of_flag(own_flag, value)),
        });
        flag = match word.contains('=') {
            true => "",
            false => word,
        };
    }
    shown
}

/// The value of a flag as it may be shown.
fn of_flag<'a>(flag: &str, value: &'a str) -> Cow<'a, str> {
    if KEYS.contains(&flag) {
        return NOT_SHOWN.into();
    }
    if flag != FIELD {
        return uri(value);
    }
    match value.split_once(':') {
        _ if value.starts_with('@') => value.into(),
        Some((name, _)) if is_harmless(name.trim()) => value.into(),
        Some((name, _)) => format!("{name}: {NOT_SHOWN}").into(),
        None => NOT_SHOWN.into(),
    }
}

/// What was asked for as a record may keep it.
pub(crate) fn left_out(run: &Run) -> Run {
    let mut run = run.clone();
    let servers = run.servers.iter().map(|server| uri(server).into_owned());
    run.servers = servers.collect();
    let sources = run.observe.iter().map(|source| uri(source).into_owned());
    run.observe = sources.collect();
    if let Some(Tsig::Key(_)) = run.message.tsig {
        run.message.tsig = Some(Tsig::NotRecorded);
    }
    if let Some(http) = &mut run.http {
        let fields = http.headers.iter();
        http.headers = fields.map(|it| of_flag(FIELD, it).into_owned()).collect();
    }
    run
}

/// A URI without user and query component; whatever else it is, as it is.
pub(crate) fn uri(text: &str) -> Cow<'_, str> {
    let Some((scheme, rest)) = text.split_once("://") else {
        return text.into();
    };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = authority.rsplit('@').next().unwrap_or_default();
    // Braces are those of a template, `{?dns}`.
    let query = path.find('?').filter(|at| !path[..*at].ends_with('{'));
    match query {
        Some(at) => format!("{scheme}://{host}{}?{NOT_SHOWN}", &path[..at]).into(),
        None if host != authority => format!("{scheme}://{host}{path}").into(),
        None => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_a_secret_is_left_out_of_a_command_line() {
        for (line, expected) in [
            ("--tsig k:c2Vj --rate 5", "--tsig (not shown) --rate 5"),
            ("--tsig=k:c2Vj", "--tsig=(not shown)"),
            ("--tsig-file k.key", "--tsig-file k.key"),
            (
                "--doh-header x-key:abc -q",
                "--doh-header x-key: (not shown) -q",
            ),
            ("--doh-header=abc", "--doh-header=(not shown)"),
            ("--doh-header user-agent:me", "--doh-header user-agent:me"),
            ("--doh-header @fields", "--doh-header @fields"),
            ("--server https://u:p@h/q", "--server https://h/q"),
            (
                "--server=https://h/q?k=v",
                "--server=https://h/q?(not shown)",
            ),
            ("--server https://h/q{?dns}", "--server https://h/q{?dns}"),
            ("--label a=b --names x=y", "--label a=b --names x=y"),
        ] {
            assert_eq!(shown(line.split(' ')).join(" "), expected);
        }
    }
}
