//! `PROFILE=WHERE[,KEY=VALUE..]`: what is to be observed, as it is typed.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use measure::observation::ObservationMode;

use crate::http::{Credentials, Url};
use crate::network::Network;
use crate::proc::{Inside, Target};
use crate::profile::{Access, Profile, Selector, Wanted};
use crate::profiles;

/// The shortest time between two scrapes: below, asking would be what is measured.
pub const PERIOD_MIN: Duration = Duration::from_millis(100);

/// One source that is to be observed.
#[derive(Clone, Debug)]
pub struct Asked {
    /// What it is.
    pub profile: &'static Profile,
    /// Where it is.
    pub place: String,
    /// From where it is asked.
    pub(crate) network: Network,
    /// In whose file system a path is, of a process that was found and is not trusted; without it,
    /// it is a path that the user typed.
    pub(crate) inside: Option<Inside>,
    /// Where its credentials are.
    pub credentials: Credentials,
    /// Series to take over as they are named (`allow=`); of a profile without series of its own
    /// there must be some.
    pub(crate) allowed: Vec<Selector>,
    /// Of which pod a kubelet is asked (`pod=`), with its namespace; of all that begin so with `*`.
    pub(crate) pod: Option<String>,
    /// Expressions for the query API (`query=`).
    pub(crate) queries: Vec<String>,
    /// When it is asked (`mode=`); none leaves it to the run.
    pub mode: Option<ObservationMode>,
    /// Time between two scrapes (`period=`); none leaves it to the run.
    pub period: Option<Duration>,
    /// Time that a scrape may take (`timeout=`).
    pub(crate) time_max: Option<Duration>,
}

/// What was asked for cannot be observed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskedError {
    /// What is wrong.
    pub what: String,
    /// The cure.
    pub hint: String,
}

impl AskedError {
    pub(crate) fn of(asked: &Asked, what: String) -> AskedError {
        let Profile { name, place, .. } = asked.profile;
        AskedError {
            what,
            hint: format!("give it as {name}={place}"),
        }
    }
}

impl fmt::Display for AskedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for AskedError {}

/// Keys behind the place.
const KEYS: [&str; 11] = [
    "allow", "ca", "cert", "key", "mode", "period", "pod", "query", "timeout", "token", "step",
];

impl Asked {
    /// That profile at that place, everything else left to the run.
    pub fn new(profile: &'static Profile, place: impl Into<String>) -> Asked {
        Asked {
            profile,
            place: place.into(),
            network: Network::default(),
            inside: None,
            credentials: Credentials::default(),
            allowed: Vec::new(),
            pod: None,
            queries: Vec::new(),
            mode: None,
            period: None,
            time_max: None,
        }
    }

    /// Reads what was typed. `auto` is not read here: it depends on the target, see
    /// [`crate::auto::find`].
    ///
    /// # Errors
    /// There is no such profile or key, or something is missing; with the cure.
    pub fn parse(text: &str) -> Result<Asked, AskedError> {
        let (name, rest) = text.split_once('=').unwrap_or((text, ""));
        let profile = profiles::by_name(name).ok_or_else(|| AskedError {
            what: format!("there is no profile `{name}`"),
            hint: format!("profiles are {}", profiles::names().join(", ")),
        })?;
        let (place, settings) = split_settings(rest);
        let mut asked = Asked::new(profile, place);
        for (key, value) in settings {
            asked
                .set(key, value)
                .map_err(|what| AskedError::of(&asked, what))?;
        }
        asked.check().map_err(|what| AskedError::of(&asked, what))?;
        Ok(asked)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        let file = || Some(PathBuf::from(value));
        match key {
            "token" => self.credentials.token = file(),
            "ca" => self.credentials.authorities = file(),
            "cert" => self.credentials.certificate = file(),
            "key" => self.credentials.key = file(),
            "pod" => self.pod = Some(value.to_owned()),
            "query" => self.queries.push(value.to_owned()),
            "allow" => {
                for series in value.split('|') {
                    self.allowed.push(Selector::parse(series)?);
                }
            }
            "mode" => {
                let mut modes = ObservationMode::ALL.into_iter();
                let mode = modes.find(|mode| mode.name() == value);
                let wrong = || format!("`{value}` is not a mode: expected during, around or off");
                self.mode = Some(mode.ok_or_else(wrong)?);
            }
            "period" | "step" => self.period = Some(period(value)?),
            "timeout" => self.time_max = Some(period(value)?),
            _ => unreachable!("keys are those of KEYS"),
        }
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        let name = self.profile.name;
        if self.place.is_empty() && self.profile.access != Access::Host {
            return Err(format!("`{name}` needs to know where"));
        }
        if self.profile.access == Access::QueryApi && self.queries.is_empty() {
            return Err(format!("`{name}` needs an expression, `query=up`"));
        }
        let has_none = self.profile.rows.is_empty() && self.allowed.is_empty();
        if has_none && self.profile.access != Access::QueryApi {
            return Err(format!(
                "`{name}` needs to know which series, `allow=process_*|up`"
            ));
        }
        let is_whole = |pod: &String| {
            matches!(pod.split_once('/'), Some((a, b)) if !a.is_empty()
            && !b.is_empty())
        };
        match (self.profile.access, &self.pod) {
            (Access::Pod(_), pod) if !pod.as_ref().is_some_and(is_whole) => {
                return Err(format!(
                    "`{name}` needs to know of which pod, `pod=NAMESPACE/NAME`"
                ));
            }
            (Access::Pod(_), _) | (_, None) => {}
            (_, Some(_)) => return Err(format!("`{name}` knows nothing of pods")),
        }
        self.check_place()?;
        let Credentials {
            certificate, key, ..
        } = &self.credentials;
        match certificate.is_some() == key.is_some() {
            true => Ok(()),
            false => Err("a certificate and its key go together: `cert=` and `key=`".to_owned()),
        }
    }

