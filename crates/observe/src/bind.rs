//! BIND's statistics channel: JSON version 1, or XML version 3 where JSON is not built in.
//!
//! Both become the same names: `nsstat.QryUDP`, `rcode.NOERROR`, `sockstat.TCP4Accept`,
//! `cachestats.CacheHits{view="_default"}`. Counters of queries by type are left out: a client can
//! make as many of them as it likes. The pages asked for are those without zones.

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use serde_json::Value;

use crate::gap::Gap;
use crate::http::{Client, Url};
use crate::reading::{RawSample, Reading};
use crate::source::{Answer, Source};
use crate::stream::Allowance;

/// Elements within one another that are followed; BIND has seven.
const DEPTH_MAX: usize = 64;

/// The pages that are asked for, of either form.
const PAGES: [&str; 3] = ["server", "net", "mem"];

/// One statistics channel.
pub(crate) struct BindChannel {
    client: Client,
    url: Url,
    form: Form,
}

/// What it speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Unknown,
    Json,
    Xml,
}

impl BindChannel {
    pub(crate) fn new(client: Client, url: Url) -> BindChannel {
        let path = url.to_string();
        let form = match (path.contains("/json"), path.contains("/xml")) {
            (true, _) => Form::Json,
            (_, true) => Form::Xml,
            _ => Form::Unknown,
        };
        // Whatever page was given, its root is where all of them are.
        let url = url.at_root();
        BindChannel { client, url, form }
    }

    fn read_as(&mut self, form: Form, allowance: &Allowance) -> Result<Answer, Gap> {
        let mut answer = Answer {
            reading: Reading::default(),
            octets: 0,
        };
        for page in PAGES {
            let path = match form {
                Form::Xml => format!("/xml/v3/{page}"),
                _ => format!("/json/v1/{page}"),
            };
            let body = self.client.get(&self.url.below(&path), allowance)?;
            answer.octets += body.len() as u64;
            let read = match form {
                Form::Xml => parse_xml(&body, &mut answer.reading),
                _ => parse_json(&body, &mut answer.reading),
            };
            read.map_err(Gap::Malformed)?;
        }
        Ok(answer)
    }
}

impl Source for BindChannel {
    fn read(&mut self, allowance: &Allowance) -> Result<Answer, Gap> {
        if self.form != Form::Unknown {
            return self.read_as(self.form, allowance);
        }
        let json = self.read_as(Form::Json, allowance);
        let form = match &json {
            Ok(_) => Form::Json,
            // A BIND without this library answers 404.
            Err(Gap::Refused(_)) => Form::Xml,
            Err(_) => return json,
        };
        self.form = form;
        match form {
            Form::Xml => self.read_as(form, allowance),
            _ => json,
        }
    }
}

/// Adds what a page in JSON has.
///
/// # Errors
/// It is not JSON, or not BIND's.
pub fn parse_json(body: &[u8], reading: &mut Reading) -> Result<(), String> {
    let page: Value = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let is_ours = |it: &str| it.starts_with("1.");
    if !page["json-stats-version"].as_str().is_some_and(is_ours) {
        return Err("it has no `json-stats-version` 1".to_owned());
    }
    for text in ["boot-time", "config-time", "version"] {
        reading.say(text, page[text].as_str().unwrap_or_default());
    }
    for (key, group) in [
        ("opcodes", "opcode"),
        ("rcodes", "rcode"),
        ("nsstats", "nsstat"),
        ("sockstats", "sockstat"),
        ("memory", "memory"),
    ] {
        add_json(&page[key], group, &[], reading);
    }
    for (view, of_view) in page["views"].as_object().into_iter().flatten() {
        let labels = [("view".to_owned(), view.clone())];
        for (key, group) in [("stats", "resstats"), ("cachestats", "cachestats")] {
            add_json(&of_view["resolver"][key], group, &labels, reading);
        }
    }
    Ok(())
}

fn add_json(group: &Value, name: &str, labels: &[(String, String)], reading: &mut Reading) {
    for (key, value) in group.as_object().into_iter().flatten() {
        if let Some(value) = value.as_f64() {
            reading.samples.push(RawSample {
                name: format!("{name}.{key}"),
                labels: labels.to_vec(),
                value,
                taken_s: None,
            });
        }
    }
}

/// Adds what a page in XML has.
///
/// # Errors
/// It is not XML, or not BIND's.
pub fn parse_xml(body: &[u8], reading: &mut Reading) -> Result<(), String> {
    let text = std::str::from_utf8(body).map_err(|error| error.to_string())?;
    let mut xml = Reader::from_str(text);
    let mut walk = Walk::default();
    loop {
        match xml.read_event().map_err(|error| error.to_string())? {
            Event::Start(element) => walk.enter(&element)?,
            Event::Text(text) => {
                walk.text(&String::from_utf8_lossy(&text), reading);
            }
            Event::End(_) => walk.leave(),
            Event::Eof => break,
            _ => {}
        }
    }
    match walk.is_ours && walk.path.is_empty() {
        true => Ok(()),
        false => Err("it has no whole `statistics` of version 3".to_owned()),
    }
}

