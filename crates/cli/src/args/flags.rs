//! What each flag of `throng run` is for, in one table: whose it is, where it means something, and
//! which commands take it.
//!
//! A flag that is given where it does nothing is refused: a figure must not hide what it does not
//! measure. That it is given says the parser, or a scenario; a value that equals the default is
//! given too.

use super::given::Given;
use clap::Arg;
use proto::Transport;

use Asker::{Capacity, Capture, Profile, Ramp, Transports};

/// Whose a flag is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// The run's as a whole: no group of clients has its own.
    Run,
    /// Of a group of clients.
    Group,
}

/// Transports over which a flag means something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Over {
    All,
    Tls,
    /// TLS with records of its own, which QUIC has not.
    TlsRecords,
    Http,
    Connections,
    Tcp,
    Datagrams,
    Udp,
    Doq,
}

/// Between whom the run has to be for a flag to mean something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Anywhere,
    /// The kernel's sockets, or an interface.
    Sockets,
    Interface,
    Simulation,
    /// The responder of a self-test or a simulation.
    Responder,
    /// A server that the user names.
    Server,
}

/// Which of ping, eval and trace take a flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Calls {
    None,
    /// Ping and eval, which are runs.
    Runs,
    /// Trace too.
    All,
}

/// Who decides what a flag would say: a command, or what the clients are made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asker {
    /// `throng replay`.
    Capture,
    /// `--profile`.
    Profile,
    Capacity,
    Ramp,
    /// `throng compare-transports`.
    Transports,
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flag {
    /// Its long name.
    pub(crate) name: &'static str,
    pub(crate) scope: Scope,
    over: Over,
    at: At,
    /// It changes questions that are written as text, not whole messages.
    is_of_text: bool,
    /// It says nothing without that one.
    needed: Option<&'static str>,
    calls: Calls,
    /// What it does that a scenario may not decide, unless the user trusts the file.
    by_user: Option<&'static str>,
    /// Where it has no place, and what to do instead.
    refused: &'static [(Asker, &'static str)],
}

const DECIDES: &str = "the search decides what is offered";
const OF_A_RUN: &str = "use it with `throng run`";
const STARTS: &str = "decides which programs are started";
const WRITES: &str = "decides which files are written";
const OPENS: &str = "opens a port to agents";
const SERVES: &str = "opens a port to scrapers";
const SHOWS: &str = "opens a port to browsers";
const POSTS: &str = "decides which host gets the results";
const NOTHING_TO_SAY: &str = "clients, questions and times are given";

