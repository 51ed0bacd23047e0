//! Agents that dial their lead over TCP with certificates.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;

use measure::RunRecord;
use measure::record::EndedBy;
use proto::tls::rustls::pki_types::ServerName;
use proto::tls::rustls::{ClientConnection, Stream};
use proto::tls::{ClientTlsOptions, Roots, client_config};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use testing::due;
use testing::folder::Folder;
use testing::program::{self, signal};
use testing::same::assert_same_load;

use crate::forwarder::{Fate, Forwarder};
use crate::process::{Responder, THRONG, throng};
use crate::running::Running;

/// A target, names to ask it for, and keys.
struct Lab {
    folder: Folder,
    responder: Responder,
    flags: String,
    keys: String,
}

impl Lab {
    fn new(name: &str) -> Lab {
        let names: String = (0..100)
            .map(|it| format!("www-{it}.example. A\n"))
            .collect();
        Lab::with_names(name, &names)
    }

    fn with_names(name: &str, names: &str) -> Lab {
        let folder = Folder::new(name);
        let names = folder.write("names", names);
        let responder = Responder::start("udp:127.0.0.1:0", "");
        let server = responder.address();
        let keys = folder.path("keys");
        throng(&format!("fleet keys {keys}")).succeeded();
        let flags = format!("--server {server} --names {names}");
        Lab {
            folder,
            responder,
            flags,
            keys,
        }
    }

    /// A lead that waits for agents, and where it listens.
    fn lead(&self, flags: &str) -> (Running, SocketAddr) {
        self.lead_of("run", flags)
    }

    /// The same of another command.
    fn lead_of(&self, words: &str, flags: &str) -> (Running, SocketAddr) {
        let line = format!(
            "{words} {} --listen 127.0.0.1:0 --keys {} {flags}",
            self.flags, self.keys
        );
        let mut command = Command::new(THRONG);
        command.args(line.split_whitespace()).stdin(Stdio::null());
        waiting(command)
    }

    /// The same of a sweep over three rates.
    fn lead_of_sweep(&self, flags: &str) -> (Running, SocketAddr) {
        let sweep = "[sweep]\nrate = [100, 200, 300]\n";
        let scenario = self.folder.write("sweep.toml", sweep);
        let load = "--clients 8 --duration 500ms --agents 2 --workers 2";
        let record = self.folder.path("record.json");
        let flags = format!("{load} --record {record} {flags}");
        self.lead_of(&format!("run {scenario}"), &flags)
    }

    fn agent(&self, lead: SocketAddr, index: u32) -> Agent {
        let keys = &self.keys;
        Agent::start(THRONG, &format!("{lead} --keys {keys} --index {index}"))
    }
}

/// Starts a lead, which says where it waits for agents.
fn waiting(mut command: Command) -> (Running, SocketAddr) {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut lead = Running::from_command(command);
    let line = lead.wait_for("waiting for");
    let address = line.split(" at ").nth(1).unwrap();
    let address = address.split_whitespace().next().unwrap();
    (lead, address.parse().unwrap())
}

/// An agent; killed when dropped.
struct Agent {
    child: program::Running,
}

impl Agent {
    fn start(program: &str, flags: &str) -> Agent {
        let mut words = program.split_whitespace();
        let mut command = Command::new(words.next().unwrap());
        command
            .args(words)
            .args(["fleet", "agent", "--name", "node"]);
        command.args(flags.split_whitespace());
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(Stdio::piped());
        Agent {
            child: program::Running(command.spawn().unwrap()),
        }
    }

    /// Waits for its end: its exit code and what it said.
    fn end(mut self) -> (Option<i32>, String) {
        let mut said = String::new();
        let stderr = self.child.stderr.as_mut().unwrap();
        stderr.read_to_string(&mut said).unwrap();
        (self.child.wait().unwrap().code(), said)
    }

    /// One line beside its hint says why it was refused.
    fn refused(self, code: i32, part: &str) {
        let (ended, said) = self.end();
        assert_eq!(ended, Some(code), "{said}");
        let errors = said.lines().filter(|line| line.starts_with("error: "));
        assert_eq!(errors.count(), 1, "{said}");
        assert!(said.contains(part), "{said}");
    }
}

