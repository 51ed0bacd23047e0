//! A report as one HTML file: no script, nothing fetched, readable on paper and on a phone.
//!
//! Each chart has its figures as a table beside it. Colours come from the style sheet in the file,
//! which follows the reader's choice of light or dark.

use std::fmt::Write;

use crate::chart::{self, Chart, Form, Series};
use crate::document::{Banner, Block, Document, Numbers, Section, Sheet, Subject};
use crate::markup;

#[cfg(test)]
mod tests;

/// Everything about looks; in a page, between `<style>` with a line feed and `</style>`.
pub const STYLE: &str = include_str!("html/style.css");

/// Names that are spelt like words: they begin sentences as they are.
const NAMES_LIKE_WORDS: [&str; 7] = ["cpu", "qps", "udp", "tcp", "dot", "doq", "throng"];

/// Words up to that many characters stay on one line of a table.
const SHORT_MAX: usize = 24;

/// The report as a page.
pub fn render(document: &Document) -> String {
    let numbers = Numbers::of(document);
    let mut page = String::with_capacity(256 << 10);
    let title = escape(&document.title);
    let _ = write!(
        page,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         style-src 'unsafe-inline'; img-src data:\">\n\
         <link rel=\"icon\" href=\"data:,\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n\
         <header>\n<h1>{title}</h1>\n<p class=\"subtitle\">{}</p>\n</header>\n",
        escape(&document.subtitle)
    );
    if let Some(verdict) = &document.verdict {
        banner(&mut page, verdict);
    }
    conclusions(&mut page, document);
    tiles(&mut page, document);
    remarks(&mut page, document, &numbers);
    for part in &document.sections {
        section(&mut page, part, &numbers);
    }
    let _ = write!(
        page,
        "<footer><p>{}</p></footer>\n</main>\n</body>\n</html>\n",
        escape(&document.colophon)
    );
    page
}

fn banner(page: &mut String, verdict: &Banner) {
    let _ = write!(
        page,
        "<section class=\"verdict {}\" aria-label=\"Verdict\">\n<p><strong>Limit: {}.</strong> \
         {}.</p>\n",
        escape(verdict.limit),
        escape(verdict.limit),
        escape(verdict.meaning)
    );
    if let Some(evidence) = verdict.evidence.first() {
        let _ = writeln!(page, "<p>{}.</p>", prose(&sentence(evidence)));
    }
    page.push_str("</section>\n");
}

/// What several runs show, and what they do not.
fn conclusions(page: &mut String, document: &Document) {
    if document.conclusions.is_empty() {
        return;
    }
    page.push_str("<section class=\"verdict\" aria-label=\"Conclusions\">\n");
    for conclusion in &document.conclusions {
        let all: Vec<String> = conclusion.sentences.iter().map(|it| prose(it)).collect();
        let _ = writeln!(
            page,
            "<p><strong>{}:</strong> {}.</p>",
            escape(conclusion.heading),
            all.join("; ")
        );
    }
    page.push_str("</section>\n");
}

fn tiles(page: &mut String, document: &Document) {
    if document.tiles.is_empty() {
        return;
    }
    page.push_str("<dl class=\"tiles\">\n");
    for tile in &document.tiles {
        // `at least 5,000 qps` has its unit after the figure.
        let is_figure = tile.value.starts_with(|first: char| !first.is_alphabetic());
        let parts = tile.value.split_once(' ').filter(|_| is_figure);
        let (number, unit) = parts.unwrap_or((&tile.value, ""));
        let _ = writeln!(
            page,
            "<div><dt>{}</dt><dd>{}<span class=\"unit\"> {}</span></dd><dd class=\"note\">{}</dd>\
             </div>",
            escape(tile.label),
            escape(number),
            escape(unit),
            escape(&tile.note)
        );
    }
    page.push_str("</dl>\n");
}

