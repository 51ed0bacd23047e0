//! What these tests are made of: processes whose words are heard, a fleet of them, a path between
//! agent and lead that holds or breaks what goes over it.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use lab::target::Namespace;
use measure::RunRecord;
use serde_json::Value;

use crate::process::{Folder, Responder, THRONG, signal, throng};

/// How long anything may take that a test waits for.
pub(super) const PATIENCE: Duration = Duration::from_secs(120);
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Waits until it is so.
pub(super) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "in vain: {what}");
        thread::park_timeout(LOOK_EVERY);
    }
}

#[derive(Default)]
struct Said {
    stdout: String,
    stderr: String,
    open: usize,
}

/// A process whose words are heard as they come; killed when dropped.
pub(super) struct Heard {
    pub(super) child: Child,
    said: Arc<(Mutex<Said>, Condvar)>,
}

fn hear(
    from: impl Read + Send + 'static,
    said: &Arc<(Mutex<Said>, Condvar)>,
    which: fn(&mut Said) -> &mut String,
) {
    said.0.lock().unwrap().open += 1;
    let said = Arc::clone(said);
    thread::spawn(move || {
        let mut from = BufReader::new(from);
        let mut line = Vec::new();
        while from.read_until(b'\n', &mut line).is_ok_and(|it| it > 0) {
            which(&mut said.0.lock().unwrap()).push_str(&String::from_utf8_lossy(&line));
            said.1.notify_all();
            line.clear();
        }
        said.0.lock().unwrap().open -= 1;
        said.1.notify_all();
    });
}

impl Heard {
    pub(super) fn start(mut command: Command) -> Heard {
        command.stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let said = Arc::default();
        hear(child.stdout.take().unwrap(), &said, |it| &mut it.stdout);
        hear(child.stderr.take().unwrap(), &said, |it| &mut it.stderr);
        Heard { child, said }
    }

    /// What it has said on standard error so far.
    pub(super) fn stderr(&self) -> String {
        self.said.0.lock().unwrap().stderr.clone()
    }

    /// Returns when what it has said on standard error is so, and fails if it has said all.
    pub(super) fn wait_until(&self, what: &str, is_so: impl Fn(&str) -> bool) -> String {
        let mut said = self.said.0.lock().unwrap();
        while !is_so(&said.stderr) {
            assert!(said.open > 0, "it ended before {what}: {}", said.stderr);
            let (next, waited) = self.said.1.wait_timeout(said, PATIENCE).unwrap();
            said = next;
            assert!(!waited.timed_out(), "in vain: {what}: {}", said.stderr);
        }
        said.stderr.clone()
    }

    pub(super) fn wait_for(&self, words: &str) -> String {
        self.wait_until(words, |stderr| stderr.contains(words))
    }

    /// Returns when it has shown so many intervals.
    pub(super) fn wait_for_intervals(&self, number: usize) {
        self.wait_until("intervals", |stderr| intervals(stderr).len() >= number);
    }

    pub(super) fn signal(&self, name: &str) {
        signal(&self.child, name);
    }

    /// Exit code, standard output and standard error.
    pub(super) fn ended(&mut self) -> (Option<i32>, String, String) {
        let mut said = self.said.0.lock().unwrap();
        while said.open > 0 {
            let (next, waited) = self.said.1.wait_timeout(said, PATIENCE).unwrap();
            said = next;
            assert!(!waited.timed_out(), "it does not end: {}", said.stderr);
        }
        let code = self.child.wait().unwrap().code();
        (code, said.stdout.clone(), said.stderr.clone())
    }
}

impl Drop for Heard {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The lines about intervals.
pub(super) fn intervals(stderr: &str) -> Vec<&str> {
    let is_one = |line: &&str| line.contains(" s  sent ");
    stderr.lines().filter(is_one).collect()
}

/// Where agents are: beside the lead, or the third one beyond a wire.
pub(super) struct Wire {
    pub(super) near: Namespace,
    pub(super) far: Namespace,
}

const NEAR: Ipv4Addr = Ipv4Addr::new(10, 79, 0, 1);

impl Wire {
    pub(super) fn new() -> Wire {
        let (near, far) = (Namespace::new().unwrap(), Namespace::new().unwrap());
        let wire = Wire { near, far };
        let pair = format!("type veth peer name far netns {}", wire.far.id());
        wire.ip(&wire.near, &format!("link add near {pair}"));
        for (end, name, host) in [(&wire.near, "near", 1), (&wire.far, "far", 2)] {
            wire.ip(end, "link set lo up");
            wire.ip(end, &format!("addr add 10.79.0.{host}/24 dev {name}"));
            wire.ip(end, &format!("link set {name} up"));
        }
        wire
    }