fn record(folder: &Folder) -> RunRecord {
    let text = fs::read_to_string(folder.path("record.json")).unwrap();
    RunRecord::from_json(&text).unwrap()
}

#[test]
fn agents_that_dial_divide_a_run_exactly() {
    let lab = Lab::new("dialling-exact");
    let load = "--clients 30 --per-client poisson:20 --duration 1s --timeout 20s --seed 5 \
                --workers 3 --quiet --format json";
    let together = throng(&format!("run {} {load}", lab.flags)).succeeded();
    let together = RunRecord::from_json(&together).unwrap();
    let load = load.replace("--quiet ", "");
    let path = lab.folder.path("record.json");
    let (mut lead, address) = lab.lead(&format!("{load} --agents 3 --record {path}"));
    // In any order.
    let agents = [2, 0, 1].map(|index| lab.agent(address, index));
    for agent in agents {
        let (code, said) = agent.end();
        assert_eq!(code, Some(0), "{said}");
    }
    let (code, _, said) = lead.ended();
    assert_eq!(code, Some(0), "{said}");
    let divided = record(&lab.folder);
    assert_same_load(&divided, &together, "by three agents");
    due::assert_answered(&divided, together.total.counts.offered);
    assert_eq!((divided.generators, divided.agent_count), (3, 3));
    let names = divided.agents.iter().filter_map(|it| it.name.as_deref());
    assert_eq!(names.collect::<Vec<_>>(), ["node"; 3]);
    assert!(divided.agents.iter().all(|agent| agent.clock.is_some()));
    let received = divided.total.counts.sent + together.total.counts.sent;
    assert_eq!(lab.responder.counters().get("queries received"), received);
}

/// Their CPU time is the generator's, where the lead sees whose it is.
#[test]
fn agents_on_their_leads_host_are_not_its_other_processes() {
    let lab = Lab::new("dialling-here");
    let path = lab.folder.path("record.json");
    let load = "--rate 4000 --duration 2s --timeout 20s --workers 2 --agents 2";
    let run = |program: &str| {
        let (mut lead, address) = lab.lead(&format!("{load} --record {path}"));
        let agents = [0, 1].map(|index| {
            let flags = format!("{address} --keys {} --index {index}", lab.keys);
            Agent::start(program, &flags)
        });
        let pids = agents.each_ref().map(|agent| agent.child.id());
        for agent in agents {
            let (code, said) = agent.end();
            assert_eq!(code, Some(0), "{said}");
        }
        let (code, _, said) = lead.ended();
        assert_eq!(code, Some(0), "{said}");
        (record(&lab.folder), pids)
    };
    let (seen, pids) = run(THRONG);
    let host = seen.host_use.unwrap();
    assert!(
        host.busiest.iter().all(|it| !pids.contains(&it.pid)),
        "{host:?}"
    );
    // Ticks of three processes are a hundredth of a second each.
    let of_workers: u64 = seen.workers.iter().map(|it| it.cpu_ns).sum();
    assert!(
        host.own_ns + 100_000_000 >= of_workers,
        "{host:?}, {of_workers}"
    );
    let apart = "unshare --user --map-root-user --pid --fork --kill-child";
    let (hidden, _) = run(&format!("{apart} {THRONG}"));
    assert_eq!(hidden.host_use, None);
}

/// Dialling once, and reading the names once.
#[test]
fn agents_that_dial_serve_all_runs_of_a_command() {
    let lab = Lab::new("dialling-runs");
    let (mut lead, address) = lab.lead_of_sweep("--timeout 20s");
    let agents = [0, 1].map(|index| Stays::new(lab.agent(address, index)));
    let (code, _, said) = lead.ended();
    assert_eq!(code, Some(0), "{said}");
    for agent in agents {
        assert_eq!(agent.end(), Some(0));
    }
    let mut sent = 0;
    for rate in [100, 200, 300] {
        let path = lab.folder.path(&format!("record-rate={rate}.json"));
        let record = RunRecord::from_json(&fs::read_to_string(path).unwrap()).unwrap();
        assert_eq!(record.generators, 2);
        assert_eq!(record.total.counts.offered, rate / 2);
        sent += record.total.counts.sent;
    }
    let records = lab.folder.path("records");
    let search = "--agents 2 --start 200 --max 400 --trial-duration 1s";
    let (mut lead, address) = lab.lead_of("capacity", &format!("{search} --records {records}"));
    let agents = [1, 0].map(|index| Stays::new(lab.agent(address, index)));
    let (_, _, said) = lead.ended();
    for agent in agents {
        assert_eq!(agent.end(), Some(0), "{said}");
    }
    let files = fs::read_dir(records).unwrap().map(|it| it.unwrap().path());
    let trials = files.filter(|it| it.to_str().unwrap().contains("trial-"));
    let trials = trials.map(|it| RunRecord::from_json(&fs::read_to_string(it).unwrap()).unwrap());
    let trials: Vec<RunRecord> = trials.collect();
    assert!(trials.len() >= 2, "{said}");
    assert!(trials.iter().all(|it| it.generators == 2));
    sent += trials
        .iter()
        .map(|it| it.warmup.counts.sent + it.total.counts.sent)
        .sum::<u64>();
    assert_eq!(lab.responder.counters().get("queries received"), sent);
}

