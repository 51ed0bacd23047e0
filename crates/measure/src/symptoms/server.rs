//! What observed servers and their kernels counted: CPU, memory, sockets, queries, upstreams.

use super::Figures;
use super::connections;
use super::host::{ALWAYS_THROTTLED, THROTTLED};
use super::losses;
use super::service;
use super::unserved::{never_connected, unserved_by_source};
use crate::interval::per;
use crate::observation::{DROPS, ProgramUse, QueryUse};
use crate::timeline::{Outage, OutageKind};

/// From this share of what it may use on, the CPU of a server is the limit.
const FULL: f64 = 0.9;
/// From this share on nothing of it is left: of what a quota gives that stops it in this share of
/// its periods, and of CPUs alone.
const USED_UP: f64 = 0.95;
const USED_UP_ALONE: f64 = 0.98;
/// From this share of one CPU on, a thread is busy all the time.
const THREAD_FULL: f64 = 0.9;
/// Below this share of its CPUs a server has much to spare.
const MUCH_TO_SPARE: f64 = 0.5;
/// From this share of what it used on, time that threads waited for a CPU matters.
const WAITED: f64 = 0.25;
/// From this many CPUs on it matters at all.
const WAITED_CPUS_MIN: f64 = 0.1;

/// What a server's CPU was to its rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CpuUse {
    /// Its quota stopped it.
    Throttled,
    Full,
    OneThread,
    TakenByOthers,
    /// Less than half of it was used.
    Free,
    /// Neither busy nor idle.
    Some,
}

impl CpuUse {
    pub(crate) fn of(program: &ProgramUse<'_>) -> CpuUse {
        let share = program.cpu_share();
        let thread = program.busiest_thread_cpus.unwrap_or(0.0);
        let waited = program.waited_cpus.unwrap_or(0.0);
        if program.throttled_share >= Some(THROTTLED) {
            CpuUse::Throttled
        } else if share >= Some(FULL) {
            CpuUse::Full
        } else if thread >= THREAD_FULL {
            CpuUse::OneThread
        } else if waited >= WAITED_CPUS_MIN.max(WAITED * program.cpus_used) {
            CpuUse::TakenByOthers
        } else if share.is_some_and(|share| share < MUCH_TO_SPARE) {
            CpuUse::Free
        } else {
            CpuUse::Some
        }
    }

    /// It kept the server from answering more.
    fn limits(self) -> bool {
        matches!(self, CpuUse::Throttled | CpuUse::Full | CpuUse::OneThread)
    }
}

