//! How runs end whose surroundings give way, and what they have written then.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::UdpSocket;
use std::os::unix::fs::MetadataExt;
use std::process::{Child, Command, Stdio};
use std::thread;

use measure::RunRecord;
use measure::record::EndedBy;
use testing::due;
use testing::folder::Folder;
use testing::program::{Finished, execute, signal};

use testing::wait;

use crate::process::{Responder, THRONG, throng};
use crate::running::Running;

fn read(path: &str) -> RunRecord {
    RunRecord::from_json(&fs::read_to_string(path).unwrap()).unwrap()
}

/// A named pipe that has `text` for whoever opens it, once.
fn pipe(folder: &Folder, name: &str, text: &str) -> String {
    let path = folder.path(name);
    execute(&format!("mkfifo {path}")).succeeded();
    let (to, text) = (path.clone(), text.to_owned());
    // Ends with the process at the latest, should nobody open it.
    thread::spawn(move || fs::write(to, text));
    path
}

#[test]
fn nobody_has_to_hear_what_is_said() {
    let folder = Folder::new("deaf");
    let record = folder.path("record.json");
    for redirected in ["2>/dev/full", "2>&-", ">/dev/full 2>/dev/full"] {
        let line = format!(
            "{THRONG} run --duration 300ms --interval 50ms --rate 200 --record {record} \
             {redirected}"
        );
        let status = Command::new("sh")
            .args(["-c", &line])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .status();
        let code = if redirected.starts_with('>') { 1 } else { 0 };
        assert_eq!(status.unwrap().code(), Some(code), "{redirected}");
        due::assert_answered(&read(&record), 60);
        fs::remove_file(&record).unwrap();
    }
}

#[test]
fn what_can_be_read_once_is_read_once_for_all_processes() {
    let folder = Folder::new("pipes");
    for processes in [1, 2] {
        let names = pipe(&folder, &format!("names-{processes}"), "a.example A\n");
        let secret = "MTIzNDU2Nzg5MDEyMzQ1Njc4OTA=";
        let key = format!("key \"k\" {{ algorithm hmac-sha256; secret \"{secret}\"; }};\n");
        let key = pipe(&folder, &format!("key-{processes}"), &key);
        let stdout = throng(&format!(
            "run --quiet --format json --names {names} --tsig-file {key} --queries 100 --clients 4 \
             --agents {processes}"
        ));
        let record = RunRecord::from_json(&stdout.succeeded()).unwrap();
        assert_eq!(record.agent_count, processes);
        assert_eq!(record.total.counts.responses, 100);
        assert_eq!(
            record.scenario.tsig_algorithm.as_deref(),
            Some("hmac-sha256")
        );
    }
}

/// A run that would take a minute, once its first interval is over.
fn start(record: &str) -> Running {
    Running::start(&format!("--rate 50 --record {record}"))
}

/// Its exit code after Ctrl-C, and the rest of standard error.
fn interrupted(mut running: Running) -> (Option<i32>, String) {
    running.signal("INT");
    let (code, _, stderr) = running.ended();
    (code, stderr)
}

#[test]
fn a_record_that_has_lost_its_place_is_kept_elsewhere() {
    let folder = Folder::new("lost-place");
    let inner = folder.path("inner");
    fs::create_dir(&inner).unwrap();
    let running = start(&format!("{inner}/record.json"));
    fs::remove_dir_all(&inner).unwrap();
    let (code, said) = interrupted(running);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("cannot write to "), "{said}");
    let kept = said.split("hint: it is in ").nth(1);
    let kept = kept.and_then(|rest| rest.split(" instead").next());
    let kept = kept.unwrap_or_else(|| panic!("{said}"));
    assert_eq!(read(kept).ended_by, EndedBy::Interrupted);
    fs::remove_file(kept).unwrap();
}

#[test]
fn two_runs_do_not_write_one_record() {
    let folder = Folder::new("one-record");
    let record = folder.path("record.json");
    let first = start(&record);
    let second = throng(&format!("run --queries 1 --record {record}"));
    second.refused_with("another run is about to write to it", "another file");
    assert_eq!(interrupted(first).0, Some(130));
    assert_eq!(read(&record).ended_by, EndedBy::Interrupted);
    throng(&format!("run --quiet --queries 1 --record {record}")).succeeded();
}

/// Runs a shell's line in mounts of its own, which are gone with it. Needs root.
fn in_own_mounts(line: &str) -> Finished {
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", line]);
    Finished::new(line, command.stdin(Stdio::null()).output().unwrap())
}

