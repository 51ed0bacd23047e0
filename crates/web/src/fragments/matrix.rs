//! The cells of an experiment as a table that fills up.

use std::fmt::Write;

use lab::live::{Cell, CellOf, Phase, Runs};
use measure::notation::{counted, rate};
use measure::statistics;
use report::html::escape;

/// Most values of the last factor that are columns; more of them are rows.
const COLUMNS_MAX: usize = 8;
/// Most cells that are listed: the first.
const CELLS_MAX: usize = 400;

/// Each cell of the experiment; empty for another command.
pub(super) fn matrix(runs: &Runs) -> String {
    let Some(of) = &runs.place.cell else {
        return String::new();
    };
    let matrix = &of.matrix;
    let listed = &matrix.cells[..matrix.cells.len().min(CELLS_MAX)];
    let varied = varied(listed);
    let (rows_of, column_of) = match varied.split_last() {
        Some((last, others)) if values(listed, *last).len() <= COLUMNS_MAX => (others, Some(*last)),
        _ => (&varied[..], None),
    };
    let name = |cell: &Cell, factors: &[usize]| {
        let words = factors.iter().filter(|at| !cell.values[**at].is_empty());
        let words = words.map(|at| format!("{} {}", matrix.factors[*at], cell.values[*at]));
        words.collect::<Vec<_>>().join(", ")
    };
    let mut columns: Vec<String> = Vec::new();
    let mut rows: Vec<(String, Vec<String>)> = Vec::new();
    for (number, cell) in listed.iter().enumerate() {
        let column = match column_of {
            Some(at) => name(cell, &[at]),
            None => "answered".to_owned(),
        };
        let column = position(&mut columns, column);
        let row = name(cell, rows_of);
        let row = match rows.iter().position(|it| it.0 == row) {
            Some(at) => at,
            None => {
                rows.push((row, Vec::new()));
                rows.len() - 1
            }
        };
        let cells = &mut rows[row].1;
        cells.resize(cells.len().max(column + 1), String::new());
        cells[column] = words(runs, of, number);
    }
    let columns: Vec<String> = columns.iter().map(|it| escape(it)).collect();
    let heading = std::iter::once("cell").chain(columns.iter().map(String::as_str));
    let heading: Vec<&str> = heading.collect();
    let rows = rows.into_iter().map(|(name, mut cells)| {
        cells.resize(columns.len(), String::new());
        let name = if name.is_empty() {
            "all".to_owned()
        } else {
            name
        };
        cells.insert(0, name);
        cells
    });
    let rows: Vec<Vec<String>> = rows.collect();
    let caption = "Cells of the experiment: median of the rates answered, and runs made";
    let mut html = super::table(caption, &heading, &rows);
    let more = matrix.cells.len() - listed.len();
    if more > 0 {
        let more = counted(more as u64, "further cell");
        let _ = writeln!(html, "<p class=\"note\">{more} not listed.</p>");
    }
    html
}

/// The factors that have more than one value.
fn varied(cells: &[Cell]) -> Vec<usize> {
    let factors = cells.first().map_or(0, |cell| cell.values.len());
    (0..factors)
        .filter(|at| values(cells, *at).len() > 1)
        .collect()
}

/// The values of a factor, in their order.
fn values(cells: &[Cell], factor: usize) -> Vec<&str> {
    let mut values: Vec<&str> = Vec::new();
    for cell in cells {
        let value = cell.values[factor].as_str();
        if !values.contains(&value) {
            values.push(value);
        }
    }
    values
}

/// The position of a text, which is added if it is not there.
fn position(texts: &mut Vec<String>, text: String) -> usize {
    let at = texts.iter().position(|it| *it == text);
    at.unwrap_or_else(|| {
        texts.push(text);
        texts.len() - 1
    })
}