/// Random names, of as many octets in a file; and how many of these are random: no compression
/// makes fewer of them.
fn random_names(octets: usize) -> (String, usize) {
    /// Of five bits each.
    const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    const LABELS: usize = 3;
    const LENGTH: usize = 60;
    const LINE: usize = LABELS * (LENGTH + 1) + " A\n".len();
    let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
    let mut names = String::new();
    while names.len() + LINE <= octets {
        for at in 0..LABELS * LENGTH {
            names.push(char::from(
                LETTERS[random.next_u32() as usize % LETTERS.len()],
            ));
            if at % LENGTH == LENGTH - 1 {
                names.push('.');
            }
        }
        names.push_str(" A\n");
    }
    let lines = names.len() / LINE;
    (names, lines * LABELS * LENGTH * 5 / 8)
}

/// What a process has read: files and pipes, but no sockets.
fn octets_read(process: &Child) -> usize {
    let counts = fs::read_to_string(format!("/proc/{}/io", process.id())).unwrap();
    let mut read = counts.lines().filter_map(|it| it.strip_prefix("rchar: "));
    read.next().unwrap().parse().unwrap()
}

#[test]
fn names_of_all_runs_of_a_command_are_read_once_and_travel_once() {
    let (names, random) = random_names(50_000_000);
    let length = names.len();
    let lab = Lab::with_names("dialling-names", &names);
    drop(names);
    let (mut lead, address) = lab.lead_of_sweep("--timeout 20s --interval 100ms");
    let forwarders = [0, 1].map(|_| Forwarder::new(address, [Fate::Carried]));
    let agents = [0, 1].map(|index| {
        let dialled = forwarders[index as usize].address;
        Stays::new(lab.agent(dialled, index))
    });
    lead.wait_for("rate 300");
    // Everyone has what it reads. Beside that there are counters of the host, again and again.
    lead.wait_for_intervals(1);
    let by_lead = octets_read(&lead.child);
    assert!(
        (length..length + length / 2).contains(&by_lead),
        "{by_lead} of {length}"
    );
    for agent in &agents {
        let by_agent = octets_read(&agent.agent.child);
        assert!(by_agent < length / 2, "{by_agent} of {length}");
    }
    let (code, _, said) = lead.ended();
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(agents.map(Stays::end), [Some(0); 2]);
    for forwarder in forwarders {
        let carried = forwarder.carried();
        assert!(
            (random..2 * random).contains(&carried[0]),
            "{carried:?} of {random}"
        );
    }
}

/// The second run has an agent that leaves in it.
#[test]
fn an_agent_that_leaves_between_two_runs_is_named() {
    let lab = Lab::new("dialling-between");
    let flags = "--interval 100ms --barrier-timeout 30s";
    let (mut lead, address) = lab.lead_of_sweep(flags);
    let [leaves, stays] = [0, 1].map(|index| Stays::new(lab.agent(address, index)));
    lead.wait_for("rate 200");
    leaves.signal("KILL");
    let (code, _, said) = lead.ended();
    // Before its first checkpoint there is no result; afterwards there is a degraded one, and the
    // run after that has no agents.
    assert_ne!(code, Some(0), "{said}");
    assert!(
        said.contains("agent 1 of 2 (node)") || said.contains("did not come"),
        "{said}"
    );
    assert_eq!(leaves.end(), None);
    assert_eq!(stays.end(), Some(97));
    let first = lab.folder.path("record-rate=100.json");
    RunRecord::from_json(&fs::read_to_string(first).unwrap()).unwrap();
}