fn remarks(page: &mut String, document: &Document, numbers: &Numbers) {
    if document.remarks.is_empty() {
        return;
    }
    page.push_str("<div class=\"remarks\">\n");
    for subject in Subject::ALL {
        let of_subject = document.remarks_on(subject);
        if of_subject.is_empty() {
            continue;
        }
        let _ = writeln!(page, "<section>\n<h2>{}</h2>\n<ul>", subject.heading());
        for remark in of_subject {
            let source = remark.source.as_deref();
            let named = source.and_then(|id| Some((id, numbers.name(id)?)));
            let link = named.map_or_else(String::new, |(id, name)| {
                format!(" <a href=\"#{}\">{name}</a>", escape(id))
            });
            let text = prose(&sentence(&remark.text));
            let _ = writeln!(page, "<li>{text}.{link}</li>");
        }
        page.push_str("</ul>\n</section>\n");
    }
    page.push_str("</div>\n");
}

fn section(page: &mut String, section: &Section, numbers: &Numbers) {
    let heading = escape(&section.heading);
    if section.is_folded {
        let _ = writeln!(
            page,
            "<details class=\"part\"><summary><h2>{heading}</h2></summary>"
        );
    } else {
        let _ = writeln!(page, "<section class=\"part\">\n<h2>{heading}</h2>");
    }
    let mut row = "";
    for block in &section.blocks {
        let next = match block {
            Block::Chart(_) => "charts",
            Block::Sheet(_) => "sheets",
            Block::Note(_) => "",
        };
        if next != row {
            page.push_str(if row.is_empty() { "" } else { "</div>\n" });
            if !next.is_empty() {
                let _ = writeln!(page, "<div class=\"{next}\">");
            }
            row = next;
        }
        match block {
            Block::Chart(chart) => figure(page, chart, numbers),
            Block::Sheet(sheet) => {
                let name = numbers.name(&sheet.id);
                let label = format!("{}: {}", name.unwrap_or_default(), sheet.title);
                table(page, sheet, name, &label);
            }
            Block::Note(text) => note(page, text),
        }
    }
    page.push_str(if row.is_empty() { "" } else { "</div>\n" });
    page.push_str(if section.is_folded {
        "</details>\n"
    } else {
        "</section>\n"
    });
}

fn figure(page: &mut String, chart: &Chart, numbers: &Numbers) {
    let name = numbers.name(&chart.id).unwrap_or_default();
    let _ = writeln!(
        page,
        "<figure id=\"{}\"{}>\n<figcaption><h3><span class=\"number\">{name}</span> {}</h3>\
         </figcaption>",
        escape(&chart.id),
        if chart.x.is_shared {
            " class=\"below\""
        } else {
            ""
        },
        escape(&chart.title)
    );
    let is_named = |series: &Series| series.form == Form::Dots;
    if chart.series.len() > 1 || chart.series.iter().any(is_named) {
        legend(page, chart);
    }
    page.push_str(&chart::draw(chart));
    note(page, &sentence(&chart.description));
    for text in &chart.notes {
        note(page, &format!("{}.", sentence(text)));
    }
    page.push_str("<details class=\"figures\"><summary>Figures as a table</summary>\n");
    let label = format!("{name}: {}, as a table", chart.title);
    table(page, &chart.sheet, None, &label);
    page.push_str("</details>\n");
    let file = escape(&name.to_lowercase().replace(' ', "-"));
    let _ = writeln!(
        page,
        "<p class=\"note save\">Save {name} as <a download=\"{file}.svg\" \
         href=\"data:image/svg+xml,{}\">SVG</a> or <a download=\"{file}.csv\" \
         href=\"data:text/csv,{}\">CSV</a></p>\n</figure>",
        in_address(&chart::file(chart)),
        in_address(&csv(&chart.sheet))
    );
}

/// A table as CSV (RFC 4180).
fn csv(sheet: &Sheet) -> String {
    let heads = sheet.columns.iter().map(|it| it.name.clone()).collect();
    let mut lines = String::new();
    for row in std::iter::once(&heads).chain(&sheet.rows) {
        let quoted = |cell: &String| format!("\"{}\"", cell.replace('"', "\"\""));
        let cells: Vec<String> = row.iter().map(quoted).collect();
        lines.push_str(&cells.join(","));
        lines.push_str("\r\n");
    }
    lines
}

/// Text as it stands in a `data:` address within an attribute.
fn in_address(text: &str) -> String {
    let mut address = String::with_capacity(text.len() * 5 / 4);
    for octet in text.bytes() {
        match octet {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => address.push(octet.into()),
            b' ' | b'-' | b'.' | b',' | b'=' | b'(' | b')' | b';' => address.push(octet.into()),
            _ => {
                let _ = write!(address, "%{octet:02X}");
            }
        }
    }
    address
}