    fn near_file(&self) -> String {
        format!("/proc/{}/ns/net", self.near.id())
    }

    fn ip(&self, end: &Namespace, line: &str) {
        let output = end.command("ip").args(line.split(' ')).output().unwrap();
        assert!(output.status.success(), "{line}: {output:?}");
    }

    /// Nothing goes over it any more.
    pub(super) fn cut(&self) {
        self.ip(&self.far, "link set far down");
    }
}

/// What a fleet is made with.
#[derive(Default)]
pub(super) struct Made<'a> {
    pub(super) responder: &'a str,
    /// Agents that the lead waits for, unless it is three.
    pub(super) expected: Option<usize>,
    /// Agents cannot see what is in the folder `hidden`.
    pub(super) hides: bool,
    pub(super) has_wire: bool,
    /// The second and the third agent dial by way of a [`Path`].
    pub(super) has_paths: bool,
    /// Makes keys in the first folder, and some that have expired in the second.
    pub(super) has_own_keys: Option<fn(&str, &str)>,
    /// Agents that are started.
    pub(super) agents: usize,
}

/// A target, a lead, and agents; none outlives it.
pub(super) struct Fleet {
    pub(super) agents: Vec<Heard>,
    pub(super) lead: Heard,
    pub(super) responder: Option<Responder>,
    /// Of the second agent and of the third, or none.
    pub(super) paths: Vec<Path>,
    pub(super) wire: Option<Wire>,
    pub(super) listens: SocketAddr,
    /// Over UDP, and over TCP.
    pub(super) servers: [SocketAddr; 2],
    pub(super) name: String,
    hides: bool,
    pub(super) folder: Folder,
}

impl Fleet {
    pub(super) fn new(test: &str) -> Fleet {
        let made = Made {
            agents: 3,
            ..Made::default()
        };
        Fleet::with(test, &made)
    }

    pub(super) fn with(test: &str, made: &Made<'_>) -> Fleet {
        let folder = Folder::new(&format!("fleet-{test}"));
        let names = (0..100).map(|it| format!("www-{it}.example. A\n"));
        folder.write("names", names.collect::<String>());
        fs::create_dir(folder.path("hidden")).unwrap();
        let keys = folder.path("keys");
        match made.has_own_keys {
            Some(make) => make(&keys, &folder.path("expired")),
            None => drop(throng(&format!("fleet keys {keys}")).succeeded()),
        }
        let wire = made.has_wire.then(Wire::new);
        let host = wire.as_ref().map_or(Ipv4Addr::LOCALHOST, |_| NEAR);
        let near = |program: &str| match &wire {
            Some(wire) => wire.near.command(program),
            None => Command::new(program),
        };
        let counters = folder.path("counters.json");
        let responder = Responder::start_by(
            near(THRONG),
            &format!("udp:{host}:0,tcp:{host}:0"),
            &format!("--counters {counters} {}", made.responder),
        );
        let name = format!("{}-{test}", std::process::id());
        let mut lead = near(THRONG);
        let listen = format!("{host}:0");
        let agents = made.expected.unwrap_or(3).to_string();
        lead.args(["fleet", "lead", "--agents", &agents, "--listen", &listen]);
        lead.args(["--keys", &keys, "--name", &name]);
        let lead = Heard::start(in_folder(lead, &folder));
        let said = lead.wait_for("waits for agents at ");
        let listens = said.split("agents at ").nth(1).unwrap().lines().next();
        let listens: SocketAddr = listens.unwrap().parse().unwrap();
        let mut fleet = Fleet {
            agents: Vec::new(),
            lead,
            servers: [responder.addresses[0].1, responder.addresses[1].1],
            responder: Some(responder),
            paths: (0..2 * usize::from(made.has_paths))
                .map(|_| Path::to(listens, wire.as_ref()))
                .collect(),
            wire,
            listens,
            name,
            hides: made.hides,
            folder,
        };
        for index in 0..made.agents {
            let agent = fleet.agent(index);
            fleet.agents.push(agent);
        }
        fleet
    }

