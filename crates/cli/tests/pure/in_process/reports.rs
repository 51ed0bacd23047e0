//! `throng report`: records and folders of them, in every form.

use std::fs;

use testing::folder::Folder;

use crate::call::throng;

/// A folder with a sweep over two transports and two numbers of clients, in virtual time.
fn swept(folder: &Folder) -> String {
    let records = folder.folder().join("records");
    fs::create_dir_all(&records).unwrap();
    for (transport, clients) in [("udp", 2), ("udp", 4), ("tcp", 2), ("tcp", 4)] {
        let file = records.join(format!("{transport}-{clients}.json"));
        throng(&format!(
            "run --quiet --driver sim --transport {transport} --clients {clients} --outstanding 8 \
             --duration 2s --label note=sweep --record {}",
            file.display()
        ))
        .succeeded();
    }
    records.to_str().unwrap().to_owned()
}

#[test]
fn a_folder_of_records_is_rendered_in_the_form_of_the_file_extension() {
    let folder = Folder::new("report-forms");
    let records = swept(&folder);
    for (name, sign) in [
        ("r.html", "<!DOCTYPE html>"),
        (
            "r.md",
            "# Load on the built-in responder, by transport and clients",
        ),
        ("r.csv", "file,started_at,transport,clients,"),
        ("r.json", "{\n  \"cells\""),
        ("r.jsonl", "{\"additional_info\""),
        (
            "r.txt",
            "Load on the built-in responder, by transport and clients",
        ),
    ] {
        let file = folder.path(name);
        let printed = throng(&format!("report {records} -o {file}")).succeeded();
        assert_eq!(printed, "");
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.starts_with(sign), "{name}: {text:.200}");
    }
    let page = fs::read_to_string(folder.path("r.html")).unwrap();
    for title in [
        "Throughput against clients",
        "as a share of UDP",
        "of each client, against",
    ] {
        assert!(page.contains(title), "{title}");
    }
    let named = throng(&format!("report {records} --format markdown")).succeeded();
    assert_eq!(named, fs::read_to_string(folder.path("r.md")).unwrap());
}