/// Every flag of `throng run`.
pub(crate) const FLAGS: [Flag; 156] = [
    // Population
    group("per-client").not_with(&[
        (Capture, NOTHING_TO_SAY),
        (Profile, NOTHING_TO_SAY),
        (Capacity, DECIDES),
        (Ramp, "use --to"),
    ]),
    group("script").not_with(&[
        (Capture, NOTHING_TO_SAY),
        (Profile, NOTHING_TO_SAY),
        (Capacity, DECIDES),
        (Ramp, "use --to"),
    ]),
    group("shape").not_with(&[
        (Capture, NOTHING_TO_SAY),
        (Capacity, DECIDES),
        (Ramp, "use --over"),
    ]),
    group("join-after").not_with(&[(Capture, NOTHING_TO_SAY)]),
    group("leave-after").not_with(&[(Capture, NOTHING_TO_SAY)]),
    group("reset").not_with(&[(Capture, NOTHING_TO_SAY)]),
    group("profile").not_with(&[
        (Capture, NOTHING_TO_SAY),
        (Capacity, DECIDES),
        (Ramp, "use `throng run` with --shape"),
    ]),
    group("profile-zone").not_with(&[(Capture, NOTHING_TO_SAY)]),
    group("profile-mix").not_with(&[
        (Capture, NOTHING_TO_SAY),
        (
            Transports,
            "`throng run --profile FILE --profile-mix` is one run over all of them",
        ),
    ]),
    group("rate-factor").not_with(&[(Capture, NOTHING_TO_SAY)]),
    // Target
    group("server").asked_by(Calls::All),
    group("transport").asked_by(Calls::Runs),
    group("allow-public")
        .asked_by(Calls::All)
        .by_user("permits load on public addresses"),
    run("no-preflight").asked_by(Calls::Runs),
    // Questions
    group("names").not_with(&[(Capture, NOTHING_TO_SAY)]),
    group("names-format").not_with(&[(Capture, NOTHING_TO_SAY)]),
    group("no-recursion").asked_by(Calls::All).of_text(),
    group("edns-size").asked_by(Calls::All).of_text(),
    group("dnssec").asked_by(Calls::All).of_text(),
    group("edns-option").asked_by(Calls::All).of_text(),
    group("edns-padding").asked_by(Calls::Runs).of_text(),
    group("allow-plain-padding").asked_by(Calls::Runs),
    group("edns-keepalive").asked_by(Calls::Runs).of_text(),
    group("nsid").asked_by(Calls::Runs).of_text(),
    group("tsig").asked_by(Calls::Runs),
    group("tsig-file").asked_by(Calls::Runs),
    group("tcp-fallback").over(Over::Udp),
    group("question-order").not_with(&[(Capture, NOTHING_TO_SAY), (Profile, NOTHING_TO_SAY)]),
    group("zipf").not_with(&[(Capture, NOTHING_TO_SAY), (Profile, NOTHING_TO_SAY)]),
    group("qtypes")
        .of_text()
        .not_with(&[(Capture, NOTHING_TO_SAY), (Profile, NOTHING_TO_SAY)]),
    group("random-labels").not_with(&[(Capture, NOTHING_TO_SAY), (Profile, NOTHING_TO_SAY)]),
    group("walk").not_with(&[(Capture, NOTHING_TO_SAY), (Profile, NOTHING_TO_SAY)]),
    group("water-torture")
        .of_text()
        .not_with(&[(Capture, NOTHING_TO_SAY), (Profile, NOTHING_TO_SAY)]),
    group("label-octets").not_with(&[(Capture, NOTHING_TO_SAY)]),
    group("label-seed").not_with(&[
        (Capture, NOTHING_TO_SAY),
        (
            Transports,
            "each run would query the names of the one before",
        ),
    ]),
    group("cache-hit-ratio").not_with(&[(Capture, NOTHING_TO_SAY), (Profile, NOTHING_TO_SAY)]),
    group("cache-ttl").not_with(&[(Capture, NOTHING_TO_SAY)]),
    group("hot-names").not_with(&[(Capture, NOTHING_TO_SAY)]),
    // Load
    group("outstanding").not_with(&[
        (Capture, NOTHING_TO_SAY),
        (Profile, NOTHING_TO_SAY),
        (Capacity, DECIDES),
        (Ramp, "use --max-outstanding"),
    ]),
    group("max-rate").not_with(&[
        (Capture, NOTHING_TO_SAY),
        (Profile, NOTHING_TO_SAY),
        (Capacity, DECIDES),
        (Ramp, "use --to"),
    ]),
    group("rate").not_with(&[
        (Capture, NOTHING_TO_SAY),
        (Profile, NOTHING_TO_SAY),
        (Capacity, "use --start and --max"),
        (Ramp, "use --to"),
    ]),
    group("arrival")
        .needs("rate")
        .not_with(&[(Capture, NOTHING_TO_SAY)]),
    group("burst")
        .needs("rate")
        .not_with(&[(Capture, NOTHING_TO_SAY)]),
    group("clients").not_with(&[(Capture, NOTHING_TO_SAY)]),
    group("timeout").asked_by(Calls::All),
    // Length
    run("duration").not_with(&[
        (Capacity, "use --trial-duration"),
        (Ramp, "use --over and --sustain"),
    ]),
    run("warmup").not_with(&[(Capture, NOTHING_TO_SAY), (Ramp, "a ramp begins slowly")]),
    group("queries").not_with(&[(Capacity, "use --trial-duration")]),
    group("loops").not_with(&[
        (Profile, NOTHING_TO_SAY),
        (Capacity, "use --trial-duration"),
    ]),
    // Generator
    run("workers"),
    run("agents").at(At::Sockets),
    run("hosts").at(At::Server).by_user(STARTS),
    run("ssh").at(At::Server).needs("hosts").by_user(STARTS),
    run("listen").at(At::Server).needs("keys").by_user(OPENS),
    run("keys").at(At::Server).needs("listen").by_user(OPENS),
    run("barrier-timeout").at(At::Server).needs("listen"),
    run("min-agents").at(At::Server).needs("listen"),
    run("on-agent-loss").at(At::Sockets),
    run("cpus").at(At::Sockets),
    group("local-address").asked_by(Calls::All),
    group("local-port"),
    run("socket-buffer").asked_by(Calls::All).at(At::Sockets),
    run("no-offload").over(Over::Datagrams).at(At::Sockets),
    run("timestamps"),
    run("tcp-quickack")
        .asked_by(Calls::Runs)
        .over(Over::Tcp)
        .at(At::Sockets),
    run("seed"),
    run("driver").asked_by(Calls::Runs),
    run("interface").at(At::Interface),
    // TLS
    group("tls-ca")
        .asked_by(Calls::Runs)
        .over(Over::Tls)
        .at(At::Server),
    group("tls-name")
        .asked_by(Calls::Runs)
        .over(Over::Tls)
        .at(At::Server),
    group("tls-insecure").asked_by(Calls::Runs).over(Over::Tls),
    group("tls-pin")
        .asked_by(Calls::Runs)
        .over(Over::Tls)
        .at(At::Server),
    group("tls-version").asked_by(Calls::Runs).over(Over::Tls),
    group("tls-ciphers").asked_by(Calls::Runs).over(Over::Tls),
    group("tls-groups").asked_by(Calls::Runs).over(Over::Tls),
    group("tls-resume").asked_by(Calls::Runs).over(Over::Tls),
    group("tls-early-data")
        .asked_by(Calls::Runs)
        .over(Over::Tls),
    group("tls-cert")
        .asked_by(Calls::Runs)
        .over(Over::Tls)
        .at(At::Server),
    group("tls-key")
        .asked_by(Calls::Runs)
        .over(Over::Tls)
        .at(At::Server),
    group("tls-alpn").asked_by(Calls::Runs).over(Over::Tls),
    group("tls-no-sni").asked_by(Calls::Runs).over(Over::Tls),
    group("tls-keylog")
        .asked_by(Calls::Runs)
        .over(Over::Tls)
        .by_user(WRITES),
    group("tls-stock")
        .asked_by(Calls::Runs)
        .over(Over::TlsRecords),
    // Output
    run("record")
        .asked_by(Calls::Runs)
        .by_user(WRITES)
        .not_with(&[(Capacity, "use --records FOLDER")]),
    run("force").asked_by(Calls::Runs).by_user(WRITES),
    run("format").asked_by(Calls::Runs),
    run("details").not_with(&[
        (Capacity, OF_A_RUN),
        (Ramp, OF_A_RUN),
        (Transports, OF_A_RUN),
    ]),
    run("interval").asked_by(Calls::Runs),
    run("goodput"),
    run("label").asked_by(Calls::Runs),
    run("observe")
        .at(At::Sockets)
        .by_user("decides which programs and hosts are queried, with which credentials"),
    run("metrics").by_user(SERVES),
    run("grafana").by_user(POSTS),
    run("tui"),
    run("web").by_user(SHOWS),
    run("quiet"),
    // Conditions
    run("fail-if").not_with(&[
        (Capacity, OF_A_RUN),
        (Ramp, OF_A_RUN),
        (Transports, "or compare records: throng compare A B"),
    ]),
    run("require").not_with(&[
        (Capacity, OF_A_RUN),
        (Ramp, OF_A_RUN),
        (Transports, "or compare records: throng compare A B"),
    ]),
    run("undecided"),
    run("abort-if").not_with(&[
        (Capacity, "the search has its objective"),
        (Ramp, "use --max-loss, --max-outstanding and --max-behind"),
        (Transports, OF_A_RUN),
    ]),
    run("junit").by_user(WRITES),
    // Connections
    group("queries-per-connection")
        .asked_by(Calls::Runs)
        .over(Over::Connections),
    group("connection-duration").over(Over::Connections),
    group("connection-idle-timeout").over(Over::Connections),
    group("reconnect-delay").over(Over::Connections),
    group("pipeline").over(Over::Connections),
    group("connect-rate").over(Over::Connections),
    group("doq-allow-stop-sending").over(Over::Doq),
    group("tcp-fast-open").asked_by(Calls::Runs).over(Over::Tcp),
    // Stub resolver
    group("retry"),
    group("server-order"),
    group("failover-rcodes"),
    group("server-dead-for"),
    group("race-delay").over(Over::Tcp),
    // DNS over HTTPS
    group("doh-method").asked_by(Calls::Runs).over(Over::Http),
    group("doh-path").asked_by(Calls::Runs).over(Over::Http),
    group("doh-authority")
        .asked_by(Calls::Runs)
        .over(Over::Http),
    group("doh-header").asked_by(Calls::Runs).over(Over::Http),
    // Simulation (--driver sim)
    run("sim-delay").at(At::Simulation),
    run("sim-jitter").at(At::Simulation),
    run("sim-loss").at(At::Simulation),
    run("sim-duplicate").at(At::Simulation),
    run("sim-reorder").at(At::Simulation),
    run("sim-service-time").at(At::Simulation),
    run("sim-workers").at(At::Simulation),
    run("sim-queue").at(At::Simulation),
    run("sim-accept-time").at(At::Simulation),
    run("sim-backlog")
        .at(At::Simulation)
        .needs("sim-accept-time"),
    run("sim-handshake-time").at(At::Simulation),
    run("sim-resumption-time")
        .at(At::Simulation)
        .needs("sim-handshake-time"),
    run("sim-cache-ttl").at(At::Simulation),
    run("sim-cache-size")
        .at(At::Simulation)
        .needs("sim-cache-ttl"),
    run("sim-miss-time")
        .at(At::Simulation)
        .needs("sim-cache-ttl"),
    run("sim-miss-service-time")
        .at(At::Simulation)
        .needs("sim-cache-ttl"),
    // Built-in responder (self-test and simulation)
    run("delay").at(At::Responder),
    run("loss").at(At::Responder),
    run("rcodes").at(At::Responder),
    run("truncate").at(At::Responder),
    run("duplicate").at(At::Responder),
    run("wrong-id").at(At::Responder),
    run("wrong-question").at(At::Responder),
    run("wrong-qr").at(At::Responder),
    run("wrong-media-type").at(At::Responder),
    run("garbage").at(At::Responder),
    run("oversize").at(At::Responder),
    run("reset-streams").at(At::Responder),
    run("http-statuses").at(At::Responder),
    run("quic-retry").at(At::Responder),
    run("quic-version-negotiation").at(At::Responder),
    run("quic-refuse").at(At::Responder),
    run("quic-ignore").at(At::Responder),
    run("stall").at(At::Responder),
    run("ceiling").at(At::Responder),
    run("tcp-clients").at(At::Responder),
    run("idle-timeout").at(At::Responder),
    run("end-after").at(At::Responder),
];

