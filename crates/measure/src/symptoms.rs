//! Symptoms: what a run shows, each with its numbers, computed once from its record.
//!
//! A symptom names no cause: rules ([`crate::rules`]) conclude from symptoms, and from nothing
//! else. Each counter that means loss or waiting belongs to a symptom ([`crate::rules`] has the
//! test of it). Whether events are enough to be more than chance is decided in [`significance`].
//!
//! A new symptom is a type and a function in one of the modules, and its line below.

use crate::record::RunRecord;

pub(crate) mod answers;
pub(crate) mod connections;
mod figures;
mod follows_time;
pub(crate) mod generator;
pub(crate) mod host;
pub(crate) mod instances;
pub(crate) mod load;
pub(crate) mod losses;
pub(crate) mod losses_by_client;
pub(crate) mod losses_by_name;
pub(crate) mod path;
mod plateau;
pub(crate) mod scrapes;
pub(crate) mod server;
pub(crate) mod service;
pub(crate) mod set_up;
pub(crate) mod significance;
mod stalls;
pub(crate) mod steps;
pub(crate) mod tail;
pub(crate) mod unserved;
pub(crate) mod worth;

pub(crate) use figures::{Figures, LATENESS_MAX_NS};

use answers::*;
use connections::*;
use generator::*;
use host::*;
use load::*;
use losses::*;
use losses_by_client::*;
use losses_by_name::*;
use path::*;
use scrapes::*;
use server::*;
use service::*;
use set_up::*;
use tail::*;
use unserved::*;
use worth::*;