#[test]
fn one_record_becomes_a_page_with_its_labels() {
    let folder = Folder::new("report-page");
    let record = folder.path("run.json");
    throng(&format!(
        "run --quiet --driver sim --transport dot --queries-per-connection 20 --rate 200 \
         --duration 12s --label cpu=2 --label logging=off --record {record}"
    ))
    .succeeded();
    let text = throng(&format!("report {record} --details")).succeeded();
    assert!(text.contains("labels       cpu=2, logging=off"), "{text}");
    let page = throng(&format!("report {record} --format html")).succeeded();
    for part in [
        "Simulated load on the built-in responder over DoT",
        "cpu=2, logging=off",
        "Offered and achieved rate",
        "Latency percentiles over time",
        "Latency distribution",
        "Latency as single clients saw it",
        "Clients by the rate at which they asked",
        "Connections open and active",
        "Connections opened and closed",
        "Connection set-up",
    ] {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn a_file_that_is_no_record_is_refused_by_name_and_left_out_of_a_folder_with_a_note() {
    let folder = Folder::new("report-mixed");
    let records = swept(&folder);
    let stranger = format!("{records}/package.json");
    fs::write(&stranger, "{\"name\": \"x\"}").unwrap();
    // What an experiment keeps of a cluster is no stranger.
    fs::create_dir_all(format!("{records}/manifests")).unwrap();
    fs::write(format!("{records}/manifests/r1.json"), "{}").unwrap();
    let (error, _) = throng(&format!("report {stranger}")).refused();
    assert!(error.contains("package.json: not a run record"), "{error}");
    let finished = throng(&format!("report {records} --format csv"));
    let said = finished.stderr.clone();
    let text = finished.succeeded();
    assert_eq!(text.lines().count(), 5, "{text}");
    assert!(
        said.contains("1 of 5 files are not run records and were left out"),
        "{said}"
    );
    assert!(said.contains("package.json"), "{said}");

    let empty = folder.path("empty");
    fs::create_dir_all(&empty).unwrap();
    throng(&format!("report {empty}")).refused_with("no run record in it", "--record");
}

#[test]
fn an_extension_without_a_form_and_a_missing_folder_are_refused() {
    let folder = Folder::new("report-ending");
    let record = folder.path("run.json");
    throng(&format!(
        "run --quiet --driver sim --queries 100 --record {record}"
    ))
    .succeeded();
    throng(&format!("report {record} -o report.pdf"))
        .refused_with("report.pdf: its extension does not select", ".html");
    let file = folder.path("no/such/folder/r.html");
    let (error, _) = throng(&format!("report {record} -o {file}")).refused();
    assert!(error.contains("cannot write to"), "{error}");
    let (error, hint) = throng("run --label cpu --queries 1").refused();
    assert!(
        error.contains("`cpu` is not of the form cpu=2"),
        "{error} {hint}"
    );
}

#[test]
fn a_link_to_a_record_stands_for_it_wherever_a_folder_is_read() {
    let folder = Folder::new("report-links");
    let records = folder.folder().join("records");
    fs::create_dir_all(records.join("within")).unwrap();
    let elsewhere = folder.path("elsewhere.json");
    let run = "run --quiet --driver sim --duration 2s --record";
    throng(&format!("{run} {elsewhere}")).succeeded();
    fs::copy(&elsewhere, records.join("own.json")).unwrap();
    for (link, to) in [
        ("link.json", elsewhere.as_str()),
        ("gone.json", "nothing"),
        // Leads back, and would without end.
        ("within/around", ".."),
        ("around.json", "within"),
    ] {
        std::os::unix::fs::symlink(to, records.join(link)).unwrap();
    }
    let records = records.display();
    let table = throng(&format!("report {records} --format csv")).succeeded();
    let names: Vec<&str> = table
        .lines()
        .filter_map(|row| row.split(',').next())
        .collect();
    assert_eq!(names, ["file", "link.json", "own.json"], "{table}");
    let list = throng(&format!("history list --records {records} --format csv")).succeeded();
    let names: Vec<&str> = list
        .lines()
        .filter_map(|row| row.split(',').nth(1))
        .collect();
    assert_eq!(names, ["record", "link.json", "own.json"], "{list}");
}

#[test]
fn run_prints_the_markdown_that_report_makes_of_its_record() {
    let folder = Folder::new("report-of-run");
    let record = folder.path("run.json");
    let flags = "run --quiet --driver sim --rate 200 --duration 2s --format markdown";
    let printed = throng(&format!("{flags} --record {record}")).succeeded();
    assert!(printed.starts_with("# "), "{printed:.200}");
    let report = throng(&format!("report {record} --format markdown")).succeeded();
    assert_eq!(printed, report);
}

#[test]
fn undecided_conditions_of_a_run_fail_it_only_when_asked() {
    let flags = "run --quiet --driver sim --rate 200 --duration 2s --fail-if wire.p99>5ms";
    throng(flags).succeeded();
    throng(&format!("{flags} --undecided pass")).succeeded();
    throng(&format!("{flags} --undecided fail")).ended_with(3);
    // A condition that holds, of a run that is too short to have a limit.
    let folder = Folder::new("undecided");
    let junit = folder.path("junit.xml");
    let short = format!(
        "run --quiet --driver sim --rate 200 --duration 100ms --fail-if p99>5s --junit {junit} \
         --force --undecided"
    );
    for (undecided, code, counts) in [
        ("pass", 0, "failures=\"0\" errors=\"0\" skipped=\"0\""),
        ("fail", 3, "failures=\"1\" errors=\"0\" skipped=\"0\""),
    ] {
        throng(&format!("{short} {undecided}")).ended_with(code);
        let text = std::fs::read_to_string(&junit).expect("it was written");
        assert!(text.contains(counts), "{undecided}: {text}");
    }
}