const fn run(name: &'static str) -> Flag {
    Flag {
        scope: Scope::Run,
        ..group(name)
    }
}

const fn group(name: &'static str) -> Flag {
    Flag {
        name,
        scope: Scope::Group,
        over: Over::All,
        at: At::Anywhere,
        is_of_text: false,
        needed: None,
        calls: Calls::None,
        by_user: None,
        refused: &[],
    }
}

impl Flag {
    const fn over(self, over: Over) -> Flag {
        Flag { over, ..self }
    }

    const fn at(self, at: At) -> Flag {
        Flag { at, ..self }
    }

    const fn of_text(self) -> Flag {
        Flag {
            is_of_text: true,
            ..self
        }
    }

    const fn needs(self, needed: &'static str) -> Flag {
        Flag {
            needed: Some(needed),
            ..self
        }
    }

    const fn asked_by(self, calls: Calls) -> Flag {
        Flag { calls, ..self }
    }

    /// It starts programs, writes files or consents: a file may not decide that.
    const fn by_user(self, does: &'static str) -> Flag {
        Flag {
            by_user: Some(does),
            ..self
        }
    }

    const fn not_with(self, refused: &'static [(Asker, &'static str)]) -> Flag {
        Flag { refused, ..self }
    }

    /// What it does that a scenario may not decide.
    pub(crate) fn reserved_for_user(&self) -> Option<&'static str> {
        self.by_user
    }

    /// What to do instead, where it has no place.
    pub(crate) fn refused_by(&self, asker: Asker) -> Option<&'static str> {
        let mut refused = self.refused.iter();
        refused.find(|(by, _)| *by == asker).map(|(_, cure)| *cure)
    }

    /// True if it means something over another of these transports.
    pub(crate) fn suits_another(&self, own: Transport, all: &[Transport]) -> bool {
        all.iter().any(|it| *it != own && self.suits(*it))
    }

    /// True if it means something over this transport.
    pub(crate) fn suits(&self, transport: Transport) -> bool {
        match self.over {
            Over::All => true,
            Over::Tls => transport.has_tls(),
            Over::TlsRecords => transport.has_tls() && !transport.is_quic(),
            Over::Http => transport.is_doh(),
            Over::Connections => transport.has_connections(),
            Over::Tcp => transport.is_stream(),
            Over::Datagrams => !transport.is_stream(),
            Over::Udp => transport == Transport::Udp,
            Over::Doq => transport == Transport::Doq,
        }
    }

    /// True if it is about TLS.
    pub(crate) fn is_of_tls(&self) -> bool {
        matches!(self.over, Over::Tls | Over::TlsRecords)
    }

    /// Why it would do nothing in that situation, and the cure beside leaving it out.
    pub(crate) fn idle(&self, situation: &Situation<'_>) -> Option<(String, String)> {
        let transport = situation.transport;
        if !self.suits(transport) {
            return Some(self.unsuited(transport));
        }
        if self.is_of_tls() && situation.is_plain_http {
            let what = "an http:// server, which has no TLS";
            return Some((what.to_owned(), "give an https:// URI".to_owned()));
        }
        if let Some(needed) = self.needed.filter(|needed| !situation.is_given(needed)) {
            let what = match needed {
                "rate" => "a load without a rate".to_owned(),
                other => format!("a server without --{other}"),
            };
            return Some((what, format!("add --{needed}")));
        }
        if situation.is_profile && self.refused_by(Profile).is_some() {
            let what = "clients that are drawn from a profile";
            return Some((what.to_owned(), "leave out --profile".to_owned()));
        }
        if self.is_of_text && situation.are_messages {
            let what = "whole messages, which are sent as they are";
            return Some((what.to_owned(), "use --names-format text".to_owned()));
        }
        self.misplaced(situation)
    }

    /// Over which transport it does nothing, and over which it does something.
    fn unsuited(&self, transport: Transport) -> (String, String) {
        let (why, cure) = match self.over {
            Over::All | Over::Tls => ("", "use --transport dot"),
            Over::Http => ("", "use --transport doh2 or doh3"),
            Over::TlsRecords => ("", "use --transport dot or doh2"),
            Over::Datagrams => ("", "use --transport udp"),
            Over::Connections => ("has no connections", "use another transport"),
            Over::Tcp => ("has no TCP connections", "use tcp, dot or doh2"),
            Over::Udp => ("has no truncated responses to repeat", "use transport udp"),
            Over::Doq => ("has no such rule", "use transport doq"),
        };
        let what = match why {
            "" => format!("transport {transport}"),
            why => format!("transport {transport}: {transport} {why}"),
        };
        (what, cure.to_owned())
    }

    fn misplaced(&self, situation: &Situation<'_>) -> Option<(String, String)> {
        let is_simulated = situation.is_simulated;
        let (is_misplaced, what, cure) = match self.at {
            At::Anywhere => return None,
            At::Sockets => (is_simulated, "a simulation", "use --driver epoll"),
            At::Interface => (
                !situation.is_xdp,
                "sockets of the kernel",
                "add --driver xdp",
            ),
            At::Simulation => (!is_simulated, "sockets of the kernel", "add --driver sim"),
            At::Server => (
                situation.server.is_none(),
                "a self-test, which verifies a certificate of its own",
                "give a server with --server",
            ),
            At::Responder => {
                let server = situation.server?;
                let what = format!("{server}: it is for the built-in responder");
                return Some((what, "leave out --server".to_owned()));
            }
        };
        is_misplaced.then(|| (what.to_owned(), cure.to_owned()))
    }
}