/// Declares symptoms that observed programs show: the positions of those for which it holds.
macro_rules! of_programs {
    ($($(#[doc = $doc:literal])+ $find:ident: $Type:ident = $is:expr;)+) => {$(
        $(#[doc = $doc])+
        pub(crate) struct $Type(Vec<usize>);

        impl AsRef<[usize]> for $Type {
            fn as_ref(&self) -> &[usize] {
                &self.0
            }
        }

        pub(super) fn $find(figures: &Figures<'_>) -> Option<$Type> {
            let is: fn(&Figures<'_>, usize, &ProgramUse<'_>) -> bool = $is;
            let programs = figures.programs.iter().enumerate();
            let programs = programs.filter(|(position, it)| is(figures, *position, it));
            let programs: Vec<usize> = programs.map(|(position, _)| position).collect();
            (!programs.is_empty()).then_some($Type(programs))
        }
    )+};
}

of_programs! {
    /// The target, if nothing of its CPU was left all the time.
    cpu_used_up: ServerCpuUsedUp = |_, position, it| position == 0 && is_used_up(it);
    /// Servers whose CPU kept them from answering more.
    cpu_limits: ServerCpuLimits =
        |_, position, it| CpuUse::of(it).limits() && !(position == 0 && is_used_up(it));
    /// Servers that waited for CPUs which others used.
    cpu_taken: ServerCpuTaken = |figures, position, it| {
        CpuUse::of(it) == CpuUse::TakenByOthers && !is_taken_by_service(figures, position)
    };
    /// Servers whose CPU did not keep them from answering more.
    cpu_left: ServerCpuLeft = |_, _, it| matches!(CpuUse::of(it), CpuUse::Free | CpuUse::Some);
    /// Servers that were short of memory.
    memory_short: ServerMemoryShort = |_, _, it| {
        let memory = MemoryNeed::of(it);
        memory.is_urgent() || memory.full.is_some()
    };
    /// Servers that a signal had stopped.
    stopped: ServerStopped = |_, _, it| it.stopped.0 > 0;
    /// Servers whose UDP sockets dropped datagrams, in a run that sends any.
    datagrams_dropped: ServerDatagramsDropped =
        |figures, _, it| it.udp_drops > 0 && figures.has_datagrams();
    /// Servers in a pod whose network interface dropped packets.
    interface_dropped: ServerInterfaceDropped = |_, _, it| it.interface_drops > 0;
    /// Servers whose listen queue overflowed, in a run that connects over TCP.
    listen_overflow: ServerListenOverflow =
        |figures, _, it| it.listen_overflows > 0 && figures.connects_over_tcp();
}

/// True if hardly anything but the servers with which it has its CPUs in common used them.
fn is_taken_by_service(figures: &Figures<'_>, position: usize) -> bool {
    let others = service::others_on_host(figures).map(|it| it.others_cpus());
    let is_shared = service::sharing_cpus(figures).contains(&position);
    is_shared && others.is_none_or(|others| others < WAITED_CPUS_MIN)
}

fn is_used_up(program: &ProgramUse<'_>) -> bool {
    let is_always_stopped = program.throttled_share >= Some(ALWAYS_THROTTLED);
    let least = match is_always_stopped {
        true => USED_UP,
        false => USED_UP_ALONE,
    };
    CpuUse::of(program).limits() && program.cpu_share() >= Some(least)
}

pub(crate) struct ServersIdle;

pub(super) fn servers_idle(figures: &Figures<'_>) -> Option<ServersIdle> {
    let mut programs = figures.programs.iter();
    let are_free = programs.all(|it| CpuUse::of(it) == CpuUse::Free);
    (!figures.programs.is_empty() && are_free).then_some(ServersIdle)
}

/// From this share of its limit on, memory is short.
const MEMORY_FULL: f64 = 0.95;
/// This many pages a second are waited for where memory is short.
const PAGES_MIN: f64 = 10.0;

/// What a program needed of its memory.
pub(crate) struct MemoryNeed {
    pub(crate) killed: u64,
    /// Pages a second that it waited for.
    pub(crate) pages_per_second: Option<f64>,
    /// The most that it had and its limit, where that was short, in bytes.
    pub(crate) full: Option<(f64, f64)>,
}

impl MemoryNeed {
    pub(crate) fn of(program: &ProgramUse<'_>) -> MemoryNeed {
        let memory = &program.memory;
        let both = memory.bytes_max.zip(memory.limit_bytes);
        let pages = Some(memory.pages_per_second);
        MemoryNeed {
            killed: memory.killed,
            pages_per_second: pages.filter(|it| *it >= PAGES_MIN),
            full: both.filter(|(most, limit)| per(*most, *limit) >= MEMORY_FULL),
        }
    }

    /// It was killed, or waited for pages.
    pub(crate) fn is_urgent(&self) -> bool {
        self.killed > 0 || self.pages_per_second.is_some()
    }
}

/// Queries that the target dropped by its own count.
pub(crate) struct ServerQueriesDropped {
    /// By the name of the counter.
    pub(crate) by_counter: Vec<(&'static str, u64)>,
    explain_losses: bool,
}

impl ServerQueriesDropped {
    pub(crate) fn explain_losses(&self) -> bool {
        self.explain_losses
    }
}

pub(super) fn queries_dropped(figures: &Figures<'_>) -> Option<ServerQueriesDropped> {
    let server = figures.servers.first()?.observation();
    let by_counter = server.all_grown(&DROPS);
    let most = by_counter.iter().map(|(_, number)| *number).max()?;
    let lost = losses::number_lost(figures);
    let are_many = losses::queries_lost(figures).is_some();
    Some(ServerQueriesDropped {
        by_counter,
        explain_losses: are_many && 2 * most >= lost,
    })
}

/// TCP clients that an observed target had at once by its own count: fewer than asked.
pub(crate) struct ServerTcpClients {
    pub(crate) most: u64,
    pub(crate) all: u64,
    pub(crate) others: OtherClients,
}

/// Why an observed server did not have more clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OtherClients {
    /// It turned them away, or left them waiting.
    TurnedAway,
    /// They have other addresses than those that it had.
    OfOtherAddresses,
    /// They never had a connection.
    NeverConnected,
}

pub(super) fn tcp_clients(figures: &Figures<'_>) -> Option<ServerTcpClients> {
    if !figures.connects_over_tcp() {
        return None;
    }
    let all = connections::unserved_clients(figures)?.all;
    let most = figures.servers.first()?.tcp_clients_max?.round() as u64;
    let others = if unserved_by_source(figures).is_some() {
        OtherClients::OfOtherAddresses
    } else if never_connected(figures).is_some() {
        OtherClients::NeverConnected
    } else {
        OtherClients::TurnedAway
    };
    (most < all).then_some(ServerTcpClients { most, all, others })
}

/// From this many bytes a query on, files have something of each: a name and an address take more.
const LOGGED_BYTES_MIN: f64 = 20.0;
/// Of fewer queries a line now and then, or messages at its start, would be as much.
const LOGGED_QUERIES_MIN: u64 = 100;

/// A log of queries, by the bytes for each.
pub(crate) struct ServerLog {
    pub(crate) bytes_each: f64,
}

pub(super) fn log(figures: &Figures<'_>) -> Option<ServerLog> {
    let queries = queries_sent(figures);
    let bytes_each = per(figures.programs.first()?.written_bytes?, queries as f64);
    let is_log = bytes_each >= LOGGED_BYTES_MIN && queries >= LOGGED_QUERIES_MIN;
    is_log.then_some(ServerLog { bytes_each })
}

/// Queries that left this host while the server was observed.
pub(crate) fn queries_sent(figures: &Figures<'_>) -> u64 {
    let (counts, warmup) = (figures.counts, &figures.record.warmup.counts);
    let over_tcp = counts.tcp_fallback.sent + warmup.tcp_fallback.sent;
    counts.sent + warmup.sent + over_tcp + queries_sent_again(figures)
}

/// Those of them that clients sent a second time.
pub(crate) fn queries_sent_again(figures: &Figures<'_>) -> u64 {
    let warmup = &figures.record.warmup.counts;
    figures.counts.stub.retransmitted + warmup.stub.retransmitted
}

/// From this share of the queries on, those that went on to other servers matter.
const SENT_ON: f64 = 0.01;
/// From this share of our latency on, the time that others took is why it is what it is.
const OF_LATENCY: f64 = 0.5;
/// Where queries of an outage waited for others for that share of its length, it is theirs.
const OF_OUTAGE: f64 = 0.2;

/// Other servers to which an observed server sent queries.
pub(crate) struct ServerUpstream {
    pub(crate) queries: f64,
    pub(crate) share: f64,
    /// Most of the latency is theirs, or an outage.
    pub(crate) has_waited: bool,
    /// Some did not answer.
    has_failed: bool,
}

impl ServerUpstream {
    pub(crate) fn is_cause(&self) -> bool {
        self.has_waited || self.has_failed
    }
}

pub(super) fn upstream(figures: &Figures<'_>) -> Option<ServerUpstream> {
    let server = figures.servers.first()?;
    let queries = server.upstream_queries?;
    let share = per(queries, server.queries);
    // Few are those that it asks on its own account, such as a root server at its start.
    let not_passed_on = per(server.not_passed_on() as f64, server.queries);
    let matters = share.max(not_passed_on) >= SENT_ON;
    matters.then(|| ServerUpstream {
        queries,
        share,
        has_waited: is_in_their_outage(figures, server) || takes_their_time(figures, server),
        has_failed: !server.upstream_failures.is_empty(),
    })
}

fn takes_their_time(figures: &Figures<'_>, server: &QueryUse<'_>) -> bool {
    let mean_ns = figures.record.total.distributions.service.mean_ns();
    let upstream = server.upstream_s_mean.zip(server.upstream_queries);
    let Some(((mean_s, queries), own_ns)) = upstream.zip(mean_ns) else {
        return false;
    };
    let waited_ns = mean_s * 1e9 * per(queries, server.queries).min(1.0);
    waited_ns >= OF_LATENCY * own_ns
}

/// While nothing came back, queries waited for the others for much of that time.
fn is_in_their_outage(figures: &Figures<'_>, server: &QueryUse<'_>) -> bool {
    let of_target = [OutageKind::Silence, OutageKind::Errors];
    let outages = figures.outages.each.iter();
    let outages = outages.filter(|it| of_target.contains(&it.kind));
    let Some(longest_ns) = outages.map(Outage::length_ns).max() else {
        return false;
    };
    // Those that come evenly in it wait for half of it on average, others in the same scrape less.
    let waited_s = server.upstream_s_worst.unwrap_or(0.0);
    server.has_failed_checks() || waited_s * 1e9 >= OF_OUTAGE * longest_ns as f64
}

pub(crate) struct ServerCache {
    pub(crate) hit_share: f64,
}

pub(super) fn cache(figures: &Figures<'_>) -> Option<ServerCache> {
    let hit_share = figures.servers.first()?.cache_hit_share?;
    Some(ServerCache { hit_share })
}

/// Up to this share, and this number, a difference of both ends is not reported: a look at the
/// host, queries of monitoring.
const SHARE_MAX: f64 = 0.001;
pub(crate) const NUMBER_MAX: u64 = 10;

/// Queries that were sent to an observed target, and that it counted.
pub(crate) struct ServerCounts {
    pub(crate) sent: u64,
    pub(crate) received: u64,
}

impl ServerCounts {
    pub(crate) fn differ(&self) -> bool {
        let difference = self.sent.abs_diff(self.received);
        difference > NUMBER_MAX && per(difference as f64, self.sent as f64) > SHARE_MAX
    }
}

pub(super) fn counts(figures: &Figures<'_>) -> Option<ServerCounts> {
    if figures.record.degraded.is_some() {
        // It went on counting after the result.
        return None;
    }
    let server = figures.servers.first().filter(|it| it.is_whole)?;
    Some(ServerCounts {
        sent: queries_sent(figures),
        received: server.queries.max(0.0) as u64,
    })
}
