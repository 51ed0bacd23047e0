//! In place of views, in a build without the feature `views`: whoever asks for one learns that.

use std::net::SocketAddr;
use std::process::ExitCode;

use lab::live::Live;
use responder::Counters;

use crate::args::{ServeArguments, Views as Asked};
use crate::failure::Failure;

/// What enters and leaves the screen of `--tui`.
pub(crate) const ENTER: &str = "";
pub(crate) const LEAVE: &str = "";

/// Nothing is shown.
#[derive(Debug)]
pub(crate) struct Views;

impl Views {
    /// Refuses what is asked for.
    pub(crate) fn begin(_: &Live, asked: &Asked, _: &str) -> Result<Views, Failure> {
        let flags = [
            ("--metrics", asked.metrics.is_some()),
            ("--grafana", asked.grafana.is_some()),
            ("--tui", asked.tui),
            ("--web", asked.web.is_some()),
        ];
        match flags.into_iter().find(|(_, is_given)| *is_given) {
            Some((flag, _)) => Err(refusal(flag)),
            None => Ok(Views),
        }
    }

    pub(crate) fn has_page(&self) -> bool {
        false
    }

    pub(crate) fn keep_page(&mut self) {}

    pub(crate) fn finish(self, _: impl FnOnce() -> Option<String>) {}
}

/// Refuses `--metrics` of a responder.
pub(crate) fn serve_responder(
    address: Option<SocketAddr>,
    _: impl Fn() -> Counters + Send + Sync + 'static,
) -> Result<Views, Failure> {
    match address {
        Some(_) => Err(refusal("--metrics")),
        None => Ok(Views),
    }
}

/// Refuses `throng serve`.
pub(crate) fn serve(_: &ServeArguments) -> Result<ExitCode, Failure> {
    Err(refusal("throng serve"))
}

fn refusal(what: &str) -> Failure {
    Failure::usage(
        format!("{what}: this throng was built without views"),
        "build it with the feature `views`, which is on unless --no-default-features is given",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_of_a_build_without_them_are_refused_by_name() {
        let address = "127.0.0.1:0".parse().ok();
        let live = Live::default();
        let none = Asked::default();
        assert!(!Views::begin(&live, &none, "run").unwrap().has_page());
        let asked = [
            (
                "--metrics",
                Asked {
                    metrics: address,
                    ..none.clone()
                },
            ),
            (
                "--grafana",
                Asked {
                    grafana: Some("http://127.0.0.1".to_owned()),
                    ..none.clone()
                },
            ),
            (
                "--tui",
                Asked {
                    tui: true,
                    ..none.clone()
                },
            ),
            (
                "--web",
                Asked {
                    web: address,
                    ..none.clone()
                },
            ),
        ];
        for (flag, asked) in asked {
            let refused = Views::begin(&live, &asked, "run").unwrap_err();
            let what = format!("{flag}: this throng was built without views");
            assert_eq!(refused.what(), what);
        }
        assert!(serve_responder(None, Counters::default).is_ok());
        assert!(serve_responder(address, Counters::default).is_err());
    }
}
