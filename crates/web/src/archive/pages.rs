//! The pages themselves: HTML without script, whose links and forms name runs by numbers.

use std::fmt::Write;

use data_encoding::BASE64;
use history::{Entry, FIXED_FACTS, Filter, Page, Sample, Unreadable};
use measure::metric::Metric;
use measure::notation::{count, counted};
use report::html::{STYLE, escape};
use report::trend::TrendChart;
use sha2::{Digest, Sha256};

use super::question::encode;
use super::store::{TREND_RUNS_MAX, fact, named};

/// What the report's style lacks.
const ARCHIVE_STYLE: &str = include_str!("pages/archive.css");
/// Files that are no records, named one by one.
const UNREADABLE_SHOWN: usize = 20;
/// Figures of a list of runs.
const FIGURES: [Metric; 4] = [Metric::Qps, Metric::P50, Metric::P99, Metric::Loss];

/// Columns of a list of runs before its figures; those that choose runs to compare come first, for
/// a small screen shows no more.
const WORDS: [&str; 10] = [
    "run",
    "A",
    "B",
    "started",
    "file",
    "target",
    "transport",
    "load",
    "verdict",
    "labels",
];

/// A page with its status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Made {
    pub(crate) status: u16,
    pub(crate) html: String,
}

impl Made {
    pub(crate) fn page(html: String) -> Made {
        Made { status: 200, html }
    }
}

/// Makes links between the pages, with the token where one is needed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Links {
    token: Option<String>,
}

impl Links {
    pub(crate) fn with_token(token: &str) -> Links {
        Links {
            token: Some(token.to_owned()),
        }
    }

    /// A link as an attribute has it; parameters without value are left out.
    fn to(&self, path: &str, parameters: &[(&str, &str)]) -> String {
        let token = self.token.as_deref().map(|token| ("token", token));
        let all = parameters.iter().copied().chain(token);
        let all = all.filter(|(_, value)| !value.is_empty());
        let all = all.map(|(name, value)| format!("{name}={}", encode(value)));
        let all: Vec<String> = all.collect();
        let mark = if all.is_empty() { "" } else { "?" };
        escape(&format!("{path}{mark}{}", all.join("&")))
    }

    /// What a form sends beside its fields.
    fn hidden(&self) -> String {
        let input = |token| format!("<input type=\"hidden\" name=\"token\" value=\"{token}\">\n");
        (self.token.as_deref()).map_or_else(String::new, |token| input(escape(token)))
    }
}

/// What the browser may do: apply the two styles, and send forms here.
pub(crate) fn content_security_policy() -> String {
    let hash = |text: &str| BASE64.encode(&Sha256::digest(text.as_bytes()));
    format!(
        "default-src 'none'; style-src 'sha256-{}' 'sha256-{}'; img-src data:; base-uri 'none'; \
         form-action 'self'; frame-ancestors 'none'",
        hash(&format!("\n{STYLE}")),
        hash(ARCHIVE_STYLE)
    )
}

/// The page around `content`; `here` is the path of its link at the top.
fn page(title: &str, here: &str, content: &str, links: &Links) -> String {
    let title = escape(title);
    let mut tops = String::new();
    for (path, name) in [("/", "Runs"), ("/trend", "Trend")] {
        let current = match path == here {
            true => " aria-current=\"page\"",
            false => "",
        };
        let _ = writeln!(
            tops,
            "<a href=\"{}\"{current}>{name}</a>",
            links.to(path, &[])
        );
    }
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" href=\"data:,\">\n\
         <title>{title} \u{b7} throng</title>\n<style>\n{STYLE}</style>\n\
         <style>{ARCHIVE_STYLE}</style>\n</head>\n<body>\n\
         <nav class=\"tops\" aria-label=\"Pages of these records\">\n{tops}</nav>\n<main>\n\
         {content}</main>\n</body>\n</html>\n"
    )
}

/// A page that says what is wrong, in a sentence or several.
pub(crate) fn error(status: u16, what: &str, links: &Links) -> Made {
    let content = format!(
        "<header>\n<h1>Error {status}</h1>\n</header>\n<p class=\"alert\">{}</p>\n\
         <p><a href=\"{}\">List of runs</a></p>\n",
        escape(what),
        links.to("/", &[])
    );
    Made {
        status,
        html: page(&format!("Error {status}"), "", &content, links),
    }
}