/// What is known of a cell: `12,345 qps, 3 of 10`.
fn words(runs: &Runs, of: &CellOf, cell: usize) -> String {
    let matrix = &of.matrix;
    let mut rates: Vec<f64> = runs.measured.rates(cell).collect();
    let is_now = of.cell == cell && runs.newest().is_some();
    let mut running = "";
    if is_now && runs.phase() != Phase::Ended {
        running = ", running";
    } else if is_now && runs.figures().offered > 0 {
        rates.push(runs.figures().responses_qps);
    }
    let made = matrix.cells[cell].made_before + rates.len() as u32;
    let made = made.min(matrix.repetitions);
    let median = statistics::median(&rates).map(rate);
    let median = median.unwrap_or_else(|| "-".to_owned());
    format!("{median}, {made} of {}{running}", matrix.repetitions)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use lab::live::{Live, Matrix, Place, Shown};
    use testing::measured::second;

    use super::*;

    fn cell(values: &[&str], made_before: u32) -> Cell {
        Cell {
            values: values.iter().map(|it| (*it).to_owned()).collect(),
            made_before,
        }
    }

    fn of(factors: &[&str], cells: Vec<Cell>) -> CellOf {
        let factors = factors.iter().map(|it| (*it).to_owned()).collect();
        CellOf {
            matrix: Arc::new(Matrix {
                factors,
                cells,
                repetitions: 3,
            }),
            cell: 0,
            repetition: 1,
        }
    }

    /// What is listed after these runs, each a cell, a repetition and a number of responses.
    fn listed(of: &CellOf, made: &[(usize, u32, u64)], phase: Phase) -> String {
        let (live, mut runs) = (Live::default(), Runs::default());
        for (run, (cell, repetition, responses)) in (1..).zip(made) {
            live.begin(Place {
                cell: Some(CellOf {
                    cell: *cell,
                    repetition: *repetition,
                    ..of.clone()
                }),
                ..Place::new("", run, None)
            });
            let number = live.publish(Shown {
                phase,
                interval: Some(Arc::new(second(0, *responses, 0))),
                ..Shown::default()
            });
            let next = live.after(number - 1, Duration::ZERO);
            next.snapshots.iter().for_each(|it| runs.add(it));
        }
        let html = matrix(&runs);
        let text = html
            .replace("</tr>", "\n")
            .replace("</th>", "|")
            .replace("</td>", "|");
        let parts = text.split('<').filter_map(|it| it.split_once('>'));
        let text: String = parts.map(|(_, words)| words).collect();
        let lines = text.lines().filter(|line| !line.is_empty());
        lines.map(|line| format!("{line}\n")).collect()
    }

    #[test]
    fn last_factor_that_varies_makes_the_columns() {
        let cells = vec![
            cell(&["knot", "tcp", "3.2"], 0),
            cell(&["knot", "dot", "3.2"], 2),
            cell(&["<nsd>", "tcp", "3.2"], 0),
            cell(&["<nsd>", "dot", "3.2"], 0),
        ];
        let of = of(&["server", "transport", "version"], cells);
        let made = [
            (0, 1, 1_000),
            (0, 2, 3_000),
            (1, 3, 50),
            (0, 1, 2_000),
            (2, 1, 7),
        ];
        let text = listed(&of, &made, Phase::Load);
        let expected = "Cells of the experiment: median of the rates answered, and runs made\n\
                        cell|transport tcp|transport dot|\n\
                        server knot|2,500 qps, 2 of 3|50.0 qps, 3 of 3|\n\
                        server &lt;nsd&gt;|-, 0 of 3, running|-, 0 of 3|\n";
        assert_eq!(text, expected);
        let ended = listed(&of, &made, Phase::Ended);
        assert!(ended.contains("|7.0 qps, 1 of 3|"), "{ended}");
    }

    #[test]
    fn many_values_are_rows_and_too_many_are_counted() {
        let cells = (0..500).map(|it| cell(&[&it.to_string()], 0)).collect();
        let text = listed(&of(&["clients"], cells), &[(7, 1, 10)], Phase::Load);
        assert!(text.contains("cell|answered|\n"), "{text}");
        assert!(text.contains("clients 7|-, 0 of 3, running|\n"), "{text}");
        assert!(text.ends_with("100 further cells not listed.\n"), "{text}");
        let only = listed(
            &of(&["clients"], vec![cell(&["1"], 0)]),
            &[(0, 1, 9)],
            Phase::Load,
        );
        assert!(only.contains("\nall|-, 0 of 3, running|\n"), "{only}");
        assert_eq!(matrix(&Runs::default()), "");
    }
}
