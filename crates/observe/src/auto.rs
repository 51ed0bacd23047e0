//! `auto`: for a target on this host, the process behind its port, its product, and what can be
//! asked of it without any set-up: its files in /proc, the host's, and those control sockets and
//! statistics that it offers at sockets of its own.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use crate::asked::Asked;
use crate::http::Credentials;
use crate::network::Network;
use crate::open::{Opened, open};
use crate::proc::{Program, Root, Target, is_of_this_host};
use crate::profile::{Access, Picker, Profile};
use crate::profiles;
use crate::stream::{Allowance, Limits};

/// Ports of a program that are tried for statistics, at most.
const PORTS_MAX: usize = 8;
/// How long each may take to answer.
const TIME_MAX: Duration = Duration::from_millis(500);

/// What was found.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// What can be observed.
    pub asked: Vec<Asked>,
    /// What could not be found, and why.
    pub notes: Vec<String>,
}

/// True if a process that this user can see serves that address, in whatever network namespace of
/// this host.
pub fn is_served_here(target: SocketAddr) -> bool {
    !processes_at(target).is_empty()
}

/// The processes of this host that serve that address, in whatever network namespace.
pub fn processes_at(target: SocketAddr) -> Vec<u32> {
    let port = Target::Port(Some(target.ip()), target.port());
    let processes = port.processes(&Root::this()).into_iter();
    processes.map(|(pid, _)| pid).collect()
}

/// Looks for the process that serves that address, and what it offers.
pub fn find(target: SocketAddr) -> Found {
    let mut found = Found::default();
    let (ip, port) = (target.ip(), target.port());
    let is_own = is_of_this_host(ip);
    let program = Program::found(Root::this(), Target::Port(Some(ip), port));
    // The address may be that of another network namespace of this host.
    if is_own || program.is_ok() {
        found.asked.push(Asked::new(&profiles::HOST, ""));
    }
    let program = match program {
        Ok(program) => program,
        Err(gap) => {
            found.notes.push(match is_own {
                true => format!("{gap}, as far as this user can see"),
                false => format!("{ip} is not an address of this host: name what to observe"),
            });
            return found;
        }
    };
    if !is_own {
        let what = "the target is on this host, in another network namespace: it and the generator \
                    compete for its CPUs";
        found.notes.push(what.to_owned());
    }
    // By its port: a server may have several processes, and other ones after a restart.
    found
        .asked
        .push(Asked::new(&profiles::PROCESS, target.to_string()));
    let Some(name) = program.name() else {
        return found;
    };
    match program.product() {
        None => found
            .notes
            .push(format!("`{name}` is a product without a profile")),
        Some(profile) => {
            let (places, refused) = places(profile, &program);
            match places.into_iter().find(answers) {
                Some(asked) => found.asked.push(asked),
                None => {
                    found.notes.push(format!(
                        "{} offers no statistics (it takes {})",
                        profile.product, profile.set_up
                    ));
                    found.notes.extend(refused);
                }
            }
        }
    }
    found
}

/// Where the program might be asked, and which of its sockets are not asked, and why.
fn places(profile: &'static Profile, program: &Program) -> (Vec<Asked>, Vec<String>) {
    let first = program.processes().first();
    let network = first.and_then(|(pid, _)| Network::of(&Root::this(), *pid));
    let asked = |place: String| Asked {
        network: network.clone().unwrap_or_default(),
        ..Asked::new(profile, place)
    };
    let addresses = || program.tcp_only().into_iter().take(PORTS_MAX);
    match profile.access {
        Access::Exposition(_) | Access::Pod(_) | Access::BindChannel => {
            let urls = addresses().map(|it| asked(format!("http://{}", reachable(it))));
            (urls.collect(), Vec::new())
        }
        Access::UnboundControl => {
            let (mut places, refused) = sockets(program, asked);
            places.extend(addresses().map(|it| asked(reachable(it).to_string())));
            (places, refused)
        }
        Access::KnotControl => sockets(program, asked),
        _ => (Vec::new(), Vec::new()),
    }
}

/// The Unix sockets of the program, each in the file system that its process sees.
fn sockets(program: &Program, asked: impl Fn(String) -> Asked) -> (Vec<Asked>, Vec<String>) {
    let (mut places, mut refused) = (Vec::new(), Vec::new());
    for (inside, path) in program.unix_sockets().into_iter().take(PORTS_MAX) {
        let found = inside.and_then(|inside| {
            inside.socket(Path::new(&path))?;
            Ok(inside)
        });
        match found {
            Ok(inside) => places.push(Asked {
                inside: Some(inside),
                ..asked(path)
            }),
            Err(why) => refused.push(format!("its socket `{path}` is not asked: {why}")),
        }
    }
    (places, refused)
}

/// True if it is what it is taken for: the server answers, with series of the profile.
fn answers(asked: &Asked) -> bool {
    let mut picker = Picker::new(asked.profile, &[], Vec::new());
    let Ok(Opened::Source(mut source)) = open(asked, &picker) else {
        return false;
    };
    let allowance = Allowance::starting_now(Limits {
        time: TIME_MAX,
        ..Limits::default()
    });
    let answer = source.read(&allowance);
    answer.is_ok_and(|answer| !picker.pick(&answer.reading).is_empty())
}

/// Where a socket that is bound to all addresses is reached from here.
fn reachable(bound: SocketAddr) -> SocketAddr {
    let ip = match bound.ip() {
        ip if !ip.is_unspecified() => ip,
        IpAddr::V4(_) => IpAddr::from([127, 0, 0, 1]),
        IpAddr::V6(_) => IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1]),
    };
    SocketAddr::new(ip, bound.port())
}

impl Asked {
    /// With these credentials.
    pub fn with_credentials(self, credentials: Credentials) -> Asked {
        Asked {
            credentials,
            ..self
        }
    }
}