    /// Whether the place can be read as what the profile asks; files are not looked at.
    fn check_place(&self) -> Result<(), String> {
        match self.profile.access {
            Access::Process => Target::parse(&self.place).map(drop),
            Access::Exposition(_) | Access::Pod(_) | Access::BindChannel | Access::QueryApi => {
                Url::parse(&self.place).map(drop)
            }
            Access::Group | Access::Host | Access::UnboundControl | Access::KnotControl => Ok(()),
        }
    }

    /// What samples must have for this one.
    pub(crate) fn labels(&self) -> Vec<(String, Wanted)> {
        let Some((namespace, name)) = self.pod.as_ref().and_then(|pod| pod.split_once('/')) else {
            return Vec::new();
        };
        let name = match name.strip_suffix('*') {
            Some(beginning) => Wanted::Beginning(beginning.to_owned()),
            None => Wanted::Equal(name.to_owned()),
        };
        let namespace = Wanted::Equal(namespace.to_owned());
        vec![
            ("namespace".to_owned(), namespace),
            ("pod".to_owned(), name),
        ]
    }

    /// As it is shown and recorded: without the names of files, and without the query of a URL.
    pub fn shown(&self) -> String {
        if let Some(pod) = &self.pod {
            return format!("pod {pod}");
        }
        let place = self.place.split('?').next().unwrap_or_default();
        match place.is_empty() {
            true => self.profile.name.to_owned(),
            false => format!("{}={place}", self.profile.name),
        }
    }
}

/// The place, and the settings behind it. A comma that no key follows belongs to what is before it.
fn split_settings(text: &str) -> (&str, Vec<(&str, &str)>) {
    let mut starts = Vec::new();
    for (at, _) in text.match_indices(',') {
        let key = text[at + 1..].split('=').next().unwrap_or_default();
        if KEYS.contains(&key) && text[at + 1..].len() > key.len() {
            starts.push(at);
        }
    }
    let place = &text[..starts.first().copied().unwrap_or(text.len())];
    let settings = starts.iter().enumerate().filter_map(|(index, start)| {
        let end = starts.get(index + 1).copied().unwrap_or(text.len());
        text[start + 1..end].split_once('=')
    });
    (place, settings.collect())
}

/// `1s`, `500ms`.
fn period(text: &str) -> Result<Duration, String> {
    let milliseconds = text.strip_suffix("ms").map(|it| (it, 1));
    let parts = milliseconds.or_else(|| text.strip_suffix('s').map(|it| (it, 1_000)));
    let read = parts.and_then(|(number, unit)| number.parse::<u64>().ok()?.checked_mul(unit));
    let wrong = || format!("`{text}` is not a time: expected 1s or 500ms");
    let period = Duration::from_millis(read.ok_or_else(wrong)?);
    match period < PERIOD_MIN {
        true => Err(format!(
            "{text} is less than {PERIOD_MIN:?}, the shortest there is"
        )),
        false => Ok(period),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_a_place_and_settings_are_read() {
        let text = "prometheus=https://a.example:9/m?x=1,2,token=/t,ca=/c,allow=up|a_*,\
            period=500ms,mode=around,timeout=3s";
        let asked = Asked::parse(text).unwrap();
        assert_eq!(asked.place, "https://a.example:9/m?x=1,2");
        assert_eq!(asked.credentials.token, Some(PathBuf::from("/t")));
        assert_eq!(asked.allowed.len(), 2);
        assert_eq!(asked.period, Some(Duration::from_millis(500)));
        assert_eq!(asked.mode, Some(ObservationMode::Around));
        assert_eq!(asked.shown(), "prometheus=https://a.example:9/m");
        assert_eq!(Asked::parse("host").unwrap().shown(), "host");
    }

    #[test]
    fn what_cannot_be_observed_is_said_with_its_cure() {
        for (text, what) in [
            ("nobody=1", "no profile `nobody`"),
            ("bind", "needs to know where"),
            ("prometheus=http://a/", "which series"),
            ("prometheus-api=http://a/", "needs an expression"),
            ("bind=http://a/,mode=never", "not a mode"),
            ("bind=http://a/,period=1ms", "the shortest"),
            ("bind=http://a/,period=soon", "not a time"),
            ("bind=http://a/,cert=/c", "go together"),
            ("prometheus=http://a/,allow=a b", "not a series"),
            ("kubelet=https://a/", "of which pod"),
            ("kubelet=https://a/,pod=coredns", "of which pod"),
            ("coredns=http://a/,pod=a/b", "nothing of pods"),
            ("coredns=http://a:port/", "port"),
            ("kubelet=kubelet://a,pod=a/b", "neither http nor https"),
            ("bind=htp://a/", "`htp` is neither"),
            (
                "prometheus-api=unix:a,query=up",
                "is not unix:/SOCKET:/PATH",
            ),
            ("process=a/b", "is not a process"),
        ] {
            let error = Asked::parse(text).unwrap_err();
            assert!(error.what.contains(what), "{text}: {error}");
            assert!(!error.hint.is_empty());
        }
    }
}
