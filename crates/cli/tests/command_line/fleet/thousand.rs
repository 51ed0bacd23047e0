//! A thousand agents of one lead. One of them is there; whatever it says of its run is said by all,
//! each over a connection of its own.

use std::fs;
use std::io::{BufReader, Write};
use std::net::SocketAddr;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use lab::parts::{Hello, Join, Joined, KeyFiles, Side, Ways, hash, join, read_keys, wire};
use measure::RunRecord;

use super::pieces::{Fleet, Made, until};
use crate::process::{THRONG, execute};

const AGENTS: usize = 1_000;
/// Those that dial at once.
const DIAL: usize = 8;
/// Files that lead and test have open for each agent, and some more.
const FILES: u64 = 4 * AGENTS as u64;

/// Says something to the lead.
type Say = Mutex<Box<dyn Write + Send>>;

/// The agent that is there.
struct Part {
    child: Child,
    to: Mutex<ChildStdin>,
}

impl Drop for Part {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn dial(lead: SocketAddr, keys: &KeyFiles, binary: &str) -> Vec<Ways> {
    let seats = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for first in 0..DIAL {
            let seats = &seats;
            scope.spawn(move || {
                for index in (first..AGENTS).step_by(DIAL) {
                    let own = Join {
                        index: u32::try_from(index).unwrap(),
                        name: format!("replayed-{}", index + 1),
                        hello: Hello::of_this(binary.to_owned()),
                    };
                    let Joined::Seated(ways) = join(&lead.to_string(), keys, &own).unwrap() else {
                        panic!("agent {index} was refused");
                    };
                    seats.lock().unwrap().push((index, ways));
                }
            });
        }
    });
    let mut seats = seats.into_inner().unwrap();
    seats.sort_by_key(|it| it.0);
    seats.into_iter().map(|it| it.1).collect()
}

/// What the lead says: the one that is there hears all, the others say what their clocks show.
fn hear(mut from: impl std::io::Read, say: &Say, part: Option<&Part>, epoch: Instant) {
    while let Ok(Some(message)) = wire::read(&mut from) {
        if let Some(part) = part {
            // It ends first.
            let _ = wire::write(&mut *part.to.lock().unwrap(), &message.word, &message.about);
        } else if message.word == "clock" {
            let asked = String::from_utf8(message.about).unwrap();
            let answer = format!("{asked} {}", epoch.elapsed().as_nanos());
            let _ = wire::write(&mut *say.lock().unwrap(), "clock", answer.as_bytes());
        }
    }
}

/// Has all agents say what the one says, until it has told its record; when that was said, and it.
fn repeat(from: impl std::io::Read, says: &[Say]) -> (Instant, RunRecord) {
    let mut from = BufReader::new(from);
    loop {
        let message = wire::read(&mut from).unwrap().unwrap();
        let (word, about) = (message.word.as_str(), message.about.as_slice());
        let mut octets = Vec::new();
        wire::write_far(&mut octets, word, about).unwrap();
        let those = match word {
            "hello" => &says[..0],
            // What a file holds is asked for once.
            "clock" | "want" => &says[..1],
            _ => says,
        };
        for say in those {
            say.lock().unwrap().write_all(&octets).unwrap();
        }
        assert_ne!(word, "failed", "{}", String::from_utf8_lossy(about));
        if word == "record" {
            let said_at = Instant::now();
            let text = std::str::from_utf8(about).unwrap();
            return (said_at, RunRecord::from_json(text).unwrap());
        }
    }
}

/// Seconds of CPU that a process has used, and the most memory that it has had, in MiB.
fn used(pid: u32) -> (f64, u64) {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, fields) = stat.rsplit_once(") ").unwrap();
    let ticks = fields.split(' ').skip(11).take(2);
    let ticks: u64 = ticks.map(|it| it.parse::<u64>().unwrap()).sum();
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let most = status.lines().find_map(|it| it.strip_prefix("VmHWM:"));
    let most = most.unwrap().split_whitespace().next().unwrap();
    let most: u64 = most.parse().unwrap();
    let a_second = execute("getconf CLK_TCK").succeeded();
    let a_second: f64 = a_second.trim().parse().unwrap();
    (ticks as f64 / a_second, most >> 10)
}

#[test]
fn a_thousand_agents_have_one_record() {
    if driver::cpu::open_files_max() < FILES {
        eprintln!("not tried: it needs {FILES} open files");
        return;
    }
    let made = Made {
        expected: Some(AGENTS),
        ..Made::default()
    };
    let fleet = Fleet::with("thousand", &made);
    let keys = read_keys(fleet.folder.folder().join("keys").as_path(), Side::Agent).unwrap();
    let binary = hash(&fs::read(THRONG).unwrap());
    let seats = dial(fleet.listens, &keys, &binary);
    let mut command = Command::new(THRONG);
    command
        .args(["part", "0/1000", "hello"])
        .stdin(Stdio::piped());
    command.current_dir(fleet.folder.folder());
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let (to, from) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let to = Mutex::new(to);
    let part = Arc::new(Part { child, to });
    let (epoch, mut says, mut listens) = (Instant::now(), Vec::new(), Vec::new());
    for Ways { from, to, .. } in seats {
        says.push(Mutex::new(Box::new(to) as Box<dyn Write + Send>));
        listens.push(from);
    }
    let path = fleet.folder.path("record.json");
    let mut run = fleet.run(&format!(
        "--quiet --clients 1000 --workers 1000 --rate 100k --duration 10s --interval 1s \
         --timeout 20s --record {path}"
    ));
    let own = thread::scope(|scope| {
        for (index, (from, say)) in listens.into_iter().zip(&says).enumerate() {
            let part = (index == 0).then_some(&*part);
            scope.spawn(move || hear(from, say, part, epoch));
        }
        let before = used(fleet.lead.child.id());
        let (said_at, own) = repeat(from, &says);
        let (code, stdout, stderr) = run.ended();
        assert_eq!(code, Some(0), "{stderr}\n{stdout}");
        report(said_at.elapsed(), (before, used(fleet.lead.child.id())));
        // Connections end with it, and who listens to them.
        let (code, _, stderr) = fleet.ask("fleet end").ended();
        assert_eq!(code, Some(0), "{stderr}");
        own
    });
    let record = RunRecord::from_json(&fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!((record.generators, record.agents.len()), (1_000, AGENTS));
    let (own, all) = (&own.total.counts, &record.total.counts);
    assert!(own.sent > 500, "{own:?}");
    assert_eq!(all.offered, 1_000 * own.offered);
    assert_eq!(all.sent, 1_000 * own.sent);
    assert_eq!(all.responses, 1_000 * own.responses);
    assert_eq!(record.check(), Ok(()));
    until("the lead ends", || {
        fs::read_to_string(format!("/proc/{}/stat", fleet.lead.child.id()))
            .is_ok_and(|stat| stat.contains(") Z "))
    });
}

fn report(late: Duration, (before, after): ((f64, u64), (f64, u64))) {
    println!(
        "a thousand agents: the lead used {:.1} s of CPU from `setup` to the record, {} MiB at \
         most; the record was there {:.2} s after the last message",
        after.0 - before.0,
        after.1,
        late.as_secs_f64()
    );
}