/// Where in the document the reader is.
#[derive(Default)]
struct Walk {
    /// Elements from the outermost on, each with its name and that in its attribute.
    path: Vec<(String, String)>,
    is_ours: bool,
}

impl Walk {
    fn enter(&mut self, element: &BytesStart<'_>) -> Result<(), String> {
        if self.path.len() == DEPTH_MAX {
            return Err(format!("more than {DEPTH_MAX} elements within one another"));
        }
        let name = String::from_utf8_lossy(element.name().as_ref()).into_owned();
        let attribute = |wanted: &str| {
            let found = element.try_get_attribute(wanted).ok()??;
            Some(String::from_utf8_lossy(&found.value).into_owned())
        };
        if self.path.is_empty() && name == "statistics" {
            self.is_ours = attribute("version").is_some_and(|it| it.starts_with("3."));
        }
        let named = match name.as_str() {
            "counters" => attribute("type"),
            "counter" | "view" => attribute("name"),
            _ => None,
        };
        self.path.push((name, named.unwrap_or_default()));
        Ok(())
    }

    fn leave(&mut self) {
        self.path.pop();
    }

    fn text(&mut self, text: &str, reading: &mut Reading) {
        let names: Vec<&str> = self.path.iter().map(|(name, _)| name.as_str()).collect();
        match names.as_slice() {
            [
                "statistics",
                "server",
                fact @ ("boot-time" | "config-time" | "version"),
            ] => {
                reading.say(fact, text);
            }
            ["statistics", "memory", "summary", figure] => {
                let value = text.trim().parse().ok();
                let sample = |value| RawSample::plain(format!("memory.{figure}"), value);
                reading.samples.extend(value.map(sample));
            }
            [.., "counters", "counter"] => self.counter(text, reading),
            _ => {}
        }
    }

    fn counter(&self, text: &str, reading: &mut Reading) {
        let [.., (_, group), (_, name)] = self.path.as_slice() else {
            return;
        };
        let groups = [
            "opcode",
            "rcode",
            "nsstat",
            "sockstat",
            "resstats",
            "cachestats",
        ];
        let (true, Ok(value)) = (groups.contains(&group.as_str()), text.trim().parse()) else {
            return;
        };
        let view = self.path.iter().find(|(element, _)| element == "view");
        let labels = view.map(|(_, view)| ("view".to_owned(), view.clone()));
        reading.samples.push(RawSample {
            name: format!("{group}.{name}"),
            labels: labels.into_iter().collect(),
            value,
            taken_s: None,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JSON: [&[u8]; 3] = [
        include_bytes!("../tests/samples/bind-9.18-server.json"),
        include_bytes!("../tests/samples/bind-9.18-net.json"),
        include_bytes!("../tests/samples/bind-9.18-mem.json"),
    ];
    const XML: [&[u8]; 3] = [
        include_bytes!("../tests/samples/bind-9.18-server.xml"),
        include_bytes!("../tests/samples/bind-9.18-net.xml"),
        include_bytes!("../tests/samples/bind-9.18-mem.xml"),
    ];

    #[test]
    fn both_forms_give_the_same_names_and_what_was_asked() {
        let (mut json, mut xml) = (Reading::default(), Reading::default());
        for (page_json, page_xml) in JSON.iter().zip(XML) {
            parse_json(page_json, &mut json).unwrap();
            parse_xml(page_xml, &mut xml).unwrap();
        }
        for reading in [&json, &xml] {
            // Recorded after 6 queries over UDP, one over TCP.
            assert_eq!(reading.value("nsstat.QryUDP"), Some(6.0));
            assert_eq!(reading.value("nsstat.QryTCP"), Some(1.0));
            assert_eq!(reading.value("rcode.NXDOMAIN"), Some(1.0));
            assert_eq!(reading.texts["version"], "9.18.49-1~deb12u3-Debian");
            assert!(reading.value("memory.InUse").unwrap() > 1e6);
            assert!(reading.value("sockstat.TCP4Accept").unwrap() >= 1.0);
            let is_cache = |it: &RawSample| {
                it.name == "cachestats.CacheHits" && it.label("view") == Some("_default")
            };
            assert!(reading.samples.iter().any(is_cache));
        }
        for sample in &json.samples {
            let same = |it: &&RawSample| it.name == sample.name && it.labels == sample.labels;
            let in_xml = xml.samples.iter().find(same);
            assert!(
                in_xml.is_some() || sample.value == 0.0,
                "{}",
                sample.full_name()
            );
        }
    }

    #[test]
    fn what_is_not_a_channel_is_refused() {
        for text in [
            "",
            "{}",
            "[1]",
            "{\"json-stats-version\":\"2.0\"}",
            "{\"json",
        ] {
            assert!(
                parse_json(text.as_bytes(), &mut Reading::default()).is_err(),
                "{text}"
            );
        }
        let deep = "<a>".repeat(100_000);
        let half = "<statistics version=\"3.1\"><server>";
        for text in [
            "",
            "<html></html>",
            "<statistics version=\"2.2\"/>",
            half,
            &deep,
            "<a></b>",
        ] {
            assert!(parse_xml(text.as_bytes(), &mut Reading::default()).is_err());
        }
    }
}
