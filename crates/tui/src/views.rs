//! The views: each draws what was watched into a canvas.

mod agents;
mod groups;
mod run;
mod runs;
mod server;
mod verdict;

use crate::canvas::Canvas;
use crate::shown::Shown;

/// A view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum View {
    Run,
    Groups,
    Server,
    Agents,
    Verdict,
    Runs,
}

impl View {
    pub(crate) const ALL: [View; 6] = [
        View::Run,
        View::Groups,
        View::Server,
        View::Agents,
        View::Verdict,
        View::Runs,
    ];

    pub(crate) fn number(self) -> u8 {
        self as u8 + 1
    }

    pub(crate) fn numbered(number: u8) -> Option<View> {
        View::ALL.into_iter().find(|view| view.number() == number)
    }

    pub(crate) fn next(self) -> View {
        View::numbered(self.number() + 1).unwrap_or(View::Run)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            View::Run => "run",
            View::Groups => "groups",
            View::Server => "server",
            View::Agents => "agents",
            View::Verdict => "verdict",
            View::Runs => "runs",
        }
    }

    pub(crate) fn draw(self, shown: &Shown<'_>, canvas: &mut Canvas<'_>) {
        match self {
            View::Run => run::draw(shown, canvas),
            View::Groups => groups::draw(shown, canvas),
            View::Server => server::draw(shown, canvas),
            View::Agents => agents::draw(shown, canvas),
            View::Verdict => verdict::draw(shown, canvas),
            View::Runs => runs::draw(shown, canvas),
        }
    }
}