/// The name in a lead's certificate.
const LEAD: &str = "lead.throng.internal";

/// An authority for certificates of any age.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Authority {
    fn new() -> Authority {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "ca");
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        let issuer = Issuer::new(params, key);
        Authority { issuer, pem }
    }

    /// Makes a folder of keys, or new ones in it. The certificates of lead and agents expire with
    /// these years.
    fn write(&self, folder: &str, years: [i32; 2]) {
        fs::create_dir_all(folder).unwrap();
        let write = |name: &str, text: &str| fs::write(format!("{folder}/{name}"), text).unwrap();
        write("ca.pem", &self.pem);
        for (side, year) in ["lead", "agent"].into_iter().zip(years) {
            let name = format!("{side}.throng.internal");
            let mut params = CertificateParams::new([name]).unwrap();
            params.not_after = date_time_ymd(year, 12, 31);
            let key = KeyPair::generate().unwrap();
            let certificate = params.signed_by(&key, &self.issuer).unwrap();
            write(&format!("{side}.pem"), &certificate.pem());
            write(&format!("{side}.key"), &key.serialize_pem());
        }
    }
}

/// Connects with a lead that it trusts, by that authority, and shows no certificate; what comes of
/// it.
fn dial_without_certificate(lead: SocketAddr, authority: &Authority) -> std::io::Error {
    let options = ClientTlsOptions {
        roots: Roots::Pem(authority.pem.clone().into_bytes()),
        ..ClientTlsOptions::default()
    };
    let config = client_config(&options).unwrap();
    let name = ServerName::try_from(LEAD).unwrap();
    let mut tls = ClientConnection::new(config, name).unwrap();
    let mut socket = TcpStream::connect(lead).unwrap();
    let mut said = Vec::new();
    let error = Stream::new(&mut tls, &mut socket).read_to_end(&mut said);
    assert_eq!(said, b"");
    error.unwrap_err()
}

/// An agent or a lead whose certificate has expired, and one without any.
#[test]
fn certificates_that_are_missing_or_expired_are_refused_before_a_query() {
    let lab = Lab::new("dialling-expired");
    let authority = Authority::new();
    authority.write(&lab.keys, [9999, 9999]);
    let expired = lab.folder.path("expired");
    authority.write(&expired, [2000, 2000]);
    let path = lab.folder.path("record.json");
    let load = "--clients 4 --rate 100 --duration 1s";
    let (mut lead, address) = lab.lead(&format!("--agents 2 {load} --record {path}"));
    Agent::start(THRONG, &format!("{address} --keys {expired} --index 0")).refused(
        95,
        "does not accept this agent: received fatal alert: CertificateExpired",
    );
    lead.wait_for("invalid peer certificate: certificate expired");
    let error = dial_without_certificate(address, &authority);
    assert!(error.to_string().contains("CertificateRequired"), "{error}");
    lead.wait_for("refused 127.0.0.1");
    let other = Lab {
        keys: expired,
        folder: Folder::new("dialling-expired-lead"),
        responder: Responder::start("udp:127.0.0.1:0", ""),
        flags: lab.flags.clone(),
    };
    let (_waits, of_expired) = other.lead(&format!("--agents 1 {load}"));
    Agent::start(
        THRONG,
        &format!("{of_expired} --keys {} --index 0", lab.keys),
    )
    .refused(
        95,
        "is not the lead of this agent: invalid peer certificate: certificate expired",
    );
    let agents = [0, 1].map(|index| Stays::new(lab.agent(address, index)));
    let (code, _, said) = lead.ended();
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(agents.map(Stays::end), [Some(0); 2]);
    let sent = record(&lab.folder).total.counts.sent;
    assert_eq!(lab.responder.counters().get("queries received"), sent);
}

