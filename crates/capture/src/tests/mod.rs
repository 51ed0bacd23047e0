//! Whole captures, made here octet by octet.

mod damage;
mod dnstap;
mod files;
mod frames;
mod streams;
pub(crate) mod writer;

use std::net::SocketAddr;

use crate::{Capture, CaptureError, Observed, Options, Skip, Skipped};

/// What a capture gave.
pub(crate) struct Outcome {
    pub(crate) observed: Vec<Observed>,
    pub(crate) skipped: Skipped,
    pub(crate) end: Option<CaptureError>,
}

impl Outcome {
    /// The names asked, in presentation format without the last dot.
    pub(crate) fn names(&self) -> Vec<String> {
        let name = |observed: &Observed| {
            let text = proto::name::to_text(&observed.question.name).unwrap();
            text.trim_end_matches('.').to_owned()
        };
        self.observed.iter().map(name).collect()
    }

    /// Exactly these were skipped.
    pub(crate) fn assert_skipped(&self, expected: &[(Skip, u64)]) {
        let mut found: Vec<_> = self.skipped.iter().collect();
        let mut expected = expected.to_vec();
        found.sort();
        expected.sort();
        assert_eq!(found, expected);
    }
}

pub(crate) fn read_with(file: &[u8], options: &Options) -> Result<Outcome, CaptureError> {
    let mut capture = Capture::new(file, options)?;
    let observed = capture.by_ref().collect();
    Ok(Outcome {
        observed,
        skipped: capture.skipped().clone(),
        end: capture.end().cloned(),
    })
}

pub(crate) fn read(file: &[u8]) -> Outcome {
    read_with(file, &Options::default()).unwrap()
}

pub(crate) fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}