    /// Another agent, whether or not it is one of the fleet.
    pub(super) fn agent(&self, index: usize) -> Heard {
        self.agent_by(THRONG, &self.folder.path("keys"), index)
    }

    pub(super) fn agent_by(&self, program: &str, keys: &str, index: usize) -> Heard {
        let mut command = match &self.wire {
            Some(wire) if index == 2 => wire.far.command(program),
            Some(wire) => wire.near.command(program),
            None if self.hides => {
                let mut command = Command::new("unshare");
                let hidden = self.folder.path("hidden");
                let line = format!("mount -t tmpfs none {hidden} && exec \"$@\"");
                command.args(["--mount", "sh", "-c", &line, "sh", program]);
                command
            }
            None => Command::new(program),
        };
        let path = index.checked_sub(1).and_then(|it| self.paths.get(it));
        let address = path.map_or(self.listens, |path| path.address);
        command.args(["fleet", "agent", "--connect", &address.to_string()]);
        command.args(["--index", &index.to_string(), "--keys", keys]);
        Heard::start(in_folder(command, &self.folder))
    }

    /// `--lead` of commands.
    pub(super) fn relay(&self) -> String {
        format!("{THRONG} fleet relay --name {}", self.name)
    }

    /// A command of `throng` where the lead is; `words` are those before the flags, and `before`
    /// comes before the relay, as ssh does.
    pub(super) fn ask_by(&self, before: &str, words: &str) -> Heard {
        let mut command = match &self.wire {
            Some(wire) => wire.near.command(THRONG),
            None => Command::new(THRONG),
        };
        command.args(words.split_whitespace());
        command.args(["--lead", &format!("{before}{}", self.relay())]);
        Heard::start(in_folder(command, &self.folder))
    }

    pub(super) fn ask(&self, words: &str) -> Heard {
        self.ask_by("", words)
    }

    /// Load on its target.
    pub(super) fn load(&self, flags: &str) -> String {
        let names = self.folder.path("names");
        let server = self.servers[usize::from(flags.contains("--transport tcp"))];
        format!("--server {server} --names {names} {flags}")
    }

    /// Connections that its target has.
    pub(super) fn connections(&self) -> usize {
        let table = format!("/proc/{}/net/tcp", self.lead.child.id());
        let port = format!(":{:04X}", self.servers[1].port());
        let table = fs::read_to_string(table).unwrap();
        let is_one = |line: &&str| {
            let mut words = line.split_whitespace().skip(1);
            words.next().is_some_and(|it| it.ends_with(&port)) && words.nth(1) == Some("01")
        };
        table.lines().filter(is_one).count()
    }

    pub(super) fn run(&self, flags: &str) -> Heard {
        self.ask(&format!("run {}", self.load(flags)))
    }

    /// The record of a run that succeeds.
    pub(super) fn measured(&self, flags: &str) -> RunRecord {
        let mut run = self.run(&format!("--quiet --format json {flags}"));
        let (code, stdout, stderr) = run.ended();
        assert_eq!(code, Some(0), "{stderr}\n{stdout}\n{}", self.lead.stderr());
        RunRecord::from_json(&stdout).unwrap()
    }

    /// Queries that its target has received by now.
    pub(super) fn received(&self) -> u64 {
        let path = self.folder.path("counters.json");
        let _ = fs::remove_file(&path);
        self.responder.as_ref().unwrap().signal("USR1");
        let mut received = 0;
        until("counters", || {
            let text = fs::read_to_string(&path).unwrap_or_default();
            let counters: Result<Value, _> = serde_json::from_str(&text);
            counters.is_ok_and(|all| {
                received = all["queries"].as_u64().unwrap();
                true
            })
        });
        received
    }

    /// Returns when all agents of a run over TCP are ready, the third has said what its clock
    /// shows, and the second cannot, until its path is released.
    pub(super) fn hold_before_the_start(&self) {
        until("first connections", || self.connections() >= 4);
        self.paths[0].hold();
        until("all connections", || self.connections() >= 30);
        let before = self.paths[1].came();
        // Each question is a record of some 40 octets.
        until("exchanges", || self.paths[1].came() > before + 5_000);
    }

