//! `auto`: for a target on this host, the process behind its port, its product, and what can be
//! asked of it without any set-up: its files in /proc, the host's, and those control sockets and
//! statistics that it offers at sockets of its own.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use crate::asked::Asked;
use crate::gap::Gap;
use crate::http::Credentials;
use crate::network::Network;
use crate::open::{Opened, open};
use crate::proc::{Program, Root, Target, is_of_this_host};
use crate::profile::{Access, Picker, Profile};
use crate::profiles;
use crate::stream::{Allowance, Limits};

/// Ports of a program that are tried for statistics, at most.
const PORTS_MAX: usize = 8;
/// How long each place may take to answer at first: most do so at once, and some never.
const FIRST: Duration = Duration::from_millis(500);
/// How long those may take that did not: the host may be busy.
const AGAIN: Duration = Duration::from_secs(3);

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
            let (answering, slow) = answering(places);
            match answering {
                Some(asked) => found.asked.push(asked),
                None => {
                    let product = profile.product;
                    found.notes.push(match slow.first() {
                        None => format!(
                            "{product} offers no statistics (it takes {})",
                            profile.set_up
                        ),
                        Some(slow) => format!(
                            "{product} did not answer at {} within {} s: if it has statistics \
                             there, give --observe {},timeout=10s",
                            slow.place,
                            AGAIN.as_secs(),
                            slow.shown()
                        ),
                    });
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

/// The first of the places that answers, and without one those that were too slow to tell.
fn answering(mut places: Vec<Asked>) -> (Option<Asked>, Vec<Asked>) {
    for time in [FIRST, AGAIN] {
        let mut slow = Vec::new();
        for asked in places {
            match answers(&asked, time) {
                Ok(true) => return (Some(asked), Vec::new()),
                Err(Gap::Slow(_)) => slow.push(asked),
                Ok(false) | Err(_) => {}
            }
        }
        places = slow;
    }
    (None, places)
}

/// Whether it is what it is taken for: the server answers, with series of the profile.
fn answers(asked: &Asked, time: Duration) -> Result<bool, Gap> {
    let mut picker = Picker::new(asked.profile, &[], Vec::new());
    let Ok(Opened::Source(mut source)) = open(asked, &picker) else {
        return Ok(false);
    };
    let allowance = Allowance::starting_now(Limits {
        time,
        ..Limits::default()
    });
    let answer = source.read(&allowance)?;
    Ok(!picker.pick(&answer.reading).is_empty())
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

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use testing::ports::ClosedTcpPort;

    use super::*;

    #[test]
    fn place_that_never_answers_is_slow_and_one_that_refuses_is_not() {
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let closed = ClosedTcpPort::new();
        let profile = profiles::by_name("coredns").unwrap();
        let asked = |at: SocketAddr| Asked::new(profile, format!("http://{at}"));
        let silent_at = silent.local_addr().unwrap();
        let (found, slow) = answering(vec![asked(closed.address()), asked(silent_at)]);
        assert!(found.is_none());
        let places: Vec<&str> = slow.iter().map(|it| it.place.as_str()).collect();
        assert_eq!(places, [format!("http://{silent_at}")]);
    }
}