/// Two runs of which no comparison means anything, for these reasons.
pub(crate) fn refused((a, b): (i64, i64), reasons: &[String], links: &Links) -> String {
    let mut content = "<header>\n<h1>These runs cannot be compared</h1>\n</header>\n\
                       <ul class=\"reasons\">\n"
        .to_owned();
    for reason in reasons {
        let _ = writeln!(
            content,
            "<li>{}.</li>",
            escape(&report::html::sentence(reason))
        );
    }
    let (a, b) = (a.to_string(), b.to_string());
    let anyway = [("a", a.as_str()), ("b", b.as_str()), ("force", "1")];
    let _ = writeln!(
        content,
        "</ul>\n<p>Compare runs of one scenario on one host. <a href=\"{}\">Compare these \
         nevertheless</a></p>",
        links.to("/compare", &anyway)
    );
    page("These runs cannot be compared", "", &content, links)
}

/// What forms offer.
pub(crate) struct Choices {
    pub(crate) transports: Vec<String>,
    pub(crate) limits: Vec<String>,
    /// Names of facts.
    pub(crate) facts: Vec<String>,
}

/// A field of a form in which one of several values is chosen.
struct Select<'a> {
    name: &'a str,
    label: &'a str,
    /// What stands for none of them, if none may be chosen.
    any: Option<&'a str>,
    chosen: &'a str,
}

impl Select<'_> {
    fn render<'v>(&self, values: impl Iterator<Item = &'v str>) -> String {
        let Select { name, label, .. } = self;
        let mut html = format!(
            "<div><label for=\"{name}\">{label}</label>\n<select id=\"{name}\" name=\"{name}\">\n"
        );
        let mut values: Vec<&str> = values.collect();
        // What is chosen stays so where it has gone from the records.
        if !self.chosen.is_empty() && !values.contains(&self.chosen) {
            values.push(self.chosen);
        }
        if let Some(any) = self.any {
            let _ = writeln!(html, "<option value=\"\">{any}</option>");
        }
        for value in values {
            let selected = match value == self.chosen {
                true => " selected",
                false => "",
            };
            let value = escape(value);
            let _ = writeln!(html, "<option value=\"{value}\"{selected}>{value}</option>");
        }
        html.push_str("</select></div>\n");
        html
    }
}

/// The fields of a filter.
fn fields(filter: &Filter, choices: &Choices) -> String {
    let select = |name, label, chosen, values: &[String]| {
        let select = Select {
            name,
            label,
            any: Some("any"),
            chosen,
        };
        select.render(values.iter().map(String::as_str))
    };
    format!(
        "<div><label for=\"text\">File, target, server or label</label>\n\
         <input type=\"search\" id=\"text\" name=\"text\" value=\"{}\" maxlength=\"200\"></div>\n\
         {}{}",
        escape(&filter.text),
        select(
            "transport",
            "Transport",
            &filter.transport,
            &choices.transports
        ),
        select("limit", "Verdict", &filter.limit, &choices.limits)
    )
}

fn of_filter(filter: &Filter) -> [(&str, &str); 3] {
    [
        ("text", &filter.text),
        ("transport", &filter.transport),
        ("limit", &filter.limit),
    ]
}

/// The list of runs.
pub(crate) struct List<'a> {
    pub(crate) folder: &'a str,
    pub(crate) filter: &'a Filter,
    pub(crate) page: &'a Page,
    pub(crate) choices: &'a Choices,
    pub(crate) unreadable: &'a [Unreadable],
}

