//! Runs that cannot be divided among agents.

use crate::call::throng;

#[test]
fn runs_that_cannot_be_divided_among_agents_are_refused() {
    for (flags, error, hint) in [
        (
            "--agents 20 --clients 5",
            "the load can be divided among 5 agents, not 20",
            "--clients",
        ),
        (
            "--agents 3 --driver sim",
            "--agents has no effect on a simulation",
            "--driver epoll",
        ),
    ] {
        let (told, cure) = throng(&format!("run --quiet {flags}")).refused();
        assert_eq!(told, error);
        assert!(cure.contains(hint), "{cure}");
    }
}