/// What the series of a chart look like.
pub(crate) fn legend(page: &mut String, chart: &Chart) {
    page.push_str("<ul class=\"legend\">");
    for series in &chart.series {
        let sample = chart::sample(series.form, series.look);
        let _ = write!(page, "<li>{sample}{}</li>", escape(&series.name));
    }
    page.push_str("</ul>\n");
}

/// The table in a region that scrolls it. No other region of the page has that label, so that a
/// screen reader's list of regions tells them apart.
fn table(page: &mut String, sheet: &Sheet, name: Option<&str>, label: &str) {
    let _ = writeln!(
        page,
        "<div class=\"sheet\">\n<div class=\"scroll\" id=\"{}\" role=\"region\" tabindex=\"0\" \
         aria-label=\"{}\">",
        escape(&sheet.id),
        escape(label)
    );
    rows(page, sheet, name);
    page.push_str("</div>\n");
    for text in &sheet.notes {
        note(page, &format!("{}.", sentence(text)));
    }
    page.push_str("</div>\n");
}

/// The table alone, without the region that scrolls it.
pub(crate) fn rows(page: &mut String, sheet: &Sheet, name: Option<&str>) {
    page.push_str(if sheet.is_facts() {
        "<table class=\"facts\">\n"
    } else {
        "<table>\n"
    });
    if let Some(name) = name {
        let title = escape(&sheet.title);
        let _ = writeln!(
            page,
            "<caption><span class=\"number\">{name}</span> {title}</caption>"
        );
    }
    if !sheet.is_facts() {
        page.push_str("<thead><tr>");
        for column in &sheet.columns {
            let class = if column.is_words { "" } else { " class=\"n\"" };
            let name = escape(&column.name);
            // Screen readers announce a header, which has to have a name.
            let _ = match name.is_empty() {
                true => write!(page, "<td{class}></td>"),
                false => write!(page, "<th scope=\"col\"{class}>{name}</th>"),
            };
        }
        page.push_str("</tr></thead>\n");
    }
    page.push_str("<tbody>\n");
    for row in &sheet.rows {
        page.push_str("<tr>");
        for (index, (cell, column)) in row.iter().zip(&sheet.columns).enumerate() {
            let class = match column.is_words {
                false => " class=\"n\"",
                true if cell.chars().count() <= SHORT_MAX => " class=\"k\"",
                true => "",
            };
            let cell = escape(cell);
            let _ = match index {
                0 => write!(page, "<th scope=\"row\"{class}>{cell}</th>"),
                _ => write!(page, "<td{class}>{cell}</td>"),
            };
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody>\n</table>\n");
}

fn note(page: &mut String, text: &str) {
    let _ = writeln!(page, "<p class=\"note\">{}</p>", prose(text));
}

/// A sentence whose flags, such as `--rate 100`, are set apart and not broken.
fn prose(text: &str) -> String {
    let mut words = Vec::new();
    for word in text.split(' ') {
        let start = word.find("--");
        words.push(match start {
            Some(start) if word.len() > start + 2 => {
                let flag = &word[start..];
                let end = flag.trim_end_matches(['.', ',', ';', ':', ')']).len();
                let (before, after) = (escape(&word[..start]), escape(&flag[end..]));
                format!("{before}<code>{}</code>{after}", escape(&flag[..end]))
            }
            _ => escape(word),
        });
    }
    words.join(" ")
}

/// The text with a capital at its start, unless that is a name such as p99 or cpu=1.
pub fn sentence(text: &str) -> String {
    let first = text.split(' ').next().unwrap_or_default();
    let first = first.trim_end_matches([',', ':']);
    let is_name = NAMES_LIKE_WORDS.contains(&first);
    if is_name || !first.chars().all(|letter| letter.is_ascii_lowercase()) {
        return text.to_owned();
    }
    let mut letters = text.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => String::new(),
    }
}

/// Text as HTML and SVG take it, in elements and in attributes with either quotes.
pub fn escape(text: &str) -> String {
    markup::escape(text).replace('\'', "&#39;")
}