impl List<'_> {
    pub(crate) fn render(&self, links: &Links) -> String {
        let is_filtered = *self.filter != Filter::default();
        let runs = counted(self.page.total, "run");
        let matching = match is_filtered {
            true if self.page.total == 1 => "1 run matches".to_owned(),
            true => format!("{runs} match, the newest first"),
            false => format!("{runs}, the newest first"),
        };
        let mut content = format!(
            "<header>\n<h1>Runs in {}</h1>\n<p class=\"subtitle\">{matching}</p>\n</header>\n",
            escape(self.folder)
        );
        if self.page.total == 0 && !is_filtered {
            content.push_str(&self.how_to_begin());
        } else {
            let _ = write!(
                content,
                "<form class=\"fields\" action=\"/\" method=\"get\" role=\"search\">\n{}{}\
                 <div><button type=\"submit\">Filter</button></div>\n</form>\n",
                links.hidden(),
                fields(self.filter, self.choices)
            );
        }
        if !self.page.entries.is_empty() {
            content.push_str(&self.table(links));
            content.push_str(&self.page_links(links));
        }
        content.push_str(&self.unreadable());
        page("Runs", "/", &content, links)
    }

    fn how_to_begin(&self) -> String {
        format!(
            "<p class=\"alert\">There are no run records in this folder yet.</p>\n\
             <p>Add one, then reload this page: <code>throng run --server 192.0.2.1 --names \
             names.txt --record {}</code></p>\n",
            escape(&format!("{}/run.json", self.folder.trim_end_matches('/')))
        )
    }

    fn table(&self, links: &Links) -> String {
        let mut html = format!(
            "<form action=\"/compare\" method=\"get\">\n{}<div class=\"scroll\" role=\"region\" \
             tabindex=\"0\" aria-label=\"runs\">\n<table class=\"runs\">\n<thead><tr>",
            links.hidden()
        );
        for name in WORDS {
            let _ = write!(html, "<th scope=\"col\">{name}</th>");
        }
        for name in FIGURES.map(Metric::name) {
            let _ = write!(html, "<th scope=\"col\" class=\"n\">{name}</th>");
        }
        html.push_str("</tr></thead>\n<tbody>\n");
        for entry in &self.page.entries {
            row(&mut html, entry, links);
        }
        html.push_str(
            "</tbody>\n</table>\n</div>\n<p><button type=\"submit\">Compare B with A</button></p>\n\
             </form>\n",
        );
        html
    }

    fn page_links(&self, links: &Links) -> String {
        let Page { number, pages, .. } = *self.page;
        if pages == 1 {
            return String::new();
        }
        let link = |number: u64, words: &str| {
            let number = number.to_string();
            let mut parameters = of_filter(self.filter).to_vec();
            parameters.push(("page", &number));
            format!("<a href=\"{}\">{words}</a>\n", links.to("/", &parameters))
        };
        let newer = (number > 1).then(|| link(number - 1, "Newer runs"));
        let older = (number < pages).then(|| link(number + 1, "Older runs"));
        format!(
            "<nav class=\"pages\" aria-label=\"Pages of the list\">\n{}\
             <span>Page {} of {}</span>\n{}</nav>\n",
            newer.unwrap_or_default(),
            count(number),
            count(pages),
            older.unwrap_or_default()
        )
    }

    fn unreadable(&self) -> String {
        let all = self.unreadable.len();
        if all == 0 {
            return String::new();
        }
        let mut html = format!(
            "<details class=\"part\"><summary><h2>Files that are not run records: {}</h2>\
             </summary>\n<ul>\n",
            count(all as u64)
        );
        let shown = named(self.unreadable, UNREADABLE_SHOWN);
        for Unreadable { file, why } in shown {
            let _ = writeln!(html, "<li>{}: {}</li>", escape(file), escape(why));
        }
        if shown.len() < all {
            let more = count((all - shown.len()) as u64);
            let _ = writeln!(html, "<li>and {more} more</li>");
        }
        html.push_str("</ul>\n</details>\n");
        html
    }
}

/// A run in the list.
fn row(html: &mut String, entry: &Entry, links: &Links) {
    let id = entry.id;
    let _ = write!(
        html,
        "<tr><th scope=\"row\" class=\"k\"><a href=\"{}\">{id}</a></th>",
        links.to(&format!("/record/{id}"), &[])
    );
    for (name, side) in [("a", "A"), ("b", "B")] {
        let _ = write!(
            html,
            "<td class=\"k\"><input type=\"radio\" name=\"{name}\" value=\"{id}\" required \
             aria-label=\"run {id} as {side}\"></td>"
        );
    }
    let _ = write!(
        html,
        "<td class=\"k\">{}</td><td class=\"file\">{}</td>",
        escape(&to_the_second(fact(entry, "started"))),
        escape(&entry.file)
    );
    for name in ["target", "transport", "arrival", "limit"] {
        let _ = write!(html, "<td class=\"k\">{}</td>", escape(fact(entry, name)));
    }
    let _ = write!(html, "<td class=\"file\">{}</td>", escape(&labels(entry)));
    for metric in FIGURES {
        let value = entry.figures.get(metric.name());
        let value = value.map_or_else(|| "-".to_owned(), |value| metric.show(*value));
        let _ = write!(html, "<td class=\"n\">{}</td>", escape(&value));
    }
    html.push_str("</tr>\n");
}

