//! Cures: a command, a statement of a configuration file, a flag, or words.

use schemars::JsonSchema;
use serde::Serialize;

/// Where a cure is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// A command in the shell, on the generating host unless the cure says otherwise.
    Shell,
    /// A command as root, on the generating host.
    Root,
    /// A command as root, on the server's host.
    Server,
    /// A command as root, on the host of a BIND.
    Rndc,
    /// A statement in the `options` block of BIND's named.conf.
    NamedConf,
    /// A line in the `server:` section of unbound.conf.
    UnboundConf,
    /// A line in the `server:` section of knot.conf.
    KnotConf,
    /// A line in the server block of CoreDNS's Corefile.
    Corefile,
    /// A flag of throng.
    Throng,
    /// Words for a person.
    Words,
}

impl Place {
    /// Prefix of a cure that is printed alone; empty for plain text.
    pub fn label(self) -> &'static str {
        match self {
            Place::Shell => "shell",
            Place::Root => "as root",
            Place::Server => "on the server, as root",
            Place::Rndc => "BIND, on the server, as root",
            Place::NamedConf => "BIND, named.conf, options",
            Place::UnboundConf => "Unbound, unbound.conf, server",
            Place::KnotConf => "Knot DNS, knot.conf, server",
            Place::Corefile => "CoreDNS, Corefile, server block",
            Place::Throng => "throng",
            Place::Words => "",
        }
    }
}

impl Place {
    /// The one product that knows it; none where it is not a product's.
    pub(crate) fn product(self) -> Option<&'static str> {
        match self {
            Place::Rndc | Place::NamedConf => Some("BIND"),
            Place::UnboundConf => Some("Unbound"),
            Place::KnotConf => Some("Knot DNS"),
            Place::Corefile => Some("CoreDNS"),
            _ => None,
        }
    }

    /// All places that only one product knows.
    pub(crate) const OF_PRODUCTS: [Place; 4] = [
        Place::NamedConf,
        Place::UnboundConf,
        Place::KnotConf,
        Place::Corefile,
    ];
}

/// One way out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Cure {
    /// Where it is applied.
    pub place: Place,
    /// The command, statement or flag as it is to be typed, or words.
    pub how: String,
}

impl Cure {
    /// As it is to be typed at that place.
    pub fn new(place: Place, how: impl Into<String>) -> Self {
        Cure {
            place,
            how: how.into(),
        }
    }

    /// A command in the shell.
    pub(crate) fn shell(how: impl Into<String>) -> Self {
        Cure::new(Place::Shell, how)
    }

    /// A statement in the options of BIND.
    pub(crate) fn named(how: impl Into<String>) -> Self {
        Cure::new(Place::NamedConf, how)
    }

    /// A flag of throng.
    pub(crate) fn throng(how: impl Into<String>) -> Self {
        Cure::new(Place::Throng, how)
    }

    /// Words for a person.
    pub(crate) fn words(how: impl Into<String>) -> Self {
        Cure::new(Place::Words, how)
    }

    /// Sets a kernel parameter of the generating host.
    pub(crate) fn sysctl(name: &str, value: impl std::fmt::Display) -> Self {
        Cure::new(Place::Root, sysctl(name, value))
    }

    /// Sets a kernel parameter of the server's host.
    pub(crate) fn server_sysctl(name: &str, value: impl std::fmt::Display) -> Self {
        Cure::new(Place::Server, sysctl(name, value))
    }

    /// Raises the limit of open files for processes started from this shell.
    pub(crate) fn open_files(files: u64) -> Self {
        Cure::new(
            Place::Root,
            format!("prlimit --pid $$ --nofile={files}:{files}"),
        )
    }

    /// Exempts datagrams from or to port 53 (`sport`, `dport`) from conntrack.
    pub(crate) fn untracked(chain: &str, port: &str) -> Self {
        let rule = format!("iptables -t raw -I {chain} -p udp --{port} 53 -j NOTRACK");
        Cure::new(Place::Root, rule)
    }

    /// Traces the path to the (first) target by packets of that kind, hop by hop.
    pub(crate) fn trace_path(protocol: &str, targets: &str) -> Self {
        let host = Cure::host_of(targets);
        Cure::shell(format!("mtr --report --{protocol} {host}"))
    }

    /// The address of the first of several targets, without its port.
    pub(crate) fn host_of(targets: &str) -> String {
        let target = targets.split(',').next().unwrap_or(targets);
        let address = target.parse::<std::net::SocketAddr>();
        address.map_or_else(|_| target.to_owned(), |it| it.ip().to_string())
    }

    /// Shows who uses the CPUs.
    pub(crate) fn busiest_processes() -> Self {
        Cure::shell("ps -eo pcpu,comm --sort=-pcpu | head")
    }

    /// Nothing on this host helps against a hypervisor that gives its CPUs to others.
    pub(crate) fn dedicated_cpus() -> Self {
        Cure::words(
            "measure on dedicated CPUs: another instance type, or a host without neighbours",
        )
    }

    /// The cure as one sentence, as reports print it.
    pub fn sentence(&self) -> String {
        match self.place {
            Place::Words => self.how.clone(),
            Place::Throng => format!("give throng {}", self.how),
            place => format!("{}: {}", place.label(), self.how),
        }
    }
}

fn sysctl(name: &str, value: impl std::fmt::Display) -> String {
    let value = value.to_string();
    match value.contains(' ') {
        true => format!("sysctl -w {name}=\"{value}\""),
        false => format!("sysctl -w {name}={value}"),
    }
}
