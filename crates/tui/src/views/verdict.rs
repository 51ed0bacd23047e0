//! What limits the run as far as it was measured.

use measure::Limit;
use measure::notation::seconds;

use crate::canvas::{BOLD, Canvas, DIM, PLAIN, WARNING};
use crate::shown::Shown;

pub(crate) fn draw(shown: &Shown<'_>, canvas: &mut Canvas<'_>) {
    let watched = shown.watched;
    let judged = watched.newest().and_then(|it| it.shown.judged.as_ref());
    let Some(judged) = judged else {
        canvas.line(&[(
            "no verdict yet: it is judged from the first checkpoint on",
            DIM,
        )]);
        let remark = watched.interval.as_ref().zip(watched.total());
        let remark = remark.and_then(|(it, total)| report::text::so_far(&total.counts, it, None));
        if let Some(remark) = remark {
            canvas.line(&[(&remark, WARNING)]);
        }
        return;
    };
    let verdict = &judged.verdict;
    let style = match verdict.limit {
        Limit::Generator | Limit::Unknown => WARNING,
        _ => BOLD,
    };
    canvas.line(&[(verdict.limit.headline(), style)]);
    let until = seconds(judged.until_ns);
    let state = match judged.is_provisional {
        true => format!("provisional: of the first {until}, and may change"),
        false => "of the whole run".to_owned(),
    };
    canvas.line(&[(&state, DIM)]);
    canvas.wrapped(&format!("{}.", verdict.limit.meaning()), PLAIN);
    let lists = [("evidence", &verdict.evidence), ("advice", &verdict.advice)];
    for (title, sentences) in lists {
        if !sentences.is_empty() {
            canvas.blank();
            canvas.line(&[(title, DIM)]);
        }
        for sentence in sentences.iter().skip(shown.skipped) {
            canvas.wrapped(&format!("- {sentence}"), PLAIN);
        }
    }
}
