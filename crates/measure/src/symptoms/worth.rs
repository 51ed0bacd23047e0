//! Whether anything can be concluded: nothing was answered, less than a second was measured, or
//! the queries are too few.

use super::Figures;
use super::significance::EVENTS_MIN;

pub(crate) struct NothingAnswered;
pub(crate) struct ShortWindow;
pub(crate) struct FewQueries;

pub(super) fn nothing_answered(figures: &Figures<'_>) -> Option<NothingAnswered> {
    (figures.counts.responses == 0).then_some(NothingAnswered)
}

pub(super) fn short_window(figures: &Figures<'_>) -> Option<ShortWindow> {
    (figures.window_s < 1.0).then_some(ShortWindow)
}

pub(super) fn few_queries(figures: &Figures<'_>) -> Option<FewQueries> {
    (figures.counts.offered < EVENTS_MIN).then_some(FewQueries)
}
