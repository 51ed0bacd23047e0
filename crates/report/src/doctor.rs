//! What `throng doctor` found, as text and JSON: the worst first, each with its cures.

use std::fmt::Write;

use measure::doctor::{Aim, Cure, Diagnosis, HostReading, Place, State, worst};
use measure::notation::{count, counted, gibibytes};
use measure::{HostFacts, Limit};
use schemars::{JsonSchema, schema_for};
use serde::Serialize;
use serde_json::Value;

use crate::Source;
use crate::json::pretty;

/// Columns of a line of text.
const WIDTH: usize = 100;
/// Where what was seen begins.
const INDENT: usize = 11;
/// Within a diagnosis, what comes first is read first.
const ORDER: [State; 4] = [State::Problem, State::Warning, State::Unknown, State::Ok];

/// What was found on a host.
#[derive(Clone, Copy, Debug)]
pub struct OfHost<'a> {
    /// Version of the binary that looked.
    pub throng_version: &'a str,
    /// What was read.
    pub host: &'a HostReading,
    /// What the host is to do.
    pub aim: Aim,
    /// What was found.
    pub diagnoses: &'a [Diagnosis],
}

/// What was found in records.
#[derive(Clone, Copy, Debug)]
pub struct OfRuns<'a> {
    /// The records, with the files that they are from.
    pub sources: &'a [Source],
    /// What each of them shows, in the same order.
    pub each: &'a [Vec<Diagnosis>],
    /// What they show together.
    pub together: &'a [Diagnosis],
}

/// What `throng doctor --format json` prints.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
enum Document<'a> {
    /// Of this host.
    Host {
        /// Version of the binary that looked.
        throng_version: &'a str,
        /// The worst state of all.
        state: State,
        /// Clients at once that the host is to simulate or to serve; none if that was not given.
        clients: Option<u64>,
        /// The host is to serve clients rather than to simulate them.
        is_server: bool,
        /// What the host is.
        host: &'a HostFacts,
        /// What was found.
        diagnoses: &'a [Diagnosis],
    },
    /// Of run records.
    Records {
        /// The worst state of all.
        state: State,
        /// What each record shows.
        runs: Vec<OfRun<'a>>,
        /// What they show together.
        together: &'a [Diagnosis],
    },
}

/// What a record shows.
#[derive(Serialize, JsonSchema)]
struct OfRun<'a> {
    /// File of the record.
    file: &'a str,
    /// What limited the run.
    limit: Limit,
    /// What was found.
    diagnoses: &'a [Diagnosis],
}

impl Document<'_> {
    /// As JSON, ending in a line break.
    fn json(&self) -> String {
        pretty(&serde_json::to_value(self).unwrap_or_default())
    }
}

/// The JSON Schema (2020-12) of both documents.
pub fn json_schema() -> Value {
    schema_for!(Document<'_>).to_value()
}

impl OfHost<'_> {
    /// For people, ending in a line break.
    pub fn text(&self) -> String {
        let mut text = format!(
            "throng {}: this host, {}\n",
            self.throng_version,
            self.aim()
        );
        let _ = writeln!(text, "  {}\n", self.host());
        text.push_str(&diagnoses(self.diagnoses));
        let _ = write!(text, "\n{}\n", tally(self.diagnoses));
        text
    }

    /// One JSON object, ending in a line break.
    pub fn json(&self) -> String {
        let document = Document::Host {
            throng_version: self.throng_version,
            state: worst(self.diagnoses),
            clients: self.aim.clients,
            is_server: self.aim.is_server,
            host: &self.host.facts,
            diagnoses: self.diagnoses,
        };
        document.json()
    }

    fn aim(&self) -> String {
        let clients = self.aim.clients.map(|number| counted(number, "client"));
        match (clients, self.aim.is_server) {
            (None, false) => "as a generator of load".to_owned(),
            (None, true) => "as a server".to_owned(),
            (Some(clients), false) => format!("as a generator with {clients}"),
            (Some(clients), true) => format!("as a server for {clients}"),
        }
    }

    fn host(&self) -> String {
        let facts = &self.host.facts;
        let mut words: Vec<String> = Vec::new();
        words.extend(facts.os.clone());
        words.extend(
            facts
                .kernel
                .as_ref()
                .map(|kernel| format!("Linux {kernel}")),
        );
        words.extend(facts.cores.map(|cores| counted(cores, "CPU")));
        words.extend(facts.cpu_model.clone());
        words.extend(facts.memory_octets.map(gibibytes));
        words.extend(
            facts
                .hypervisor
                .as_ref()
                .map(|name| format!("virtual ({name})")),
        );
        words.join(", ")
    }
}

