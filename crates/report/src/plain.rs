//! A report as plain text and as Markdown; charts become the tables of their figures.

use std::fmt::Write;

use crate::document::{Block, Document, Numbers, Sheet, Subject};
use crate::html::sentence;
use crate::markup::literal;
use crate::table::{Align, write_columns};

/// The report as text for a terminal, without the tables of charts.
pub fn text(document: &Document) -> String {
    let mut text = format!("{}\n{}\n", document.title, document.subtitle);
    for conclusion in &document.conclusions {
        let _ = writeln!(text, "\n{}", conclusion.heading);
        for sentence in &conclusion.sentences {
            let _ = writeln!(text, "  - {sentence}");
        }
    }
    for section in &document.sections {
        let sheets = section.blocks.iter().filter_map(|block| match block {
            Block::Sheet(sheet) => Some(sheet),
            Block::Chart(_) | Block::Note(_) => None,
        });
        for sheet in sheets {
            let _ = writeln!(text, "\n{}", sheet.title);
            columns(&mut text, sheet);
        }
    }
    for subject in Subject::ALL {
        let of_subject = document.remarks_on(subject);
        if !of_subject.is_empty() {
            let _ = writeln!(text, "\n{}", subject.heading());
        }
        for remark in of_subject {
            let _ = writeln!(text, "  - {}", remark.text);
        }
    }
    text
}

/// A table aligned by the widest cells.
pub(crate) fn columns(text: &mut String, sheet: &Sheet) {
    let heads: Vec<String> = sheet.columns.iter().map(|it| it.name.clone()).collect();
    let heads = (!sheet.is_facts()).then_some(&heads);
    let lines: Vec<&Vec<String>> = heads.into_iter().chain(&sheet.rows).collect();
    let align = sheet.columns.iter().map(|column| match column.is_words {
        true => Align::Left,
        false => Align::Right,
    });
    let align: Vec<Align> = align.collect();
    write_columns(text, &align, &lines);
    for note in &sheet.notes {
        let _ = writeln!(text, "  {note}");
    }
}

/// The report as GitHub-flavoured Markdown.
pub fn markdown(document: &Document) -> String {
    let numbers = Numbers::of(document);
    let mut text = format!(
        "# {}\n\n{}\n",
        literal(&document.title),
        literal(&document.subtitle)
    );
    for conclusion in &document.conclusions {
        let all = literal(&conclusion.sentences.join("; "));
        let _ = write!(text, "\n**{}:** {all}.\n", conclusion.heading);
    }
    if let Some(verdict) = &document.verdict {
        let _ = write!(
            text,
            "\n> **Limit: {}.** {}.",
            verdict.limit, verdict.meaning
        );
        if let Some(evidence) = verdict.evidence.first() {
            let _ = write!(text, " {}.", literal(&sentence(evidence)));
        }
        text.push('\n');
    }
    if !document.tiles.is_empty() {
        text.push_str("\n| figure | value | |\n|---|---:|---|\n");
        for tile in &document.tiles {
            let (value, note) = (literal(&tile.value), literal(&tile.note));
            let _ = writeln!(text, "| {} | {value} | {note} |", tile.label);
        }
    }
    for subject in Subject::ALL {
        remarks(&mut text, document, subject, &numbers);
    }
    for section in &document.sections {
        let _ = writeln!(text, "\n## {}", literal(&section.heading));
        for block in &section.blocks {
            match block {
                Block::Note(note) => {
                    let _ = writeln!(text, "\n{}", literal(note));
                }
                Block::Sheet(sheet) => {
                    let name = numbers.name(&sheet.id).unwrap_or_default();
                    let _ = writeln!(text, "\n**{name}. {}**\n", literal(&sheet.title));
                    rows(&mut text, sheet);
                }
                Block::Chart(chart) => {
                    let name = numbers.name(&chart.id).unwrap_or_default();
                    let (title, words) = (literal(&chart.title), literal(&chart.description));
                    let _ = writeln!(
                        text,
                        "\n**{name}. {title}** ({}). {words}\n\n<details><summary>figures\
                         </summary>\n",
                        literal(&chart.y.label)
                    );
                    rows(&mut text, &chart.sheet);
                    text.push_str("\n</details>\n");
                }
            }
        }
    }
    let _ = writeln!(text, "\n---\n{}", literal(&document.colophon));
    text
}

fn remarks(text: &mut String, document: &Document, subject: Subject, numbers: &Numbers) {
    let of_subject = document.remarks_on(subject);
    if of_subject.is_empty() {
        return;
    }
    let _ = writeln!(text, "\n## {}\n", subject.heading());
    for remark in of_subject {
        let source = remark.source.as_deref().and_then(|id| numbers.name(id));
        let source = source.map_or_else(String::new, |name| format!(" ({name})"));
        let _ = writeln!(text, "- {}{source}.", literal(&sentence(&remark.text)));
    }
}

fn rows(text: &mut String, sheet: &Sheet) {
    let line = |cells: &mut dyn Iterator<Item = String>| {
        let cells: Vec<String> = cells.collect();
        format!("| {} |\n", cells.join(" | "))
    };
    text.push_str(&line(&mut sheet.columns.iter().map(|it| literal(&it.name))));
    let rules = sheet
        .columns
        .iter()
        .map(|it| if it.is_words { "---" } else { "---:" });
    text.push_str(&line(&mut rules.map(str::to_owned)));
    for row in &sheet.rows {
        text.push_str(&line(&mut row.iter().map(|cell| literal(cell))));
    }
    for note in &sheet.notes {
        let _ = writeln!(text, "\n{}.", literal(&sentence(note)));
    }
}
