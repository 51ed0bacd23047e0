//! One run with its fault: who is asked, where it runs, what happens meanwhile, and how it ended.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use lab::target::Namespace;
use proto::Transport;
use testing::folder::Folder;
use testing::ports::ClosedUdpPort;
use testing::quiet::run_queue_wait;
use testing::wait;

use super::fault::{Do, Fault, Target, When};
use super::hostile::Hostile;
use super::left::{self, MARK};
use crate::process::{Responder, THRONG};

/// A run that has not reported for so long is killed, and fails.
const PATIENCE: Duration = Duration::from_secs(60);
/// Where the responder of [`Target::Far`] is.
const FAR: Ipv4Addr = Ipv4Addr::new(10, 79, 0, 2);

/// What all runs have unless a row says otherwise: the flag with its value, and the flags that
/// speak against it.
const FLAGS: [(&str, &[&str]); 8] = [
    ("--names $IN/names.txt", &["--names", "--random-labels"]),
    ("--record $OUT/record.json", &["--record"]),
    ("--rate 500", &["--rate", "--outstanding", "--script"]),
    ("--duration 1100ms", &["--duration", "--queries"]),
    ("--interval 100ms", &["--interval"]),
    ("--timeout 2s", &["--timeout"]),
    ("--clients 4", &["--clients"]),
    ("--workers 1", &["--workers", "--agents"]),
];

/// Whoever is asked, until dropped.
enum Asked {
    Responder(Option<Responder>),
    Hostile(Hostile),
    Nobody { _held: ClosedUdpPort },
    BuiltIn,
}

/// Where the run is and whom it asks.
pub(crate) struct Stage {
    fault: &'static Fault,
    /// By this the row's duration is multiplied.
    times: u32,
    transport: Transport,
    folder: Folder,
    near: Option<Namespace>,
    far: Option<Namespace>,
    asked: Asked,
    server: Option<SocketAddr>,
}

/// How a run ended.
pub(crate) struct Ended {
    /// The number of the signal, negative, if one ended it.
    pub(crate) code: i32,
    /// Standard error, then standard output.
    pub(crate) said: String,
    /// Deeds that it did not live to see.
    pub(crate) undone: usize,
    /// Lines of progress that were read after the last deed was done; none without deeds.
    pub(crate) shown_after: Option<usize>,
    pub(crate) took: Duration,
    pub(crate) waited: Waited,
}

/// Run-queue wait until the last line of progress.
#[derive(Clone, Copy, Default)]
pub(crate) struct Waited {
    pub(crate) run: Duration,
    pub(crate) target: Duration,
    /// Of this process, which does the deeds; to the end.
    pub(crate) test: Duration,
}

/// What comes from the run.
pub(crate) enum Event {
    /// A line of standard error, and when it was read.
    Line(String, Instant),
    Printed(String),
    /// Standard error is closed.
    Silent,
    Ended(ExitStatus),
    /// The peer has met another connection or datagram.
    Met,
}

/// An address that no other run of this host listens at, most likely.
fn address() -> Ipv4Addr {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let number = NEXT.fetch_add(1, Ordering::SeqCst);
    let octet = |number: usize| u8::try_from(number % 250 + 1).unwrap();
    let process = std::process::id() as usize;
    Ipv4Addr::new(127, octet(process), octet(number / 250), octet(number))
}

/// The first CPU that may be used.
fn first_cpu() -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let mut lines = status.lines();
    let list = lines.find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let is_digit = |it: &char| it.is_ascii_digit();
    list.unwrap().trim().chars().take_while(is_digit).collect()
}

fn execute_in(namespace: &Namespace, line: &str) {
    let mut words = line.split(' ');
    let mut command = namespace.command(words.next().unwrap());
    let output = command.args(words).output().unwrap();
    assert!(output.status.success(), "{line}: {output:?}");
}

/// Two network namespaces, and a wire from the interface `near` to the interface `far`.
fn wire() -> (Namespace, Namespace) {
    let (near, far) = (Namespace::new().unwrap(), Namespace::new().unwrap());
    let pair = format!("type veth peer name far netns {}", far.id());
    execute_in(&near, &format!("ip link add near {pair}"));
    for (end, name, host) in [(&near, "near", 1), (&far, "far", 2)] {
        execute_in(end, "ip link set lo up");
        execute_in(end, &format!("ip addr add 10.79.0.{host}/24 dev {name}"));
        execute_in(end, &format!("ip link set {name} up"));
    }
    (near, far)
}