/// What the user, or the observed server, calls the run: `version=1.0 server=BIND`.
fn labels(entry: &Entry) -> String {
    let is_label = |name: &str| !FIXED_FACTS.contains(&name);
    let labels = entry.facts.iter().filter(|(name, _)| is_label(name));
    let labels: Vec<String> = labels
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    labels.join(" ")
}

/// As people read it.
fn to_the_second(rfc3339: &str) -> String {
    rfc3339.get(..19).unwrap_or(rfc3339).replace('T', " ")
}

/// A metric over time.
pub(crate) struct Trend<'a> {
    pub(crate) metric: Metric,
    pub(crate) by: &'a str,
    pub(crate) filter: &'a Filter,
    pub(crate) choices: &'a Choices,
    pub(crate) samples: &'a [Sample],
    pub(crate) chart: TrendChart,
}

impl Trend<'_> {
    pub(crate) fn render(&self, links: &Links) -> String {
        let name = escape(self.metric.name());
        let runs = counted(self.samples.len() as u64, "run");
        let mut content = format!(
            "<header>\n<h1>{name} over time</h1>\n<p class=\"subtitle\">{}; {runs}</p>\n\
             </header>\n",
            escape(&report::html::sentence(self.metric.meaning()))
        );
        let metric = Select {
            name: "metric",
            label: "Metric",
            any: None,
            chosen: self.metric.name(),
        };
        let by = Select {
            name: "by",
            label: "A line for each",
            any: None,
            chosen: self.by,
        };
        let _ = write!(
            content,
            "<form class=\"fields\" action=\"/trend\" method=\"get\">\n{}{}{}{}\
             <div><button type=\"submit\">Show</button></div>\n</form>\n\
             <section class=\"part\">\n<h2>Chart</h2>\n<figure>\n{}{}</figure>\n</section>\n",
            links.hidden(),
            metric.render(Metric::ALL.iter().map(|it| it.name())),
            by.render(self.choices.facts.iter().map(String::as_str)),
            fields(self.filter, self.choices),
            self.chart.legend,
            self.chart.drawing
        );
        if self.samples.len() as u64 == TREND_RUNS_MAX {
            let most = count(TREND_RUNS_MAX);
            let _ = writeln!(
                content,
                "<p class=\"note\">These are the newest {most} that match; filter for others.</p>"
            );
        }
        if !self.samples.is_empty() {
            let _ = write!(
                content,
                "<section class=\"part\">\n<h2>Groups</h2>\n<div class=\"scroll\" role=\"region\" \
                 tabindex=\"0\" aria-label=\"groups\">\n{}</div>\n</section>\n",
                self.chart.table
            );
            content.push_str(&self.runs(links));
        }
        page(
            &format!("{} over time", self.metric.name()),
            "/trend",
            &content,
            links,
        )
    }

    fn runs(&self, links: &Links) -> String {
        let mut html = format!(
            "<section class=\"part\">\n<h2>Runs</h2>\n<div class=\"scroll\" role=\"region\" \
             tabindex=\"0\" aria-label=\"runs of the chart\">\n<table>\n<thead><tr>\
             <th scope=\"col\">run</th><th scope=\"col\">started</th><th scope=\"col\">{}</th>\
             <th scope=\"col\" class=\"n\">{}</th></tr></thead>\n<tbody>\n",
            escape(self.by),
            escape(self.metric.name())
        );
        for sample in self.samples.iter().rev() {
            let _ = writeln!(
                html,
                "<tr><th scope=\"row\" class=\"k\"><a href=\"{}\">{}</a></th>\
                 <td class=\"k\">{}</td><td class=\"k\">{}</td><td class=\"n\">{}</td></tr>",
                links.to(&format!("/record/{}", sample.id), &[]),
                sample.id,
                escape(&to_the_second(&sample.started)),
                escape(&sample.group),
                escape(&self.metric.show(sample.value))
            );
        }
        html.push_str("</tbody>\n</table>\n</div>\n</section>\n");
        html
    }
}