#[test]
fn a_lead_without_room_for_its_result_says_so() {
    let folder = Folder::new("lead-full");
    let place = folder.folder().display().to_string();
    // What the command prints takes all of it.
    let finished = in_own_mounts(&format!(
        "mount -t tmpfs -o size=4k tmpfs {place} && cd {place} && \
         {THRONG} fleet lead --keep 1s -- run --quiet --queries 100"
    ));
    let said = finished.stderr.clone();
    finished.ended_with(1);
    let expected = format!(
        "error: cannot keep the result in {place}: No space left on device (os error 28)\n\
         hint: the volume of the lead is full: "
    );
    assert!(said.contains(&expected), "{said}");
}

#[test]
fn a_record_that_has_no_room_is_kept_elsewhere() {
    let folder = Folder::new("record-full");
    let place = folder.folder().display().to_string();
    // The file can be made, and holds nothing.
    let finished = in_own_mounts(&format!(
        "mount -t tmpfs -o size=4k tmpfs {place} && \
         {THRONG} run --quiet --queries 100 --record {place}/record.json"
    ));
    let said = finished.stderr.clone();
    finished.ended_with(1);
    assert!(
        said.contains("record.json: No space left on device"),
        "{said}"
    );
    let kept = said.split("hint: it is in ").nth(1);
    let kept = kept.and_then(|rest| rest.split(" instead").next());
    let kept = kept.unwrap_or_else(|| panic!("{said}"));
    assert_eq!(read(kept).total.counts.responses, 100);
    fs::remove_file(kept).unwrap();
    // Known before the run: nothing is sent.
    let finished = in_own_mounts(&format!(
        "mount -t tmpfs -o ro tmpfs {place} && \
         {THRONG} run --quiet --queries 100 --record {place}/record.json"
    ));
    finished.refused_with("Read-only file system", "a folder that exists");
}

#[test]
fn what_was_measured_is_printed_though_its_records_have_no_room() {
    let folder = Folder::new("printed-full");
    let place = folder.folder().display().to_string();
    let kept = Folder::new("printed-full-kept");
    let kept = kept.folder().display().to_string();
    let responder = Responder::start("udp:127.0.0.1:0", "");
    let server = responder.address().to_string();
    let asks = format!("a.example --server {server} --interval 10ms --count 3");
    for (command, printed) in [
        (
            format!("ping {asks} --record {place}/record.json"),
            "3 queries sent",
        ),
        (
            format!("eval {asks} --record {place}/record.json"),
            server.as_str(),
        ),
        (
            format!(
                "compare-transports --driver sim --transports udp,tcp --queries 100 --quiet \
                 --records {place}"
            ),
            "tcp",
        ),
        (
            format!(
                "capacity --driver sim --ceiling 2000 --start 500 --max 4k --trial-duration 1s \
                 --repeat 1 --quiet --records {place}"
            ),
            "qps",
        ),
    ] {
        let finished = in_own_mounts(&format!(
            "mount -t tmpfs -o size=4k tmpfs {place} && TMPDIR={kept} {THRONG} {command}"
        ));
        let said = finished.stderr.clone();
        let shown = finished.ended_with(1);
        assert!(
            said.contains("No space left on device"),
            "{command}: {said}"
        );
        assert!(said.contains("hint: it is in "), "{command}: {said}");
        assert!(shown.contains(printed), "{command}: {shown}");
    }
}

#[test]
fn a_reader_that_goes_away_takes_no_record_with_it() {
    let folder = Folder::new("reader-gone");
    let record = folder.path("record.json");
    for pipe in ["| head -1", "2>&1 | head -1", "2>&1 >/dev/null | true"] {
        let line = format!(
            "{THRONG} run --interval 20ms --duration 400ms --rate 200 --record {record} {pipe}"
        );
        let ended = Command::new("sh").args(["-c", &line]).output().unwrap();
        assert!(ended.status.success(), "{pipe}");
        due::assert_answered(&read(&record), 80);
        fs::remove_file(&record).unwrap();
    }
}