/// Declares each symptom once: its field, its type, the function that computes it and, where a
/// run may show it without it being much, what makes it much.
macro_rules! symptoms {
    ($($(#[doc = $doc:literal])+
       $field:ident: $Type:ident = $find:path $(, much if $much:path)?;)+) => {
        /// What a run shows; none where it does not.
        pub(crate) struct Symptoms<'a> {
            pub(crate) figures: Figures<'a>,
            $($(#[doc = $doc])+ pub(crate) $field: Option<$Type>,)+
        }

        /// A symptom by name, for the table of rules.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub(crate) enum Symptom {
            $($(#[doc = $doc])+ $Type,)+
        }

        impl<'a> Symptoms<'a> {
            /// Computes all symptoms of the run that `record` describes.
            pub(crate) fn of(record: &'a RunRecord) -> Self {
                Symptoms::of_figures(Figures::of(record))
            }

            pub(crate) fn of_figures(figures: Figures<'a>) -> Self {
                Symptoms { $($field: $find(&figures),)+ figures }
            }

            /// True if the run shows it at all.
            pub(crate) fn show(&self, symptom: Symptom) -> bool {
                match symptom {
                    $(Symptom::$Type => self.$field.is_some(),)+
                }
            }

            /// True if it is much: enough to say what limited the run.
            pub(crate) fn are_much(&self, symptom: Symptom) -> bool {
                match symptom {
                    $(Symptom::$Type => {
                        self.$field.as_ref().is_some_and(|_symptom| true $(&& $much(_symptom))?)
                    })+
                }
            }
        }

        impl Symptom {
            /// All of them, in the order in which they are declared.
            pub(crate) const ALL: &'static [Symptom] = &[$(Symptom::$Type,)+];

            /// Its name.
            pub(crate) fn name(self) -> &'static str {
                match self {
                    $(Symptom::$Type => stringify!($Type),)+
                }
            }

            /// What it is, and from where on it is much.
            pub(crate) fn meaning(self) -> &'static str {
                match self {
                    $(Symptom::$Type => concat!($($doc),+).trim_ascii(),)+
                }
            }
        }
    };
}

symptoms! {
    /// The run opens connections and sends no query.
    connections_only: ConnectionsOnly = set_up::connections_only;
    /// Such a run opened no connection.
    nothing_opened: NothingOpened = set_up::nothing_opened;
    /// In such a run, more than 0.1 % of the connection attempts failed.
    attempts_failed: AttemptsFailed = set_up::attempts_failed;
    /// In such a run, 90 % of the clients were setting up a connection or waited to reconnect.
    clients_in_use: ClientsInUse = set_up::clients_in_use;
    /// The time to set up a connection has a median of at least twice the shortest, while the
    /// clients did little else.
    set_up_queued: SetUpQueued = set_up::set_up_queued;
    /// Over 1 % of the attempts to connect over TCP, all through the run, were refused or got no
    /// answer to their SYN, while others were admitted, and next to none of what these carried was
    /// lost or waited.
    attempts_turned_away: AttemptsTurnedAway = set_up::attempts_turned_away;
    /// In such a run, as many connections were admitted in each interval, however many were
    /// attempted.
    admissions_limited: AdmissionsLimited = set_up::admissions_limited;

    /// No query got a response.
    nothing_answered: NothingAnswered = worth::nothing_answered;
    /// Less than 1 s was measured.
    short_window: ShortWindow = worth::short_window;
    /// Fewer than 11 queries were offered.
    few_queries: FewQueries = worth::few_queries;
    /// At least 1 % of the responses had an RCODE outside of --goodput or were truncated. Much:
    /// over 10 % of the responses are of no use.
    useless_responses: UselessResponses = answers::useless_responses,
        much if UselessResponses::are_many;
    /// 99 % of the responses were NXDOMAIN or NODATA, where --goodput has NOERROR and NXDOMAIN.
    empty_responses: EmptyResponses = answers::empty_responses;
    /// At least 1 % of the messages received match no query: their ID, question or source differs.
    /// Much: 10 %, and half as many as queries without response.
    unmatched_messages: UnmatchedMessages = answers::unmatched_messages,
        much if UnmatchedMessages::are_responses;
    /// At least half of the queries ended with one HTTP status other than 200 and 429, or 5xx where
    /// some were answered.
    http_errors: HttpErrors = answers::http_errors;
    /// Queries that HTTP or their stream ended without a DNS message. Much: over 1 %.
    exchanges_failed: ExchangesFailed = answers::exchanges_failed,
        much if ExchangesFailed::are_many;

    /// Over 2 % of the queries were lost in the open loop over UDP, as many were answered in each
    /// 10 ms, 100 ms or second, of the run or of its second half, and none waited at the target.
    rate_limited: RateLimited = losses::rate_limited;
    /// Such responses follow the time: they vary less than the same share of the queries would. Or
    /// all were answered in one part of each second, while all clients lost alike.
    admitted_by_time: AdmittedByTime = losses::admitted_by_time;
    /// Names, of several that were asked in turn at least five times each, that lost 95 % of their
    /// queries, and half of all that were lost, while the others lost 5 % at most. Much: over 0.1 %
    /// of the queries got no response.
    silent_names: SilentNames = losses_by_name::silent_names, much if SilentNames::are_many;
    /// Such names, if they were asked in a fixed order in which back-ends in turn, a limit on the
    /// rate or clients would lose the same; or over UDP with an EDNS size above 1,232, so that
    /// their answers may be too large for the path.
    silent_names_look_alike: SilentNamesLookAlike = losses_by_name::silent_names_look_alike;
    /// Some of at least four clients, over datagrams in the open loop, lost at least 10 % of their
    /// queries, each half as many as the worst, and the others a twentieth of that at most. Or some
    /// got no response at all while others did, in any loop.
    losses_of_some_clients: LossesOfSomeClients = losses_by_client::losses_of_some_clients;
    /// One of several agents, alone on its host, lost over 0.1 % of its queries, and those are 95 %
    /// of all that were lost. Much: over 0.1 % of the queries of all agents.
    losses_of_one_agent: LossesOfOneAgent = losses::losses_of_one_agent,
        much if LossesOfOneAgent::are_many;
    /// Queries that an observed target dropped by its own count. Much: half of those lost.
    server_queries_dropped: ServerQueriesDropped = server::queries_dropped,
        much if ServerQueriesDropped::explain_losses;
    /// Connections that the generator closed because the target broke a rule of the protocol.
    /// Much: more than one a client and 0.1 % of the connections, or 0.1 % of the queries lost with
    /// them; and half of all lost.
    rules_broken: RulesBroken = connections::rules_broken, much if RulesBroken::are_cause;
    /// Responses ceased after latency had grown to half of the timeout, and came late from then on.
    timeout_outgrown: TimeoutOutgrown = losses::timeout_outgrown;
    /// The same of a target that was kept from its CPU, and waited for it longer than it ran.
    starved_queue: StarvedQueue = host::starved_queue;
    /// A span without usable responses that began at the target. Much: 1 % of the time, or 0.1 %
    /// of the queries.
    outages_of_target: OutagesOfTarget = losses::outages_of_target,
        much if OutagesOfTarget::are_much;
    /// A limit on the rate that answers nothing while it is exceeded looks the same as such a span:
    /// silence over UDP to the end, or for a timeout of the closed loop; or silence, and resets
    /// over TCP, that came again, or beside which queries were lost.
    outages_or_limit: OutagesOrLimit = losses::outages_or_limit;
    /// Such a span of silence over TCP, alone and to the end, before which over 0.1 % of the
    /// queries had been lost.
    stalled_connections: StalledConnections = losses::stalled_connections;
    /// A span without usable responses for lack of a route or an interface.
    outages_of_network: OutagesOfNetwork = losses::outages_of_network,
        much if OutagesOfNetwork::are_much;
    /// The same while the generator was not scheduled, or out of files, memory or ports.
    outages_of_generator: OutagesOfGenerator = losses::outages_of_generator,
        much if OutagesOfGenerator::are_much;
    /// The CPU quota of the generator's container stopped it for at least half of the time in which
    /// it was not scheduled.
    throttled_outages: ThrottledOutages = losses::throttled_outages;
    /// A target that is starved of its CPU waited for at least half of the time of its outages, for
    /// half of which the generator on its host was not scheduled either.
    starved_outages: StarvedOutages = losses::starved_outages;
    /// A target whose host is busy waited for its CPU as long in the run, and neither its own waits
    /// around its outages nor those of the generator show that it did not wait in them. Or its
    /// quota stopped it for half of the time of its outages.
    unclear_outages: UnclearOutages = losses::unclear_outages;
    /// The longest such span was silence, in a run with rejections.
    rejected_outages: RejectedOutages = path::rejected_outages;
    /// Clients that got no response at all while others did, by more than chance.
    unserved_clients: UnservedClients = connections::unserved_clients;
    /// Such clients, where the generator had time and the target turned them away or let as many
    /// queries and handshakes time out.
    unserved_by_target: UnservedByTarget = connections::unserved_by_target;
    /// Such clients, if none of them ever had a connection, as their SYNs had no answer or were
    /// rejected, and no listen queue is known to have dropped half of these SYNs.
    never_connected: NeverConnected = unserved::never_connected;
    /// Such clients, if they are all clients of some of several local addresses, and no others.
    unserved_by_source: UnservedBySource = unserved::unserved_by_source;
    /// Handshakes that one side refused. Much: half of the losses, and 0.1 % of the queries, had
    /// no connection.
    handshakes_refused: HandshakesRefused = connections::handshakes_refused,
        much if HandshakesRefused::are_cause;
    /// Queries not sent because their client had used up its message IDs. Much: over 0.1 %.
    no_message_id: NoMessageId = generator::no_message_id, much if NoMessageId::are_many;

    /// An observed target used 98 % of its CPUs (95 % where a quota stopped it nearly always).
    server_cpu_used_up: ServerCpuUsedUp = server::cpu_used_up;
    /// The CPU quota of a target on this host, which is not observed, stopped it in 5 % of its
    /// periods. Much: in 90 %, or for half of the time.
    target_throttled: TargetThrottled = host::target_throttled, much if TargetThrottled::is_much;
    /// The target and observed servers behind it used 95 % of the CPUs that they have in common.
    service_cpu_used_up: ServiceCpuUsedUp = service::cpu_used_up;
    /// Connection attempts that failed for lack of files, memory or ports on this host. Much: over
    /// 0.1 % of all attempts.
    no_resources: NoResources = generator::no_resources, much if NoResources::are_many;
    /// A worker used its CPU (97 % in the closed loop, 90 % when late in the open loop), or
    /// waited for it 10 % of the time (5 % when late). Of several agents, each is late by itself.
    out_of_cpu: OutOfCpu = generator::out_of_cpu;
    /// The kernel gave 30 % of the connections a local port that was in TIME_WAIT, and a worker
    /// that used 90 % of its CPU hardly sent in a tenth of the time.
    ports_recycled: PortsRecycled = generator::ports_recycled;
    /// The target is on this host and waited for a CPU 5 % of the time, while other processes than
    /// the generator and servers behind the target used CPUs: 0.1 or more, and a quarter of what
    /// the target waited; or no quota stopped it, and it waited at least twice as long as its
    /// threads can have waited for each other and for the generator, and at most twice as long as
    /// for the others.
    target_starved: TargetStarved = host::target_starved;
    /// A worker used 90 % of its CPU, without harm that shows.
    busy_worker: BusyWorker = generator::busy_worker;
    /// Queries over UDP left late (p99) in the open loop, though no worker was out of CPU: by more
    /// than 1 ms and, where all were answered, a twentieth of the response time; those of all
    /// agents, or of one that is later than the others.
    late_sends: LateSends = generator::late_sends;
    /// More than 0.1 % of the queries that left got no response, and nothing on this host explains
    /// it: drops, waits for a CPU that the target shares, or bursts of queries sent late, unless
    /// the queries were lost in a few spans in which these were no longer than at other times.
    losses_beyond_generator: LossesBeyondGenerator = losses::beyond_generator;
    /// Agents that sent later than 1 ms and four times the median of all agents.
    late_agents: LateAgents = generator::late_agents;
    /// The kernel's timestamps show half of the mean latency, or a quarter of its p99, in this
    /// host; of several agents, half of the mean at the host of one.
    waits_in_host: WaitsInHost = generator::waits_in_host;
    /// The hypervisor took CPU time of a host.
    steal: Steal = host::steal;
    /// The CPU quota of the generator's container, or of one of several agents, was used up. Much:
    /// it stopped the container for 2 % of the time.
    quota_used: QuotaUsed = host::quota_used, much if QuotaUsed::is_much;
    /// The kernel refused over 0.1 % of the queries, of all or of one agent: no route.
    no_route: NoRoute = generator::no_route;
    /// The same: the target's port was closed.
    port_closed: PortClosed = generator::port_closed;
    /// The same: a firewall or full buffers of this host.
    sends_refused: SendsRefused = generator::sends_refused;
    /// Queries that were due and did not leave, by reason.
    not_sent: NotSentQueries = generator::not_sent;

    /// Receive buffers or queues of the generator dropped datagrams. Much: half of what got no
    /// response.
    own_receive_drops: OwnReceiveDrops = host::own_receive_drops,
        much if OwnReceiveDrops::explain_losses;
    /// The kernel of this host dropped datagrams on sending: half of what got no response.
    own_send_drops: OwnSendDrops = host::own_send_drops;
    /// The backlog of this host's CPUs dropped packets.
    backlog_drops: BacklogDrops = host::backlog_drops;
    /// Connection tracking of this host refused flows.
    flows_refused: FlowsRefused = host::flows_refused;
    /// Frames that left AF_XDP and were dropped by the interface or its peer.
    frames_dropped_beyond: FramesDroppedBeyond = host::frames_dropped_beyond;
    /// At least three ICMP destination unreachable messages came to a host with a target elsewhere,
    /// none of a closed port, where over 0.1 % of the queries got no response.
    rejections: Rejections = path::rejections;
    /// Over 1 % of the TCP segments of the run's connections, or of one agent's, were sent again.
    /// Much: of those of all.
    retransmissions: Retransmissions = path::retransmissions, much if Retransmissions::are_of_run;
    /// Queries timed out on connections that received a segment before an earlier one, on as many
    /// as half of the clients have, while next to none was answered as late as what is sent again.
    gaps_unfilled: GapsUnfilled = path::gaps_unfilled;
    /// Half of the ICMP echo requests to a target elsewhere waited for 2 ms or longer, and for 70 %
    /// of what half of the queries did.
    queue_on_path: QueueOnPath = path::queue_on_path;
    /// Over 0.1 % of such requests, and a quarter to four times the share of the queries over UDP
    /// that got no response, got no reply.
    echoes_lost: EchoesLost = path::echoes_lost;
    /// The model of a server was the limit of a simulation.
    model_limit: ModelLimit = path::model_limit;
    /// The model of a server carried the load of a simulation.
    model_carried: ModelCarried = path::model_carried;
    /// The model of a network lost half of what got no response, or 1 % of the segments.
    model_losses: ModelLosses = path::model_losses;

    /// Connections waited for the target to accept them, or their SYN was sent again.
    listen_queue_full: ListenQueueFull = connections::listen_queue_full;
    /// The target ended connections early. Much: over 0.1 % of the queries lost with them.
    connections_ended: ConnectionsEnded = connections::connections_ended,
        much if ConnectionsEnded::cost_queries;
    /// Most of such ends were resets of TCP, after numbers of queries that differ as by chance (or
    /// somewhat, of fewer than 20 connections).
    resets_by_chance: ResetsByChance = connections::resets_by_chance;
    /// Nothing came back on connections of QUIC until their idle timeout. Much: over 0.1 % of the
    /// queries lost with them.
    connections_silent: ConnectionsSilent = connections::connections_silent,
        much if ConnectionsSilent::cost_queries;
    /// Queries waited because their connections may carry only a number at once.
    streams_full: StreamsFull = connections::streams_full;
    /// A share of the responses took 38 to 56 ms, and few slightly less or more. Much: 30 %, while
    /// connections were set up within 10 ms and some responses came fast; or 90 %, while
    /// connections opened within 20 ms, TLS included, and `--tcp-quickack` was not given.
    delayed_acknowledgements: DelayedAcknowledgements = connections::delayed_acknowledgements,
        much if DelayedAcknowledgements::are_most;
    /// At least half of the queries that timed out were answered later. Much: no other response.
    late_responses: LateResponses = losses::late_responses, much if LateResponses::are_all;
    /// Receive buffers of a target on this host dropped datagrams.
    target_receive_drops: TargetReceiveDrops = losses::target_receive_drops;

    /// Lost queries held at least 1 % of the slots of the closed loop. Much: 10 %.
    slots_held: SlotsHeld = losses::slots_held, much if SlotsHeld::are_many;
    /// Such queries, over UDP, where queries queued at the target or its receive buffers dropped
    /// datagrams.
    slots_overflow: SlotsOverflow = losses::slots_overflow;
    /// Such queries, 10 % of all, held half of the slots, and no full buffer or first burst
    /// explains them; or those in 90 % of the slots were lost within 0.1 s, and nothing came back
    /// afterwards.
    slots_exhausted: SlotsExhausted = losses::slots_exhausted;
    /// Queries of the warm-up that were lost, or answered after half of the measured part or later,
    /// held at least 1 % of the slots of the closed loop. Much: 10 %.
    slots_stuck: SlotsStuck = losses::slots_stuck, much if SlotsStuck::are_many;
    /// Latency grew, queries queued at the target, or more were lost with more load: the target
    /// did not keep up.
    fell_behind: FellBehind = load::fell_behind;
    /// All slots or clients were in use while nothing queued at the target.
    few_slots: FewSlots = load::few_slots;
    /// All slots were in use, and half of the queries took twice as long as the shortest, but the
    /// fastest tenth waited for less than half of that: no queue delays some alone.
    uneven_times: UnevenTimes = load::uneven_times;
    /// Over 0.1 % of the responses took 50 times the median or longer, and 50 ms; or 5 times and
    /// 20 ms where they are of a few spans, clients or targets; or 3 times and 50 ms where hardly
    /// any came between them and the others. Much: 0.5 %.
    far_tail: FarTail = tail::far_tail, much if FarTail::is_much;
    /// In the open loop on a host that stalls: twice the share of the queries that left late by a
    /// quarter of that, and of the time in which the target waited for its CPU; or 0.5 % that took
    /// four times as long as the generator waited at that time, where it waits as the target does.
    tail_beyond_host: TailBeyondHost = tail::tail_beyond_host;
    /// Clients went on to another server. Much: with over 0.5 % of the queries.
    failovers: Failovers = tail::failovers, much if Failovers::are_many;
    /// The rate asked for, of queries or of connections, was reached and answered on time.
    rate_held: RateHeld = load::rate_held;
    /// A recursive server answered queries for generated names.
    generated_recursed: GeneratedRecursed = load::generated_recursed;
    /// Over 0.1 % of the queries got no response. Much: in the open loop.
    queries_lost: QueriesLost = losses::queries_lost, much if QueriesLost::are_of_open_loop;
    /// Queries waited at the target, its receive buffers overflowed all the time, or more were lost
    /// at peaks.
    sign_of_load: SignOfLoad = losses::sign_of_load;
    /// The queries are too few to say whether 1 % is lost.
    too_few_to_tell: TooFewToTell = load::too_few_to_tell;

    /// An observed server was stopped by its quota, or used 90 % of its CPUs or of one thread's.
    server_cpu_limits: ServerCpuLimits = server::cpu_limits;
    /// Threads of an observed server waited for CPUs that others used.
    server_cpu_taken: ServerCpuTaken = server::cpu_taken;
    /// The CPU of an observed server did not keep it from answering more.
    server_cpu_left: ServerCpuLeft = server::cpu_left;
    /// All observed servers used less than half of their CPUs.
    servers_idle: ServersIdle = server::servers_idle;
    /// An observed server met its memory limit, was killed for it or waited for pages.
    server_memory_short: ServerMemoryShort = server::memory_short;
    /// An observed server was stopped by a signal.
    server_stopped: ServerStopped = server::stopped;
    /// The UDP sockets of an observed server dropped datagrams, in a run over UDP or QUIC.
    server_datagrams_dropped: ServerDatagramsDropped = server::datagrams_dropped;
    /// The network interface of an observed server's pod dropped packets to it.
    server_interface_dropped: ServerInterfaceDropped = server::interface_dropped;
    /// The listen queue of an observed server overflowed, in a run over TCP.
    server_listen_overflow: ServerListenOverflow = server::listen_overflow;
    /// An observed server counted fewer TCP clients at once than asked, while clients got
    /// nothing.
    server_tcp_clients: ServerTcpClients = server::tcp_clients;
    /// An observed server wrote at least 20 bytes to files for each query.
    server_log: ServerLog = server::log;
    /// An observed server sent at least 1 % of its queries on to others.
    server_upstream: ServerUpstream = server::upstream, much if ServerUpstream::is_cause;
    /// An observed server has a cache.
    server_cache: ServerCache = server::cache;
    /// What an observed server counted, beside what was sent to it.
    server_counts: ServerCounts = server::counts, much if ServerCounts::differ;
    /// Latency was twice as long during at least five scrapes of a source that asks the server, and
    /// not at other times as far apart.
    slow_scrapes: SlowScrapes = scrapes::slow_scrapes;
}