    /// Ends all, as users do, and checks how they have ended.
    pub(super) fn end(mut self) {
        let (code, _, stderr) = self.ask("fleet end").ended();
        assert_eq!(code, Some(0), "{stderr}");
        let (code, _, stderr) = self.lead.ended();
        assert_eq!(code, Some(0), "{stderr}");
        for agent in &mut self.agents {
            let (code, _, stderr) = agent.ended();
            assert_eq!((code, stderr.as_str()), (Some(0), ""));
        }
    }
}

/// By this a process is found that was left behind.
fn in_folder(mut command: Command, folder: &Folder) -> Command {
    command.current_dir(folder.folder());
    command.env("TMPDIR", folder.folder());
    command
}

const HOLDS: u8 = 1;
const FLIPS: u8 = 2;
const ENDS: u8 = 4;

/// A path to the lead: it passes on, holds what the lead says, or flips an octet of what the agent
/// says.
pub(super) struct Path {
    pub(super) address: SocketAddr,
    does: Arc<AtomicU8>,
    to_agent: Arc<AtomicU64>,
}

impl Path {
    fn to(lead: SocketAddr, wire: Option<&Wire>) -> Path {
        let (does, to_agent) = (Arc::<AtomicU8>::default(), Arc::<AtomicU64>::default());
        let path = (Arc::clone(&does), Arc::clone(&to_agent));
        let namespace = wire.map(|wire| fs::File::open(wire.near_file()).unwrap());
        let (tell, told) = channel();
        thread::spawn(move || {
            // Its sockets are where the lead is.
            if let Some(namespace) = &namespace {
                driver::namespace::enter(namespace).unwrap();
            }
            let listener = TcpListener::bind((lead.ip(), 0)).unwrap();
            tell.send(listener.local_addr().unwrap()).unwrap();
            let (does, to_agent) = path;
            listener.set_nonblocking(true).unwrap();
            while does.load(Ordering::SeqCst) & ENDS == 0 {
                let agent = match listener.accept() {
                    Ok((agent, _)) => agent,
                    Err(_) => {
                        thread::park_timeout(LOOK_EVERY);
                        continue;
                    }
                };
                agent.set_nonblocking(false).unwrap();
                // A lead that has ended is not there.
                let Ok(lead) = TcpStream::connect(lead) else {
                    continue;
                };
                let ways = (agent.try_clone().unwrap(), lead.try_clone().unwrap());
                let of_agent = (Arc::clone(&does), Arc::default());
                let of_lead = (Arc::clone(&does), Arc::clone(&to_agent));
                thread::spawn(move || pass(agent, lead, FLIPS, &of_agent));
                thread::spawn(move || pass(ways.1, ways.0, HOLDS, &of_lead));
            }
        });
        Path {
            address: told.recv().unwrap(),
            does,
            to_agent,
        }
    }

    /// Octets that have gone to the agent.
    pub(super) fn came(&self) -> u64 {
        self.to_agent.load(Ordering::SeqCst)
    }

    /// What the lead says does not come, until [`Path::release`].
    pub(super) fn hold(&self) {
        self.does.fetch_or(HOLDS, Ordering::SeqCst);
    }

    pub(super) fn release(&self) {
        self.does.fetch_and(!HOLDS, Ordering::SeqCst);
    }

    /// From now on an octet is another one, in whatever the agent says.
    pub(super) fn flip(&self) {
        self.does.fetch_or(FLIPS, Ordering::SeqCst);
    }
}

impl Drop for Path {
    fn drop(&mut self) {
        self.does.store(ENDS, Ordering::SeqCst);
    }
}

fn pass(
    mut from: TcpStream,
    mut to: TcpStream,
    own: u8,
    (does, passed): &(Arc<AtomicU8>, Arc<AtomicU64>),
) {
    let mut octets = vec![0; 64 << 10];
    while let Ok(read) = from.read(&mut octets)
        && read > 0
    {
        while own == HOLDS && does.load(Ordering::SeqCst) == HOLDS {
            thread::park_timeout(LOOK_EVERY);
        }
        if own == FLIPS && does.load(Ordering::SeqCst) & FLIPS != 0 {
            octets[read - 1] ^= 1;
        }
        if own == HOLDS {
            passed.fetch_add(read as u64, Ordering::SeqCst);
        }
        if to.write_all(&octets[..read]).is_err() {
            break;
        }
    }
    for end in [&from, &to] {
        let _ = end.shutdown(std::net::Shutdown::Both);
    }
}