#[test]
fn a_terminal_that_is_closed_ends_the_run_with_its_record() {
    let folder = Folder::new("terminal-closed");
    let record = folder.path("record.json");
    let line = format!(
        "exec env --default-signal=HUP {THRONG} run --rate 50 --interval 50ms --duration 60s \
         --record {record}"
    );
    let mut terminal = Command::new("script")
        .args(["--quiet", "--command", &line, "/dev/null"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut shown = BufReader::new(terminal.stdout.take().unwrap());
    let mut seen = Vec::new();
    while !seen.windows(4).any(|part| part == b" qps") {
        assert!(shown.read_until(b's', &mut seen).unwrap() > 0);
    }
    terminal.kill().unwrap();
    terminal.wait().unwrap();
    wait::for_file(&record);
    assert_eq!(read(&record).ended_by, EndedBy::Interrupted);
}

/// What the last line of a terminal shows after these octets.
fn last_line(octets: &[u8]) -> String {
    let text = String::from_utf8_lossy(octets);
    let text = text.rsplit('\n').next().unwrap_or_default();
    let text = text.rsplit("\x1b[J").next().unwrap_or_default();
    text.replace('\r', "")
}

/// The target is silent: the run waits for open queries when the second signal comes.
#[test]
fn a_second_signal_leaves_no_progress_line_on_the_terminal() {
    let folder = Folder::new("second-signal");
    let names = folder.write("names.txt", "a.example A\n");
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let server = silent.local_addr().unwrap();
    let line = format!(
        "exec {THRONG} run --server {server} --names {names} --no-preflight --rate 50 \
         --interval 50ms --duration 60s"
    );
    let mut terminal = Command::new("script")
        .args(["--quiet", "--return", "--command", &line, "/dev/null"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut typed = terminal.stdin.take().unwrap();
    let mut shown = BufReader::new(terminal.stdout.take().unwrap());
    let mut seen = Vec::new();
    for awaited in [" qps", "waiting for open queries"] {
        while !String::from_utf8_lossy(&seen).contains(awaited) {
            assert!(shown.read_until(b's', &mut seen).unwrap() > 0);
        }
        // Ctrl-C.
        typed.write_all(b"\x03").unwrap();
    }
    shown.read_to_end(&mut seen).unwrap();
    assert_eq!(terminal.wait().unwrap().code(), Some(130));
    assert_eq!(last_line(&seen), "", "{}", String::from_utf8_lossy(&seen));
    // The line was there again below the note.
    let seen = String::from_utf8_lossy(&seen);
    let after = seen.rsplit("interrupt again to abort)").next().unwrap();
    assert!(after.contains(" qps"), "{seen}");
}

#[test]
fn a_wrong_path_of_doh_is_named_in_the_first_line() {
    let folder = Folder::new("wrong-path");
    let names = folder.write("names.txt", "a.example A\n");
    for transport in ["doh2", "doh3"] {
        let listen = format!("{transport}:127.0.0.1:0");
        let responder = Responder::start(&listen, "--doh-path /other");
        let server = format!("--server {} --tls-insecure", responder.address());
        let run = format!("run -t {transport} {server} --names {names} --rate 100 -l 2s --quiet");
        let text = throng(&run).ended_with(1);
        let first = text.lines().next().unwrap();
        assert!(first.contains("HTTP 404 at /dns-query, "), "{text}");
        assert!(text.contains("\n  try        give the path"), "{text}");
        assert!(text.contains("--doh-path /"), "{text}");
        throng(&format!("{run} --doh-path /other")).succeeded();
    }
}

#[test]
fn a_run_that_is_in_vain_ends_after_a_look_at_its_first_queries() {
    let folder = Folder::new("in-vain");
    let names = folder.write("names.txt", "a.example A\n");
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let silent = silent.local_addr().unwrap();
    let http = Responder::start("doh2+http:127.0.0.1:0", "--http-statuses 404=1");
    let flags = format!("--names {names} --format json --quiet --timeout 100ms");
    for server in [
        format!("--server {silent} --rate 2k"),
        format!("-t doh2 --server http://{}/dns-query", http.address()),
    ] {
        let run = format!("run {flags} {server}");
        let stdout = throng(&format!("{run} --duration 40s")).ended_with(1);
        let record = RunRecord::from_json(&stdout).unwrap();
        assert_eq!(record.ended_by, EndedBy::TargetGone, "{server}");
        assert!(record.measured_seconds() < 30.0, "{server}");
        let in_parts = format!("{run} --duration 40s --agents 2 --clients 4");
        let in_parts = RunRecord::from_json(&throng(&in_parts).ended_with(1)).unwrap();
        assert_eq!(in_parts.ended_by, EndedBy::TargetGone, "{server}");
        let warnings = record.warnings.join("\n");
        assert!(
            warnings.contains("--no-preflight lets it go on"),
            "{warnings}"
        );
        let stdout = throng(&format!("{run} --duration 1s --no-preflight")).ended_with(1);
        let record = RunRecord::from_json(&stdout).unwrap();
        assert_eq!(record.ended_by, EndedBy::Duration, "{server}");
    }
}

/// True if the process handles SIGTERM.
fn handles_termination(child: &Child) -> bool {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
    let of = |name: &str| {
        let value = status.lines().find_map(|line| line.strip_prefix(name));
        value.map_or("0", str::trim)
    };
    let caught = u64::from_str_radix(of("SigCgt:"), 16).unwrap_or(0);
    // SIGTERM is 15, and bit 0 is signal 1. Signals are lost until all handlers are there; then the
    // thread is started that waits for them.
    caught & 1 << 14 != 0 && of("Threads:") != "1"
}

/// True once the process has used half a second of CPU time: it has begun with what it is for.
fn is_at_work(child: &Child) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap_or_default();
    // Behind the name, which is in parentheses, user and system time are numbers 12 and 13.
    let numbers = stat.rsplit(')').next().unwrap_or_default();
    let ticks = numbers.split_whitespace().skip(11).take(2);
    ticks.filter_map(|it| it.parse::<u64>().ok()).sum::<u64>() >= 50
}

#[test]
fn a_simulation_ends_when_it_is_told_to() {
    let mut command = Command::new(THRONG);
    command.args("run --quiet --format json --driver sim --rate 100k".split(' '));
    command.args(["--duration", "240h"]).stdin(Stdio::null());
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    wait::until_child(&mut child, "the simulation", is_at_work);
    signal(&child, "TERM");
    let mut stdout = String::new();
    let mut pipe = child.stdout.take().unwrap();
    pipe.read_to_string(&mut stdout).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(143));
    let record = RunRecord::from_json(&stdout).unwrap();
    assert_eq!(record.ended_by, EndedBy::Interrupted);
    assert_eq!(record.check(), Ok(()));
}

#[test]
fn a_signal_ends_at_once_what_prepares_a_run() {
    let folder = Folder::new("preparing");
    // Nobody ever writes to it: it is waited for.
    let names = folder.path("names");
    execute(&format!("mkfifo {names}")).succeeded();
    for command in ["run --driver sim", "run", "capacity"] {
        let mut process = Command::new(THRONG);
        process.args(command.split(' ')).args(["--names", &names]);
        process.stdin(Stdio::null()).stdout(Stdio::null());
        let mut child = process.stderr(Stdio::piped()).spawn().unwrap();
        let what = format!("{command} to handle SIGTERM");
        wait::until_child(&mut child, &what, handles_termination);
        signal(&child, "TERM");
        let mut stderr = String::new();
        let mut pipe = child.stderr.take().unwrap();
        pipe.read_to_string(&mut stderr).unwrap();
        assert_eq!(
            child.wait().unwrap().code(),
            Some(143),
            "{command}: {stderr}"
        );
    }
}

#[test]
fn what_may_be_a_secret_is_sent_and_neither_recorded_nor_shown() {
    let folder = Folder::new("secret-fields");
    let names = folder.write("names.txt", "a.example A\n");
    let fields = folder.write(
        "fields.txt",
        "authorization: Bearer s3cret\nuser-agent: shown\n",
    );
    let responder = Responder::start("doh2+http:127.0.0.1:0", "");
    let run = format!(
        "run -t doh2 --server http://{}/dns-query --names {names} --queries 5 \
         --doh-header @{fields}",
        responder.address()
    );
    let record = throng(&format!("{run} --format json")).succeeded();
    let text = throng(&format!("{run} --details")).succeeded();
    for shown in [&record, &text] {
        assert!(!shown.contains("s3cret"), "{shown}");
        assert!(shown.contains("user-agent: shown"), "{shown}");
        assert!(shown.contains("authorization: (not recorded)"), "{shown}");
    }
    let wrong = folder.write("wrong.txt", "user-agent: shown\n\ns3cret\n");
    throng(&run.replace(&fields, &wrong)).refused_with("line 3 of", "NAME: VALUE");
}

#[test]
fn characters_that_control_a_terminal_are_shown_and_not_sent_to_it() {
    let folder = Folder::new("controls");
    let record = folder.path("record.json");
    let hidden = "\u{202e}\u{2066}\u{200f}\u{61c}\u{200b}\u{e0041}";
    let label = format!("by=\u{1b}]0;owned\u{7}\u{9b}31m{hidden}");
    let run = format!("run --quiet --driver sim --rate 100 --duration 100ms --label {label}");
    throng(&format!("{run} --record {record}")).succeeded();
    for format in ["text", "text --details", "markdown", "csv", "json"] {
        let shown = throng(&format!("report {record} --format {format}")).succeeded();
        // The line ends of CSV are these two together.
        let lines = shown.replace("\r\n", "\n");
        let control = lines
            .chars()
            .find(|it| (it.is_control() && !"\n\t".contains(*it)) || hidden.contains(*it));
        assert_eq!(control, None, "{format}: {shown}");
    }
    let shown = throng(&format!("report {record} --details")).succeeded();
    let visible = "\\u001b]0;owned\\u0007\\u009b31m\\u202e\\u2066\\u200f\\u061c";
    assert!(shown.contains(visible), "{shown}");
    let page = throng(&format!("report {record} --format html")).succeeded();
    assert!(page.contains(visible) && !page.contains(|it| hidden.contains(it)));
}

/// glibc prints this, and aborts, when a thread's first thread-local value finds no memory.
const NO_MEMORY_OF_A_THREAD: &str = "Fatal glibc error: failed to register TLS destructor";

#[test]
fn what_the_system_does_not_allow_is_an_error_with_its_cure() {
    for (limit, flags, code, error, hint) in [
        (
            "-v 100000",
            "--workers 100 --clients 200 --outstanding 200",
            1,
            "error: the system ",
            "`ulimit -v`",
        ),
        (
            "-n 64",
            "--clients 100 --transport tcp",
            2,
            "error: 100 clients need 232 open files in a process, and the limit here is 64",
            "`ulimit -n 232`",
        ),
    ] {
        let line = format!("ulimit {limit}; {THRONG} run --quiet --duration 100ms {flags}");
        let output = Command::new("sh").args(["-c", &line]).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        if stderr.contains(NO_MEMORY_OF_A_THREAD) {
            // The C library ends the process then; the error may have been printed before.
            let ended = output.status.code();
            assert!(
                [Some(code), Some(134)].contains(&ended),
                "{limit}: {stderr}"
            );
            continue;
        }
        assert_eq!(output.status.code(), Some(code), "{limit}: {stderr}");
        assert!(stderr.starts_with(error), "{limit}: {stderr}");
        assert!(stderr.contains(hint), "{limit}: {stderr}");
        // A thread that is not started and one that asks for memory may both say it.
        let is_told = |line: &str| line.starts_with("error: ") || line.starts_with("hint: ");
        assert!(stderr.lines().all(is_told), "{limit}: {stderr}");
    }
}

#[test]
fn a_process_without_memory_says_so_whatever_it_does() {
    // With less, the kernel ends what it cannot map (execve(2)).
    for limit in (50_000..110_000).step_by(5_000) {
        let run = "run --quiet --duration 100ms --clients 20 --transport dot --rate 1k";
        let line = format!("ulimit -v {limit}; exec {THRONG} {run}");
        let output = Command::new("sh").args(["-c", &line]).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        let code = output.status.code();
        // 127: what loads the binary has no memory for its libraries; 2: the handshake has none.
        assert!(
            code.is_some_and(|code| [0, 1, 2, 127].contains(&code)),
            "{limit}: {code:?} {stderr}"
        );
        assert!(
            !stderr.contains("panicked") && !stderr.contains("Aborted"),
            "{limit}: {stderr}"
        );
    }
}

const SECRET: &str = "cGxhbnRlZC1zZWNyZXQ=";

/// All files below a folder, and what they hold.
fn files_below(folder: &std::path::Path, texts: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        match entry.path() {
            path if path.is_dir() => files_below(&path, texts),
            path => {
                let octets = fs::read(&path).unwrap();
                let text = String::from_utf8_lossy(&octets).into_owned();
                texts.push((path.display().to_string(), text));
            }
        }
    }
}

/// A command and what it showed.
fn shown(finished: Finished) -> (String, String) {
    (finished.line, finished.stdout + &finished.stderr)
}

/// What runs show, reports on them, comparisons and experiments.
fn shown_by_runs(run: &str, record: &str, folder: &Folder) -> Vec<(String, String)> {
    let mut all = Vec::new();
    let junit = folder.path("junit.xml");
    let checked = format!("{run} --record {record} --require p99<60s --junit {junit}");
    all.push(shown(throng(&checked)));
    assert_eq!(read(record).total.counts.responses, 20);
    for format in ["json", "csv"] {
        all.push(shown(throng(&format!("{run} --format {format}"))));
    }
    for format in ["text", "html", "markdown", "csv", "json", "dns-metrics"] {
        all.push(shown(throng(&format!("report {record} --format {format}"))));
    }
    all.push(shown(throng(&format!("{run} --agents 2 --clients 4"))));
    let records = folder.path("compared");
    let mut compare = Command::new(THRONG);
    compare.args(["compare", "--a", run, "--b", run, "--repeat", "2"]);
    let compared = compare.args(["--records", &records]).output().unwrap();
    all.push(shown(Finished::new("compare", compared)));
    for side in ["a", "b"] {
        let record = read(&format!("{records}/{side}/2.json"));
        let algorithm = record.scenario.tsig_algorithm.as_deref();
        assert_eq!(algorithm, Some("hmac-sha256"));
    }
    all
}

/// An experiment with a key in its file.
fn experiment(inputs: &Folder, server: &str, names: &str) -> String {
    let text = format!(
        "name = \"planted\"\nrepetitions = 1\n[run]\ntransport = \"doh2\"\n\
         server = \"{server}\"\nnames = \"{names}\"\nqueries = 20\n\
         tsig = \"k:{SECRET}\"\n"
    );
    inputs.write("experiment.toml", text)
}

/// What cannot be used is not repeated.
fn shown_by_errors(server: &str, names: &str) -> Vec<(String, String)> {
    let flags = [
        format!("--server https://u:{SECRET}@127.0.0.1/q -t doh2"),
        format!("--server https://{SECRET}@127.0.0.1/q"),
        format!("--doh-header {SECRET} -t doh2 --server {server}"),
        format!("--tsig {SECRET}:k:hmac-sha256"),
        format!("--tsig {SECRET}"),
        format!("--tsig hmac-sha256:{SECRET}..a:k"),
        format!("--doh-authority u:{SECRET}@h -t doh2 --server {server}"),
    ];
    let refused = flags.map(|flags| {
        let finished = throng(&format!("run --quiet --names {names} {flags}"));
        assert_eq!(finished.code, Some(2), "{}", finished.stderr);
        shown(finished)
    });
    refused.into()
}

#[test]
fn no_output_has_what_was_given_as_a_secret() {
    let (folder, inputs) = (Folder::new("planted"), Folder::new("planted-inputs"));
    let names = inputs.write("names.txt", "a.example A\n");
    let fields = inputs.write("fields.txt", format!("authorization: Bearer {SECRET}\n"));
    let responder = Responder::start("doh2+http:127.0.0.1:0", "");
    let server = format!("http://{}/dns-query?key={SECRET}", responder.address());
    let run = format!(
        "run -t doh2 --server {server} --names {names} --queries 20 --tsig k:{SECRET} \
         --doh-header x-key:{SECRET} --doh-header @{fields}"
    );
    let mut all = shown_by_runs(&run, &folder.path("record.json"), &folder);
    let (experiment, output) = (experiment(&inputs, &server, &names), folder.path("made"));
    all.push(shown(throng(&format!("experiment plan {experiment}"))));
    let made = throng(&format!("experiment run {experiment} --output {output}"));
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    all.push(shown(made));
    all.extend(shown_by_errors(&server, &names));
    for tool in [
        format!("dnsperf -s 127.0.0.1 -p 1 -d {names} -n 1 -t 0.1 -y k:{SECRET}"),
        format!("dnsperf -m doh -O doh-uri=https://u:{SECRET}@127.0.0.1/ -d {names} -n 1"),
        format!("resperf -s 127.0.0.1 -p 1 -d {names} -r 1 -c 0 -m 10 -y k:{SECRET}"),
    ] {
        all.push(shown(throng(&tool)));
    }
    files_below(folder.folder(), &mut all);
    // The file of an experiment is kept as it is, for its owner alone.
    let copy = format!("{output}/experiment.toml");
    for (what, text) in all {
        assert!(what == copy || !text.contains(SECRET), "{what}:\n{text}");
    }
    assert_eq!(fs::metadata(copy).unwrap().mode() & 0o777, 0o600);
}
