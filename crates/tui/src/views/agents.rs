//! The agents of the run.

use lab::live::ShownAgent;
use measure::notation::counted;

use crate::canvas::{BAD, Canvas, DIM, PLAIN};
use crate::shown::{Shown, draw_list};

pub(crate) fn draw(shown: &Shown<'_>, canvas: &mut Canvas<'_>) {
    let agents = shown.watched.newest().map(|it| it.shown.agents.as_slice());
    let agents = agents.unwrap_or_default();
    if agents.is_empty() {
        canvas.line(&[("the run has no agents", DIM)]);
        return;
    }
    let lost = agents.iter().filter(|it| it.is_lost).count();
    let at_work = agents.iter().filter(|it| it.is_at_work).count();
    let all = counted(agents.len() as u64, "agent");
    let summary = format!("{all}: {at_work} at work, {lost} lost");
    canvas.line(&[(&summary, if lost > 0 { BAD } else { PLAIN })]);
    let rows: Vec<(usize, &ShownAgent)> = agents.iter().enumerate().collect();
    draw_list(&rows, shown.skipped, canvas, |(number, agent), canvas| {
        let (state, style) = match (agent.is_lost, agent.is_at_work) {
            (true, _) => ("lost", BAD),
            (false, true) => ("at work", PLAIN),
            (false, false) => ("its result is there", DIM),
        };
        let host = agent.host.as_deref().unwrap_or("this host");
        canvas.line(&[(&format!("{number:>5}  {host:<32} {state}"), style)]);
    });
}