/// The names are on their way then; nothing was sent with others.
#[test]
fn an_octet_that_is_flipped_on_its_way_ends_the_run_before_a_query() {
    let (names, random) = random_names(1_000_000);
    let lab = Lab::with_names("dialling-flipped", &names);
    let (mut lead, address) = lab.lead("--agents 2 --clients 4 --rate 100 --duration 1s");
    let forwarder = Forwarder::new(address, [Fate::Flipped(random / 2)]);
    let agents = [forwarder.address, address];
    let agents = [0, 1].map(|index| lab.agent(agents[index as usize], index));
    let (code, _, said) = lead.ended();
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("agent 1 of 2 (node)"), "{said}");
    let [flipped, other] = agents;
    flipped.refused(97, "the connection with the lead has ended: ");
    other.refused(97, "ended");
    assert_eq!(lab.responder.counters().get("queries received"), 0);
}

/// A lead on a busy host resets connections that it has not answered in time.
#[test]
fn connections_that_end_before_the_lead_has_answered_are_dialled_again() {
    let lab = Lab::new("dialling-again");
    let path = lab.folder.path("record.json");
    let load = "--clients 4 --rate 100 --duration 1s --timeout 20s";
    let (mut lead, address) = lab.lead(&format!("--agents 2 {load} --record {path}"));
    let fates = [
        Fate::Closed,
        Fate::ClosedInHandshake,
        Fate::Closed,
        Fate::Carried,
    ];
    let forwarder = Forwarder::new(address, fates);
    let agents = [forwarder.address, address];
    let agents = [0, 1].map(|index| Stays::new(lab.agent(agents[index as usize], index)));
    let (code, _, said) = lead.ended();
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(agents.map(Stays::end), [Some(0); 2]);
    let carried = forwarder.carried();
    let was_heard: Vec<bool> = carried.iter().map(|octets| *octets > 0).collect();
    assert_eq!(was_heard, [false, true, false, true], "{carried:?}");
    let record = record(&lab.folder);
    assert_eq!(record.generators, 2);
    due::assert_answered(&record, 100);
    let received = lab.responder.counters().get("queries received");
    assert_eq!(received, due::sent(&record));
}

#[test]
fn who_does_not_belong_to_a_run_is_refused_before_a_query() {
    let lab = Lab::new("dialling-refused");
    let path = lab.folder.path("record.json");
    let (mut lead, address) = lab.lead(&format!(
        "--agents 2 --clients 4 --rate 400 --duration 3s --interval 100ms --record {path}"
    ));
    let foreign = lab.folder.path("foreign");
    throng(&format!("fleet keys {foreign}")).succeeded();
    let dials = |keys: &str, index: u32| format!("{address} --keys {keys} --index {index}");
    Agent::start(THRONG, &dials(&foreign, 0)).refused(95, "not the lead of this agent");
    // One that trusts this lead, and that it does not know.
    let stranger = lab.folder.path("stranger");
    throng(&format!("fleet keys {stranger}")).succeeded();
    fs::copy(format!("{}/ca.pem", lab.keys), format!("{stranger}/ca.pem")).unwrap();
    Agent::start(THRONG, &dials(&stranger, 0)).refused(95, "does not accept this agent");
    let other = lab.folder.path("throng");
    crate::process::write_other_build(&other);
    Agent::start(&other, &dials(&lab.keys, 0)).refused(95, "its program is build ");
    lab.agent(address, 2).refused(95, "beyond the 2 agents");
    let mut plain = TcpStream::connect(address).unwrap();
    plain.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    // It is closed; TLS says why, in a few octets.
    let mut said = Vec::new();
    let _ = plain.read_to_end(&mut said);
    assert!(said.len() < 100, "{said:?}");
    lead.wait_for("refused 127.0.0.1");
    let waits = Stays::new(lab.agent(address, 0));
    lab.agent(address, 0)
        .refused(95, "another agent has its number: node");
    let last = Stays::new(lab.agent(address, 1));
    lead.wait_for_intervals(1);
    lab.agent(address, 1)
        .refused(96, "the run has begun without it");
    for agent in [waits, last] {
        assert_eq!(agent.end(), Some(0));
    }
    let (code, _, said) = lead.ended();
    assert_eq!(code, Some(0), "{said}");
    let sent = record(&lab.folder).total.counts.sent;
    assert_eq!(lab.responder.counters().get("queries received"), sent);
}

/// An agent that has its seat.
struct Stays {
    agent: Agent,
    says: JoinHandle<()>,
}