impl Stage {
    pub(crate) fn set(fault: &'static Fault, transport: Transport, times: u32) -> Stage {
        let name = fault
            .name
            .replace(|it: char| !it.is_ascii_alphanumeric(), "-");
        let folder = Folder::new(&format!("fault-{name}-{transport}"));
        for inner in ["in", "out", "tmp"] {
            fs::create_dir(folder.path(inner)).unwrap();
        }
        folder.write("in/names.txt", "a.example A\nb.example AAAA\n");
        let (near, far) = match fault.target {
            Target::Far(_) => {
                let (near, far) = wire();
                (Some(near), Some(far))
            }
            Target::BuiltIn { alone: true } => (Some(Namespace::new().unwrap()), None),
            _ => (None, None),
        };
        let mut stage = Stage {
            fault,
            times,
            transport,
            folder,
            near,
            far,
            asked: Asked::BuiltIn,
            server: None,
        };
        if !fault.before.is_empty() {
            stage.shell(fault.before, None);
        }
        stage.ask();
        stage
    }

    /// Has somebody who can be asked.
    fn ask(&mut self) {
        match self.fault.target {
            Target::Responder(_) | Target::Speaks(_) => self.start(address(), 0),
            Target::Far(_) => self.start(FAR, 0),
            Target::Hostile(peer) => {
                let hostile = Hostile::start(peer, address(), self.transport);
                self.server = Some(hostile.address);
                self.asked = Asked::Hostile(hostile);
            }
            Target::Nobody => {
                let port = ClosedUdpPort::new();
                self.server = Some(port.address());
                self.asked = Asked::Nobody { _held: port };
            }
            Target::BuiltIn { .. } => {}
        }
    }

    /// Starts the responder.
    fn start(&mut self, address: Ipv4Addr, port: u16) {
        let (transport, flags) = match self.fault.target {
            Target::Speaks(transport) => (transport, ""),
            Target::Responder(flags) | Target::Far(flags) => (self.transport, flags),
            _ => (self.transport, ""),
        };
        let listen = format!("{transport}:{address}:{port}");
        let command = match &self.far {
            Some(far) => far.command(THRONG),
            None => Command::new(THRONG),
        };
        let responder = Responder::start_by(command, &listen, &self.filled(flags));
        self.server = Some(responder.address());
        self.asked = Asked::Responder(Some(responder));
    }

    fn inner(&self, name: &str) -> PathBuf {
        self.folder.folder().join(name)
    }

    pub(crate) fn outputs(&self) -> PathBuf {
        self.inner("out")
    }

    pub(crate) fn temporary(&self) -> PathBuf {
        self.inner("tmp")
    }

    /// Its mark, in the environment of the run.
    pub(crate) fn mark(&self) -> String {
        self.folder.folder().display().to_string()
    }

    /// True if its target listens for TCP.
    pub(crate) fn is_stream(&self) -> bool {
        match self.fault.target {
            Target::Speaks(transport) => transport.is_stream(),
            _ => self.transport.is_stream(),
        }
    }

    /// The words with their names filled in.
    fn filled(&self, text: &str) -> String {
        let server = self.server.map_or_else(String::new, |it| it.to_string());
        let port = self.server.map_or(0, |it| it.port()).to_string();
        text.replace("$IN", &self.folder.path("in"))
            .replace("$OUT", &self.folder.path("out"))
            .replace("$SERVER", &server)
            .replace("$PORT", &port)
            .replace("$T", self.transport.name())
    }

    /// Everything after the binary's name.
    fn arguments(&self) -> Vec<String> {
        let Fault { command, flags, .. } = self.fault;
        let mut line = match command.is_empty() {
            true => format!("run --details --transport $T {flags}"),
            false => format!("{command} {flags}"),
        };
        if command.is_empty() {
            let has = |name: &&str| flags.split(' ').any(|flag| flag == *name);
            for (flag, against) in FLAGS {
                if !against.iter().any(has) {
                    line.push_str(&format!(" {flag}"));
                }
            }
            let is_encrypted = !matches!(self.transport, Transport::Udp | Transport::Tcp);
            let is_verified = flags.contains("--tls-") || flags.contains("http://");
            if self.server.is_some() && !flags.contains("--server") {
                line.push_str(" --server $SERVER");
                if is_encrypted && !is_verified {
                    line.push_str(" --tls-insecure");
                }
            }
        }
        let line = self.filled(&line);
        let mut words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        if let Some(flag) = words.iter().position(|it| it == "--duration") {
            let duration = humantime::parse_duration(&words[flag + 1]).unwrap() * self.times;
            words[flag + 1] = format!("{}ms", duration.as_millis());
        }
        words
    }