impl OfRuns<'_> {
    /// For people, ending in a line break.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (source, found) in self.sources.iter().zip(self.each) {
            let record = &source.record;
            let scenario = &record.scenario;
            let target = scenario.server_name.as_ref().unwrap_or(&scenario.target);
            let what = match (record.simulation.is_some(), record.self_test) {
                (true, _) => "SIMULATION, ",
                (false, true) => "self-test, ",
                (false, false) => "",
            };
            let _ = writeln!(
                text,
                "{}: {what}{target} over {}",
                source.file, scenario.transport
            );
            let labels = crate::text::labels(scenario);
            if !labels.is_empty() {
                let _ = writeln!(text, "  {labels}");
            }
            let limit = record.verdict.limit;
            let _ = writeln!(text, "  limit: {}. {}.\n", limit.name(), limit.meaning());
            text.push_str(&diagnoses(&without_meaning(found, limit)));
            text.push('\n');
        }
        if !self.together.is_empty() {
            let _ = writeln!(text, "together\n");
            text.push_str(&diagnoses(self.together));
            text.push('\n');
        }
        let _ = writeln!(text, "{}", tally(&self.all()));
        text
    }

    /// One JSON object, ending in a line break.
    pub fn json(&self) -> String {
        let runs = self.sources.iter().zip(self.each);
        let runs = runs.map(|(source, found)| OfRun {
            file: &source.file,
            limit: source.record.verdict.limit,
            diagnoses: found,
        });
        let document = Document::Records {
            state: worst(&self.all()),
            runs: runs.collect(),
            together: self.together,
        };
        document.json()
    }

    /// Everything that was found.
    pub fn all(&self) -> Vec<Diagnosis> {
        let each = self.each.iter().flatten();
        each.chain(self.together).cloned().collect()
    }
}

/// The same without what the line on the limit says already.
fn without_meaning(found: &[Diagnosis], limit: Limit) -> Vec<Diagnosis> {
    let mut found = found.to_vec();
    for diagnosis in &mut found {
        if diagnosis.matters == limit.meaning() {
            diagnosis.matters.clear();
        }
    }
    found
}

/// All of them, the worst first.
fn diagnoses(all: &[Diagnosis]) -> String {
    let mut text = String::new();
    let topics = all.iter().map(|it| it.topic.chars().count());
    let topic_width = topics.max().unwrap_or(0);
    for state in ORDER {
        for diagnosis in all.iter().filter(|it| it.state == state) {
            push(&mut text, diagnosis, topic_width);
        }
    }
    text
}

fn push(text: &mut String, diagnosis: &Diagnosis, topic_width: usize) {
    let state = diagnosis.state.name();
    let topic = &diagnosis.topic;
    let head = format!("  {state:<8} {topic:<topic_width$}  ");
    let within = head.chars().count();
    push_wrapped(text, &head, within, &diagnosis.seen);
    let indent = " ".repeat(INDENT);
    let word = match diagnosis.state {
        State::Ok => "try ",
        State::Unknown => "see ",
        State::Warning | State::Problem => {
            let why = format!("{indent}why   ");
            if !diagnosis.matters.is_empty() {
                push_wrapped(text, &why, INDENT + 6, &diagnosis.matters);
            }
            "cure"
        }
    };
    for (at, cure) in diagnosis.cures.iter().enumerate() {
        let word = if at == 0 { word } else { "    " };
        push_cure(text, &format!("{indent}{word}  "), cure);
    }
}

/// A command is never broken: it is to be copied.
fn push_cure(text: &mut String, head: &str, cure: &Cure) {
    match cure.place {
        Place::Words => push_wrapped(text, head, INDENT + 6, &cure.how),
        place => {
            let _ = writeln!(text, "{head}{}: {}", place.label(), cure.how);
        }
    }
}

/// `words` behind `head`, further lines indented.
fn push_wrapped(text: &mut String, head: &str, indent: usize, words: &str) {
    let mut line = head.to_owned();
    let mut is_empty = true;
    for word in words.split(' ') {
        let length = line.chars().count() + 1 + word.chars().count();
        if !is_empty && length > WIDTH {
            text.push_str(line.trim_end());
            text.push('\n');
            line = " ".repeat(indent);
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(word);
        is_empty = false;
    }
    text.push_str(line.trim_end());
    text.push('\n');
}

/// `1 problem, 2 warnings, 14 ok`.
fn tally(all: &[Diagnosis]) -> String {
    let each = ORDER.into_iter().filter_map(|state| {
        let number = all.iter().filter(|it| it.state == state).count() as u64;
        let words = match state {
            State::Problem | State::Warning => counted(number, state.name()),
            State::Unknown | State::Ok => format!("{} {}", count(number), state.name()),
        };
        (number > 0).then_some(words)
    });
    each.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_comes_first_and_only_what_is_not_well_says_why() {
        let ok = Diagnosis::new("SMT", State::Ok, "2 CPUs", "unsaid")
            .cure(Cure::new(Place::Throng, "--cpus 0"));
        let warning = Diagnosis::new("receive buffers", State::Warning, "small", "they drop")
            .cure(Cure::new(Place::Root, "sysctl -w a=1"))
            .cure(Cure::new(Place::Words, "or not"));
        let all = [ok, warning];
        let expected = [
            "  warning  receive buffers  small",
            "           why   they drop",
            "           cure  as root: sysctl -w a=1",
            "                 or not",
            "  ok       SMT              2 CPUs",
            "           try   throng: --cpus 0",
        ];
        assert_eq!(diagnoses(&all).lines().collect::<Vec<_>>(), expected);
        assert_eq!(tally(&all), "1 warning, 1 ok");
    }

    #[test]
    fn long_sentences_are_broken_between_words_and_commands_are_not() {
        let long = "word ".repeat(60);
        let command = "x".repeat(150);
        let diagnosis = Diagnosis::new("topic", State::Problem, long.trim(), "why")
            .cure(Cure::new(Place::Shell, &command));
        let text = diagnoses(&[diagnosis]);
        let is_broken = |line: &&str| line.chars().count() <= WIDTH || line.contains(&command);
        assert!(text.lines().all(|line| is_broken(&line)), "{text}");
        assert_eq!(text.matches("word").count(), 60);
        assert!(text.contains(&command), "{text}");
    }
}