impl Stays {
    fn new(mut agent: Agent) -> Stays {
        let stderr = agent.child.stderr.take().unwrap();
        let mut line = String::new();
        let mut stderr = BufReader::new(stderr);
        stderr.read_line(&mut line).unwrap();
        assert!(line.contains("waits for its task"), "{line}");
        // Shown if the test fails, wherever it does.
        let says = std::thread::spawn(move || {
            stderr
                .lines()
                .for_each(|line| eprintln!("agent: {}", line.unwrap()));
        });
        Stays { agent, says }
    }

    fn signal(&self, name: &str) {
        signal(&self.agent.child, name);
    }

    fn end(mut self) -> Option<i32> {
        let code = self.agent.child.wait().unwrap().code();
        self.says.join().unwrap();
        code
    }
}

#[test]
fn an_agent_that_leaves_before_the_run_makes_place_for_another() {
    let lab = Lab::new("dialling-leaves");
    let (mut lead, address) = lab.lead("--agents 2 --clients 4 --rate 100 --duration 1s");
    for name in ["TERM", "INT", "KILL"] {
        let leaves = Stays::new(lab.agent(address, 1));
        leaves.signal(name);
        let code = match name {
            "TERM" => Some(143),
            "INT" => Some(130),
            _ => None,
        };
        assert_eq!(leaves.end(), code, "{name}");
    }
    let agents = [1, 0].map(|index| lab.agent(address, index));
    let agents = agents.map(Agent::end);
    let (code, _, said) = lead.ended();
    assert_eq!(code, Some(0), "{said}{agents:?}");
    for (code, of_agent) in agents {
        assert_eq!(code, Some(0), "{of_agent}{said}");
    }
}

#[test]
fn agents_that_do_not_come_are_named() {
    let lab = Lab::new("dialling-absent");
    let (mut lead, address) = lab.lead("--agents 3 --rate 100 --duration 1s --barrier-timeout 3s");
    let waits = lab.agent(address, 1);
    let (code, _, said) = lead.ended();
    assert_eq!(code, Some(2), "{said}");
    assert!(
        said.contains("2 of the agents did not come within 3 s: 0, 2"),
        "{said}"
    );
    let (code, said) = waits.end();
    assert_eq!(code, Some(97), "{said}");
    assert!(said.contains("the lead has ended the connection"), "{said}");
    let keys = &lab.keys;
    let dial = format!("fleet agent {address} --index 0 --keys {keys} --patience 1s");
    throng(&dial).refused_with("cannot reach the lead", "--listen");
    assert_eq!(lab.responder.counters().get("queries received"), 0);
}

/// The load is that of the whole run, and an agent that comes later has no part in it.
#[test]
fn run_begins_with_enough_agents_where_not_all_come() {
    let lab = Lab::new("dialling-enough");
    let path = lab.folder.path("record.json");
    let load = "--clients 30 --rate 200 --duration 5s --timeout 20s";
    let (mut lead, address) = lab.lead(&format!(
        "{load} --interval 100ms --agents 4 --min-agents 2 --barrier-timeout 10s --record {path}"
    ));
    let agents = [3, 1].map(|index| Stays::new(lab.agent(address, index)));
    lead.wait_for("begins with 2 of 4 agents; absent after 10 s, by index: 0, 2");
    lab.agent(address, 0)
        .refused(96, "the run has begun without it");
    let (code, _, said) = lead.ended();
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(agents.map(Stays::end), [Some(0); 2]);
    let warning = "2 of 4 agents took part, and the whole load was divided among them";
    let report = throng(&format!("report {path} --details")).succeeded();
    assert!(report.contains(warning), "{report}");
    assert!(report.contains("2 of 4: node, node"), "{report}");
    let record = record(&lab.folder);
    assert_eq!(record.agent_count, 2);
    let absent = record.absent_agents.iter().map(|it| it.index);
    assert_eq!(absent.collect::<Vec<_>>(), [0, 2]);
    let warned = record.warnings.iter().filter(|it| it.contains(warning));
    assert_eq!(warned.count(), 1, "{:?}", record.warnings);
    due::assert_answered(&record, 1_000);
    let received = lab.responder.counters().get("queries received");
    assert_eq!(received, due::sent(&record));
}