    /// The process of the responder, if there is one.
    fn responder_id(&self) -> Option<u32> {
        match &self.asked {
            Asked::Responder(Some(responder)) => Some(responder.child.id()),
            _ => None,
        }
    }

    /// Adds the variables that lines for a shell may use.
    fn environment(&self, command: &mut Command, run: Option<u32>) {
        let id = |it: Option<u32>| it.map_or_else(String::new, |it| it.to_string());
        let server = self.server.map_or_else(String::new, |it| it.to_string());
        let port = self.server.map_or(0, |it| it.port());
        command
            .env("TMPDIR", self.temporary())
            .env("THRONG", THRONG)
            .env("IN", self.inner("in"))
            .env("OUT", self.outputs())
            .env("SERVER", server)
            .env("PORT", port.to_string())
            .env("T", self.transport.name())
            .env("CPU", first_cpu())
            .env("PID", id(run))
            .env("TARGET", id(self.responder_id()))
            .env("NEAR", id(self.near.as_ref().map(Namespace::id)))
            .env("FAR", id(self.far.as_ref().map(Namespace::id)));
    }

    /// Does a line of shell; the run has this process ID.
    fn shell(&self, line: &str, run: Option<u32>) {
        let said = self.try_shell(line, run);
        assert_eq!(said, Ok(()), "{}: {line}", self.fault.name);
    }