/// What decides whether a flag does something.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Situation<'a> {
    pub(crate) transport: Transport,
    pub(crate) is_plain_http: bool,
    pub(crate) is_simulated: bool,
    pub(crate) is_xdp: bool,
    pub(crate) is_profile: bool,
    /// The questions are whole messages.
    pub(crate) are_messages: bool,
    pub(crate) server: Option<&'a str>,
    pub(crate) given: &'a [Given],
}

impl Situation<'_> {
    fn is_given(&self, name: &str) -> bool {
        self.given.iter().any(|given| given.name == name)
    }
}

/// The row of a flag; none of one that another command has of its own.
pub(crate) fn find(name: &str) -> Option<&'static Flag> {
    FLAGS.iter().find(|flag| flag.name == name)
}

/// The flag as the command has it that `asker` stands for: out of sight if it has no place there.
pub(crate) fn shown(arg: Arg, asker: Asker) -> Arg {
    let flag = arg.get_long().and_then(find);
    match flag.and_then(|flag| flag.refused_by(asker)) {
        Some(_) => arg.hide(true),
        None => arg,
    }
}

/// The flag as ping, eval (`Calls::Runs`) and trace (`Calls::All`) have it.
pub(crate) fn called(arg: Arg, by: Calls) -> Arg {
    let name = arg.get_long().unwrap_or_default();
    // A command's own flag in the place of one of a run has another ID.
    let is_of_run = arg.get_id().as_str().replace('_', "-") == name;
    let is_taken = |flag: &Flag| flag.calls == Calls::All || flag.calls == by;
    match find(name) {
        Some(flag) if is_of_run && !is_taken(flag) => arg.hide(true),
        _ => arg,
    }
}

#[cfg(test)]
mod tests;
