//! The report as JUnit's XML, which CI systems show: a suite for each package and target.

use std::collections::BTreeMap;
use std::fs;

use quick_xml::Writer;
use quick_xml::events::{BytesCData, BytesDecl, BytesEnd, BytesStart, BytesText, Event};

use crate::report::{Conclusion, Test};

/// Elements follow what Jenkins and GitLab read: `flakyFailure` as Maven's Surefire writes it,
/// `skipped` for what showed nothing.
pub(crate) fn text(tests: &[Test]) -> String {
    let mut suites = BTreeMap::<&str, Vec<(&str, &Test)>>::new();
    for test in tests {
        let mut parts = test.name.splitn(3, "::");
        let (package, target) = (parts.next().unwrap(), parts.next().unwrap());
        let suite = &test.name[..package.len() + 2 + target.len()];
        let name = parts.next().unwrap_or_default();
        suites.entry(suite).or_default().push((name, test));
    }
    let mut writer = Writer::new_with_indent(Vec::new(), b' ', 2);
    let write = |event| writer.write_event(event).unwrap();
    write_all(&suites, write);
    String::from_utf8(writer.into_inner()).unwrap() + "\n"
}

fn write_all<'a>(
    suites: &BTreeMap<&'a str, Vec<(&'a str, &'a Test)>>,
    mut write: impl FnMut(Event<'a>),
) {
    write(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)));
    write(Event::Start(BytesStart::new("testsuites")));
    for (suite, tests) in suites {
        let count = |it| {
            tests
                .iter()
                .filter(|(_, test)| test.conclusion == it)
                .count()
        };
        let mut start = BytesStart::new("testsuite");
        start.push_attribute(("name", *suite));
        start.push_attribute(("tests", tests.len().to_string().as_str()));
        start.push_attribute(("failures", count(Conclusion::Failed).to_string().as_str()));
        let skipped = count(Conclusion::Inconclusive).to_string();
        start.push_attribute(("skipped", skipped.as_str()));
        write(Event::Start(start));
        for (name, test) in tests {
            write_test(suite, name, test, &mut write);
        }
        write(Event::End(BytesEnd::new("testsuite")));
    }
    write(Event::End(BytesEnd::new("testsuites")));
}

fn write_test<'a>(suite: &str, name: &str, test: &'a Test, write: &mut impl FnMut(Event<'a>)) {
    let mut start = BytesStart::new("testcase");
    start.push_attribute(("classname", suite));
    start.push_attribute(("name", name));
    start.push_attribute(("time", format!("{:.3}", test.seconds).as_str()));
    write(Event::Start(start));
    let element = match test.conclusion {
        Conclusion::Passed => None,
        Conclusion::Failed => Some("failure"),
        Conclusion::Flaky => Some("flakyFailure"),
        Conclusion::Inconclusive => Some("skipped"),
    };
    if let Some(element) = element {
        let why = test.why.join("\n");
        let mut start = BytesStart::new(element);
        start.push_attribute(("message", why.lines().next().unwrap_or_default()));
        write(Event::Start(start));
        write(Event::Text(BytesText::new(&why).into_owned()));
        write(Event::End(BytesEnd::new(element)));
    }
    for path in &test.outputs {
        let output = fs::read(path).unwrap_or_default();
        let output = String::from_utf8_lossy(&output).into_owned();
        write(Event::Start(BytesStart::new("system-out")));
        for part in BytesCData::escaped(&output) {
            write(Event::CData(part.into_owned()));
        }
        write(Event::End(BytesEnd::new("system-out")));
    }
    write(Event::End(BytesEnd::new("testcase")));
}