const LONG: &str = "--agents 3 --clients 30 --rate 600 --duration 30s --interval 100ms";

/// A run in mid-course, with a checkpoint of all its agents.
fn begun(lab: &Lab) -> (Running, [Stays; 3]) {
    let path = lab.folder.path("record.json");
    let (mut lead, address) = lab.lead(&format!("{LONG} --record {path}"));
    let agents = [0, 1, 2].map(|index| Stays::new(lab.agent(address, index)));
    lead.wait_for_intervals(31);
    (lead, agents)
}

#[test]
fn an_agent_that_dialled_and_is_killed_is_lost_as_others_are() {
    let lab = Lab::new("dialling-killed");
    let (mut lead, agents) = begun(&lab);
    agents[1].signal("KILL");
    let (code, _, said) = lead.ended();
    assert_eq!(code, Some(1), "{said}");
    assert_eq!(agents.map(Stays::end), [Some(0), None, Some(0)]);
    let record = record(&lab.folder);
    assert_eq!(record.ended_by, EndedBy::AgentLost);
    let degraded = record.degraded.as_ref().unwrap();
    let [lost] = degraded.lost.as_slice() else {
        panic!("{degraded:?}")
    };
    assert!(lost.how.contains("connection"), "{lost:?}");
    let known = record.warmup.counts.sent + record.total.counts.sent + degraded.total.counts.sent;
    let range = known + lost.sent..=known + lost.fate_unknown_max;
    let received = lab.responder.counters().get("queries received");
    assert!(range.contains(&received), "{received} of {range:?}");
}

#[test]
fn an_agent_that_dialled_and_gets_sigterm_reports_what_it_has_done() {
    let lab = Lab::new("dialling-sigterm");
    let (mut lead, agents) = begun(&lab);
    agents[2].signal("TERM");
    let (code, _, said) = lead.ended();
    assert_eq!(code, Some(1), "{said}");
    assert_eq!(agents.map(Stays::end), [Some(0), Some(0), Some(143)]);
    let record = record(&lab.folder);
    let degraded = record.degraded.as_ref().unwrap();
    let known = record.warmup.counts.sent + record.total.counts.sent + degraded.total.counts.sent;
    let received = lab.responder.counters().get("queries received");
    assert_eq!(received, known + degraded.lost[0].sent, "{degraded:?}");
}

#[test]
fn agents_that_dialled_end_with_their_lead() {
    let lab = Lab::new("dialling-lead");
    let (lead, agents) = begun(&lab);
    lead.signal("KILL");
    assert_eq!(agents.map(Stays::end), [Some(97); 3]);
}

/// Both sides of a comparison have the same agents, which dial once.
#[test]
fn agents_that_dial_serve_both_sides_of_a_comparison() {
    let lab = Lab::new("dialling-compare");
    let records = lab.folder.path("records");
    let keys = &lab.keys;
    let side = format!(
        "run {} --clients 4 --duration 300ms --timeout 20s --agents 2 --listen 127.0.0.1:0 \
         --keys {keys} --rate",
        lab.flags
    );
    let mut command = Command::new(THRONG);
    command.args(["compare", "--a", &format!("{side} 100")]);
    command.args(["--b", &format!("{side} 100"), "--repeat", "2"]);
    command.args(["--records", &records]).stdin(Stdio::null());
    let (mut lead, address) = waiting(command);
    let agents = [1, 0].map(|index| Stays::new(lab.agent(address, index)));
    let (code, _, said) = lead.ended();
    assert_eq!(code, Some(0), "{said}");
    for agent in agents {
        assert_eq!(agent.end(), Some(0), "{said}");
    }
    let folders = ["a", "b"].map(|it| format!("{records}/{it}"));
    let files = folders.iter().flat_map(|it| fs::read_dir(it).unwrap());
    let files = files.map(|it| fs::read_to_string(it.unwrap().path()).unwrap());
    let runs: Vec<RunRecord> = files.map(|it| RunRecord::from_json(&it).unwrap()).collect();
    assert_eq!(runs.len(), 4);
    assert!(runs.iter().all(|it| it.generators == 2));
    let sent = runs.iter().map(|it| it.total.counts.sent).sum::<u64>();
    assert_eq!(lab.responder.counters().get("queries received"), sent);
}
