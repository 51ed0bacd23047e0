//! `--tui` in a pseudo-terminal: what it shows, its keys, and that the terminal is afterwards as it
//! was before.

use std::fs;
use std::io::{Read, Write};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};

use measure::RunRecord;
use measure::record::EndedBy;
use testing::folder::Folder;
use testing::program::{Running, execute};
use testing::wait;

use crate::process::{THRONG, throng};

const COLUMNS: usize = 100;
const ROWS: usize = 30;
/// A run that would take a minute.
const LONG: &str = "run --rate 200 --interval 50ms --duration 60s";

/// A terminal with one command, after which it holds how the terminal was set before and after.
struct Terminal {
    folder: Folder,
    script: Running,
    keyboard: ChildStdin,
    output: ChildStdout,
    seen: Vec<u8>,
}

impl Terminal {
    /// Runs `throng` with `flags` in a shell, by `env` with those of its own.
    fn start(name: &str, of_env: &str, flags: &str) -> Terminal {
        let folder = Folder::new(name);
        let place = folder.path("");
        let line = format!("exec env {of_env} {THRONG} {flags}");
        let lines = format!(
            "stty rows {ROWS} cols {COLUMNS}\ncd {place}\ntty >tty\nstty -a >before\n\
             sh -c 'echo $$ >pid; {line}' >result\necho $? >code\nstty -a >after\n"
        );
        let lines = folder.write("run.sh", lines);
        let mut command = Command::new("script");
        command.args(["--quiet", "--command", &format!("sh {lines}"), "/dev/null"]);
        command.env("TERM", "xterm").env_remove("NO_COLOR");
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut script = Running(command.spawn().unwrap());
        Terminal {
            keyboard: script.stdin.take().unwrap(),
            output: script.stdout.take().unwrap(),
            folder,
            script,
            seen: Vec::new(),
        }
    }

    fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    /// Reads until the screen shows all of these.
    fn wait_for(&mut self, parts: &[&str]) {
        let mut bytes = [0; 4_096];
        loop {
            let screen = screen(&self.seen);
            if parts.iter().all(|part| screen.contains(part)) {
                return;
            }
            let read = self.output.read(&mut bytes).unwrap();
            assert!(read > 0, "no {parts:?} in\n{screen}\n{}", self.text());
            self.seen.extend_from_slice(&bytes[..read]);
        }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.seen).into_owned()
    }

    fn file(&self, name: &str) -> String {
        fs::read_to_string(self.folder.path(name)).unwrap()
    }

    /// Waits for the end; the exit code of the command. The terminal is set as before.
    fn end(&mut self) -> String {
        self.output.read_to_end(&mut self.seen).unwrap();
        self.script.wait().unwrap();
        assert_eq!(self.file("before"), self.file("after"));
        let text = self.text();
        let [entered, left] = ["\x1b[?1049h", "\x1b[?1049l"].map(|it| text.rfind(it));
        assert!(entered <= left, "{text:?}");
        self.file("code").trim().to_owned()
    }
}

/// What a terminal shows after these bytes.
fn screen(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut cells = vec![vec![' '; COLUMNS]; ROWS];
    let (mut row, mut column) = (0, 0);
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\x1b' => {
                let sequence: String = { letters.by_ref() }
                    .skip(1)
                    .take_while(|it| {
                        let is_last = it.is_ascii_alphabetic();
                        if is_last && *it == 'J' {
                            cells.iter_mut().for_each(|row| row.fill(' '));
                        }
                        !is_last
                    })
                    .collect();
                if let Some((y, x)) = sequence.split_once(';')
                    && let (Ok(y), Ok(x)) = (y.parse::<usize>(), x.parse::<usize>())
                    && y > 0
                {
                    (row, column) = (y - 1, x - 1);
                }
            }
            '\r' => column = 0,
            '\n' => row = (row + 1).min(ROWS - 1),
            _ => {
                if let Some(cell) = cells.get_mut(row).and_then(|row| row.get_mut(column)) {
                    *cell = letter;
                }
                column += 1;
            }
        }
    }
    let rows = cells.into_iter().map(String::from_iter);
    rows.collect::<Vec<String>>().join("\n")
}

#[test]
fn screen_shows_the_run_and_q_ends_it_with_its_result() {
    let mut terminal = Terminal::start("tui", "", &format!("{LONG} --tui"));
    terminal.wait_for(&["throng run", "udp", "responses", " qps", "NOERROR 100 %"]);
    terminal.press("?");
    terminal.wait_for(&["freeze the screen"]);
    terminal.press("5");
    terminal.wait_for(&["verdict"]);
    // A terminal that changes its size is drawn anew.
    let clears = |it: &Terminal| it.text().matches("\x1b[2J").count();
    let before = clears(&terminal);
    let tty = terminal.file("tty");
    execute(&format!("stty -F {} rows 25 cols 60", tty.trim())).succeeded();
    terminal.press("1");
    while clears(&terminal) == before {
        let mut bytes = [0; 4_096];
        let read = terminal.output.read(&mut bytes).unwrap();
        assert!(read > 0, "{}", terminal.text());
        terminal.seen.extend_from_slice(&bytes[..read]);
    }
    execute(&format!(
        "stty -F {} rows {ROWS} cols {COLUMNS}",
        tty.trim()
    ))
    .succeeded();
    terminal.press("\x06");
    terminal.wait_for(&["FROZEN"]);
    terminal.press("\x06q");
    assert_eq!(terminal.end(), "130");
    let result = terminal.file("result");
    assert!(result.contains("interrupted"), "{result}");
    assert!(!result.contains('\x1b'), "{result:?}");
    // What was said meanwhile follows the screen.
    let text = terminal.text();
    let after = text.rsplit_once("\x1b[?1049l").unwrap().1;
    assert!(after.contains("ending the run"), "{after:?}");
    assert!(text.contains("\x1b[0;36m"), "{text:?}");
}

