//! A report before it has a form: headline figures, remarks, charts and tables. HTML, Markdown and
//! text are renderings of it, so they say the same.

use schemars::JsonSchema;
use serde::Serialize;

use crate::chart::Chart;

/// A report on one run or on several.
#[derive(Clone, Debug)]
pub struct Document {
    pub(crate) title: String,
    /// What was run, in a line.
    pub(crate) subtitle: String,
    /// The figures that a reader looks for first.
    pub(crate) tiles: Vec<Tile>,
    /// What limited the run; none of several runs, whose tables say it for each.
    pub(crate) verdict: Option<Banner>,
    /// What several runs show and do not show, in this order.
    pub(crate) conclusions: Vec<Conclusion>,
    pub(crate) remarks: Vec<Remark>,
    pub(crate) sections: Vec<Section>,
    /// What wrote it, and from which files.
    pub(crate) colophon: String,
}

impl Document {
    /// The remarks on one subject, in their order.
    pub(crate) fn remarks_on(&self, subject: Subject) -> Vec<&Remark> {
        let remarks = self.remarks.iter();
        remarks.filter(|it| it.subject == subject).collect()
    }
}

/// One headline figure with what qualifies it.
#[derive(Clone, Debug)]
pub(crate) struct Tile {
    pub(crate) label: &'static str,
    pub(crate) value: String,
    pub(crate) note: String,
}

/// The verdict beside the figures.
#[derive(Clone, Debug)]
pub(crate) struct Banner {
    pub(crate) limit: &'static str,
    /// What that limit means for the figures.
    pub(crate) meaning: &'static str,
    pub(crate) evidence: Vec<String>,
}

/// What can be concluded from several runs, or what cannot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Conclusion {
    pub(crate) heading: &'static str,
    /// Without full stops.
    pub(crate) sentences: Vec<String>,
}

/// What a remark is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Subject {
    /// What the figures show.
    Shows,
    /// What limits them, and what they are worth.
    Limits,
    /// What to do next.
    Advice,
}

impl Subject {
    /// All of them in the order of a report.
    pub(crate) const ALL: [Subject; 3] = [Subject::Shows, Subject::Limits, Subject::Advice];

    pub(crate) fn heading(self) -> &'static str {
        match self {
            Subject::Shows => "What it shows",
            Subject::Limits => "What limits it",
            Subject::Advice => "What to do",
        }
    }
}

/// A sentence that follows from the records, and where its figures are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Remark {
    pub(crate) subject: Subject,
    /// Without full stop.
    pub(crate) text: String,
    /// The chart or table that shows it.
    pub(crate) source: Option<String>,
}

impl Remark {
    pub(crate) fn new(subject: Subject, text: impl Into<String>, source: &str) -> Self {
        Remark {
            subject,
            text: text.into(),
            source: (!source.is_empty()).then(|| source.to_owned()),
        }
    }
}

/// A heading and what stands below it.
#[derive(Clone, Debug)]
pub(crate) struct Section {
    pub(crate) heading: String,
    pub(crate) blocks: Vec<Block>,
    /// Shown on demand, where a form can do that.
    pub(crate) is_folded: bool,
}

impl Section {
    pub(crate) fn new(heading: impl Into<String>, blocks: Vec<Block>) -> Self {
        Section {
            heading: heading.into(),
            blocks,
            is_folded: false,
        }
    }
}

/// A part of a section.
#[derive(Clone, Debug)]
pub(crate) enum Block {
    Chart(Box<Chart>),
    Sheet(Sheet),
    Note(String),
}

impl From<Chart> for Block {
    fn from(chart: Chart) -> Self {
        Block::Chart(Box::new(chart))
    }
}

/// A table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sheet {
    /// Where links go; no two of a document are alike.
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Vec<Vec<String>>,
    pub(crate) notes: Vec<String>,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: String,
    /// It holds words rather than figures.
    pub(crate) is_words: bool,
}

impl Column {
    pub(crate) fn words(name: impl Into<String>) -> Self {
        Column {
            name: name.into(),
            is_words: true,
        }
    }

    pub(crate) fn figures(name: impl Into<String>) -> Self {
        Column {
            name: name.into(),
            is_words: false,
        }
    }
}

impl Sheet {
    pub(crate) fn new(id: &str, title: impl Into<String>, columns: Vec<Column>) -> Self {
        Sheet {
            id: id.to_owned(),
            title: title.into(),
            columns,
            ..Sheet::default()
        }
    }

    /// A table of two columns, the first of which says what the other one is.
    pub(crate) fn facts(id: &str, title: &str) -> Self {
        let columns = vec![Column::words(""), Column::words("")];
        Sheet::new(id, title, columns)
    }

    pub(crate) fn fact(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.rows.push(vec![name.into(), value.into()]);
    }

    /// True if it only pairs names with values, and needs no heads.
    pub(crate) fn is_facts(&self) -> bool {
        self.columns.iter().all(|column| column.name.is_empty())
    }
}

/// The numbers of the charts and tables of a document, which remarks refer to.
pub(crate) struct Numbers(Vec<(String, String)>);

impl Numbers {
    pub(crate) fn of(document: &Document) -> Self {
        let (mut charts, mut sheets, mut names) = (0, 0, Vec::new());
        let blocks = document.sections.iter().flat_map(|it| &it.blocks);
        for block in blocks {
            match block {
                Block::Chart(chart) => {
                    charts += 1;
                    names.push((chart.id.clone(), format!("Figure {charts}")));
                }
                Block::Sheet(sheet) => {
                    sheets += 1;
                    names.push((sheet.id.clone(), format!("Table {sheets}")));
                }
                Block::Note(_) => {}
            }
        }
        Numbers(names)
    }

    /// `Figure 2` or `Table 1`.
    pub(crate) fn name(&self, id: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| known == id);
        found.map(|(_, name)| name.as_str())
    }
}