    fn try_shell(&self, line: &str, run: Option<u32>) -> Result<(), String> {
        let mut command = Command::new("timeout");
        command
            .args(["60", "bash", "-ec", line])
            .stdin(Stdio::null());
        self.environment(&mut command, run);
        let output = command.output().unwrap();
        match output.status.success() {
            true => Ok(()),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    }

    /// What must be true afterwards, as the row says.
    pub(crate) fn look_after(&self) -> Result<(), String> {
        match self.fault.after {
            "" => Ok(()),
            line => self.try_shell(line, None),
        }
    }

    /// The run: by way of the namespace that it is to be in, and of what is around it.
    fn command(&self) -> Command {
        // Whoever runs the tests may have signals ignored.
        let mut command = Command::new("env");
        command.arg("--default-signal");
        if let Some(near) = &self.near {
            command.args(["nsenter", "--target", &near.id().to_string(), "--net", "--"]);
        }
        if !self.fault.around.is_empty() {
            command.args(["bash", "-c", self.fault.around, "bash"]);
        }
        command.arg(THRONG).args(self.arguments());
        self.environment(&mut command, None);
        command.env(MARK, self.mark()).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs it, with what happens meanwhile.
    pub(crate) fn run(&mut self) -> Ended {
        let mut child = self.command().spawn().unwrap();
        let id = child.id();
        let (stdout, stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        let (events, received) = channel();
        if let Asked::Hostile(hostile) = &self.asked {
            hostile.report_to(events.clone());
        }
        thread::scope(|scope| {
            let (of_stdout, of_stderr) = (events.clone(), events.clone());
            scope.spawn(move || print(stdout, &of_stdout));
            scope.spawn(move || lines(stderr, &of_stderr));
            scope.spawn(move || drop(events.send(Event::Ended(child.wait().unwrap()))));
            self.follow(id, &received)
        })
    }

    /// Does what is to be done, until the run has ended.
    fn follow(&mut self, id: u32, events: &Receiver<Event>) -> Ended {
        let mut followed = Followed::default();
        let mut due = self.fault.meanwhile.iter().copied().peekable();
        let begun = Instant::now();
        let test_before = run_queue_wait(std::process::id());
        let target_before = self.target_waited();
        while !followed.is_over() {
            while let Some((when, deed)) = due.peek().copied()
                && followed.status.is_none()
                && self.is_due(when, followed.shown.len(), &followed.said)
            {
                self.act(deed, id);
                followed.acted = Some(Instant::now());
                due.next();
            }
            match events.recv_timeout(PATIENCE) {
                Ok(event) => {
                    if followed.record(event) {
                        let target = self.target_waited().saturating_sub(target_before);
                        followed.waited.run = run_queue_wait(id);
                        followed.waited.target = followed.waited.target.max(target);
                    }
                }
                Err(_) => {
                    let what = "(killed by the test: it had said nothing for a minute)\n";
                    followed.said.push_str(what);
                    self.shell("kill -s KILL $PID || true", Some(id));
                    self.kill_marked();
                }
            }
        }
        let test = run_queue_wait(std::process::id());
        followed.waited.test = test.saturating_sub(test_before);
        followed.ended(due.count(), begun.elapsed())
    }

    /// Run-queue wait of the target, which is a process or threads of this one.
    fn target_waited(&self) -> Duration {
        match (&self.asked, self.responder_id()) {
            (_, Some(id)) => run_queue_wait(id),
            (Asked::Hostile(_), None) => run_queue_wait(std::process::id()),
            _ => Duration::ZERO,
        }
    }

    /// Ends whatever of the run is still there.
    pub(crate) fn kill_marked(&self) {
        for pid in super::left::marked(&self.mark()) {
            let _ = Command::new("kill").args(["-s", "KILL", &pid]).status();
        }
    }

    fn is_due(&self, when: When, shown: usize, said: &str) -> bool {
        match (when, &self.asked) {
            (When::Shown(lines), _) => shown >= lines,
            (When::Said(words), _) => said.contains(words),
            (When::Met(number), Asked::Hostile(hostile)) => hostile.met() >= number,
            (When::Met(_), _) => panic!("{}: nobody counts", self.fault.name),
        }
    }

    fn act(&mut self, deed: Do, run: u32) {
        match deed {
            Do::Shell(line) => self.shell(line, Some(run)),
            Do::Kill => self.asked = Asked::Responder(None),
            Do::Restart => {
                self.asked = Asked::Responder(None);
                let server = self.server.unwrap();
                let std::net::IpAddr::V4(address) = server.ip() else {
                    panic!("{server} is of IPv4");
                };
                // The kernel closes sockets of io_uring some time after their process has ended.
                wait::is_soon(|| left::is_free(server, self.is_stream()));
                self.start(address, server.port());
            }
        }
    }

    /// Ends whoever was asked; the address where that was, and the namespaces, which are to go now.
    pub(crate) fn clear(&mut self) -> (Option<SocketAddr>, Vec<Vec<u8>>) {
        let held = matches!(self.asked, Asked::Nobody { .. }) || self.far.is_some();
        self.asked = Asked::BuiltIn;
        let both = [self.near.take(), self.far.take()];
        let numbers = both.iter().flatten();
        let numbers = numbers.map(|it| super::left::namespace_of(it.id()));
        (self.server.filter(|_| !held), numbers.collect())
    }
}

/// What has come from a run so far.
#[derive(Default)]
struct Followed {
    said: String,
    printed: Option<String>,
    status: Option<ExitStatus>,
    is_silent: bool,
    /// When each line of progress was read.
    shown: Vec<Instant>,
    /// When the last deed was done.
    acted: Option<Instant>,
    waited: Waited,
}

impl Followed {
    fn is_over(&self) -> bool {
        self.status.is_some() && self.is_silent && self.printed.is_some()
    }

    /// True if it is a line of progress.
    fn record(&mut self, event: Event) -> bool {
        match event {
            Event::Line(line, at) => {
                self.said.push_str(&line);
                if line.contains("  sent ") {
                    self.shown.push(at);
                    return true;
                }
            }
            Event::Printed(text) => self.printed = Some(text),
            Event::Silent => self.is_silent = true,
            Event::Ended(status) => self.status = Some(status),
            Event::Met => {}
        }
        false
    }

    fn ended(mut self, undone: usize, took: Duration) -> Ended {
        self.said.push_str(&self.printed.unwrap_or_default());
        let status = self.status.unwrap_or_default();
        let signal = status.signal().map(|it| -it);
        let after = |acted| self.shown.iter().filter(|it| **it > acted).count();
        Ended {
            code: status.code().or(signal).unwrap_or(-1),
            said: self.said,
            undone,
            shown_after: self.acted.map(after),
            took,
            waited: self.waited,
        }
    }
}

fn print(mut stdout: impl Read, events: &Sender<Event>) {
    let mut octets = Vec::new();
    let _ = stdout.read_to_end(&mut octets);
    let text = String::from_utf8_lossy(&octets).into_owned();
    let _ = events.send(Event::Printed(text));
}

fn lines(stderr: impl Read, events: &Sender<Event>) {
    let mut stderr = BufReader::new(stderr);
    let mut line = Vec::new();
    while stderr.read_until(b'\n', &mut line).is_ok_and(|it| it > 0) {
        let text = String::from_utf8_lossy(&line).into_owned();
        let _ = events.send(Event::Line(text, Instant::now()));
        line.clear();
    }
    let _ = events.send(Event::Silent);
}