#[test]
fn each_agent_of_a_run_has_a_row() {
    let mut terminal = Terminal::start("tui-agents", "", &format!("{LONG} --agents 2 --tui"));
    terminal.wait_for(&["throng run", " qps"]);
    terminal.press("4");
    terminal.wait_for(&["2 agents: 2 at work", "0  this host", "1  this host"]);
    terminal.press("q");
    assert_eq!(terminal.end(), "130");
    let result = terminal.file("result");
    assert!(result.contains("interrupted"), "{result}");
}

#[test]
fn comparison_shows_which_side_runs_and_how_far_all_runs_are() {
    let side = "--rate 200 --interval 50ms --duration";
    let sides = format!("compare --repeat 1 --a \"{side} 1s\" --b \"{side} 60s\"");
    for (name, flag, seen) in [
        ("tui-compare", "--tui", ["2/2  B 1", "all runs", "1: A 1"]),
        ("bar-compare", "", ["run 2/2", " left", " qps"]),
    ] {
        let mut terminal = Terminal::start(name, "", &format!("{sides} {flag}"));
        terminal.wait_for(&seen);
        let pid = terminal.file("pid");
        execute(&format!("kill -TERM {}", pid.trim())).succeeded();
        assert_eq!(terminal.end(), "143");
    }
}

#[test]
fn no_color_leaves_colours_out() {
    let flags = "run --rate 200 --interval 50ms --duration 500ms";
    for (name, flag) in [("tui-plain", "--tui"), ("bar-plain", "")] {
        let mut terminal = Terminal::start(name, "NO_COLOR=1", &format!("{flags} {flag}"));
        assert_eq!(terminal.end(), "0");
        let text = terminal.text();
        assert!(text.contains(" qps"), "{text:?}");
        for color in 31..=36 {
            assert!(!text.contains(&format!("{color}m")), "{text:?}");
        }
    }
}

#[test]
fn terminal_is_restored_after_sigterm_and_at_the_end_of_other_commands() {
    let mut terminal = Terminal::start("tui-term", "", &format!("{LONG} --tui"));
    terminal.wait_for(&[" qps"]);
    let pid = terminal.file("pid");
    execute(&format!("kill -TERM {}", pid.trim())).succeeded();
    assert_eq!(terminal.end(), "143");
    let ramp = "ramp --to 400 --over 600ms --sustain 200ms --tui";
    let mut terminal = Terminal::start("tui-ramp", "", ramp);
    assert_eq!(terminal.end(), "0");
    assert!(!terminal.file("result").is_empty());
    assert!(
        terminal.text().contains("throng ramp"),
        "{}",
        terminal.text()
    );
}

#[test]
fn closed_terminal_ends_the_run_with_its_record() {
    let flags = format!("{LONG} --tui --record record.json");
    let mut terminal = Terminal::start("tui-closed", "--default-signal=HUP", &flags);
    terminal.wait_for(&[" qps"]);
    let record = terminal.folder.path("record.json");
    terminal.script.kill().unwrap();
    wait::for_file(&record);
    let record = RunRecord::from_json(&fs::read_to_string(&record).unwrap()).unwrap();
    assert_eq!(record.ended_by, EndedBy::Interrupted);
}

/// As under nohup: the run goes on without its screen, whose thread does not wait for keys in a
/// loop that never ends.
#[test]
fn closed_terminal_ends_the_screen_alone_where_sighup_is_ignored() {
    let flags = format!("{LONG} --tui --record record.json");
    let mut terminal = Terminal::start("tui-nohup", "--ignore-signal=HUP", &flags);
    terminal.wait_for(&[" qps"]);
    let pid = terminal.file("pid").trim().to_owned();
    let threads = || {
        let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
        let names = tasks.map(|it| fs::read_to_string(it.unwrap().path().join("comm")));
        names.filter_map(Result::ok).collect::<Vec<String>>()
    };
    let has_screen = || threads().iter().any(|name| name.trim() == "tui");
    assert!(has_screen());
    terminal.script.kill().unwrap();
    wait::until("the thread of the screen ends", || !has_screen());
    execute(&format!("kill -TERM {pid}")).succeeded();
    let record = terminal.folder.path("record.json");
    wait::for_file(&record);
    let record = RunRecord::from_json(&fs::read_to_string(&record).unwrap()).unwrap();
    assert_eq!(record.ended_by, EndedBy::Interrupted);
}

#[test]
fn without_a_terminal_there_are_lines_and_one_note() {
    let finished = throng("run --rate 1000 --duration 300ms --interval 100ms --tui");
    let notes = finished
        .stderr
        .matches("note: --tui needs a terminal")
        .count();
    assert_eq!(notes, 1, "{}", finished.stderr);
    assert!(finished.stderr.contains(" s  sent "), "{}", finished.stderr);
    assert!(!finished.stderr.contains('\x1b'), "{:?}", finished.stderr);
    finished.succeeded();
}
