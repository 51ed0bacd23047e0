//! Expectations of tests for diagnoses.

use super::{Cure, Diagnosis, State};

impl Diagnosis {
    #[track_caller]
    pub(crate) fn ok(self, seen: &str, cure: &str) -> Diagnosis {
        self.expect(State::Ok, seen, cure)
    }

    #[track_caller]
    pub(crate) fn unknown(self, seen: &str, cure: &str) -> Diagnosis {
        self.expect(State::Unknown, seen, cure)
    }

    #[track_caller]
    pub(crate) fn warning(self, seen: &str, cure: &str) -> Diagnosis {
        self.expect(State::Warning, seen, cure)
    }

    #[track_caller]
    pub(crate) fn problem(self, seen: &str, cure: &str) -> Diagnosis {
        self.expect(State::Problem, seen, cure)
    }

    /// Checks the state, a part of what was seen and a part of the cures; with an empty part, there
    /// may be none.
    #[track_caller]
    fn expect(self, state: State, seen: &str, cure: &str) -> Diagnosis {
        assert_eq!(self.state, state, "{self:#?}");
        assert!(self.seen.contains(seen), "{self:#?}");
        let mut cures = self.cures.iter().map(Cure::sentence);
        let is_without = cure.is_empty() && self.cures.is_empty();
        assert!(is_without || cures.any(|it| it.contains(cure)), "{self:#?}");
        assert!(!self.matters.is_empty(), "{self:#?}");
        assert!(!self.seen.ends_with('.'), "{self:#?}");
        self
    }
}
