//! The table of rules, in the order in which they decide.

use super::worth;
use super::{Rule, STEADY_LOSSES, WITHOUT_QUEUE};
use super::{answers, connections, generator, host, load, losses, path, server, set_up, tail};
use super::{losses_by_client, losses_by_name, unserved};
use crate::limit::Limit::*;
use crate::symptoms::Symptom::*;

/// A group of rules: why they decide where they do.
pub(super) struct Section {
    pub(super) title: &'static str,
    pub(super) rules: &'static [Rule],
}

/// All rules. The first that decides says what limited the run; the earlier sections say why the
/// later ones could not be trusted.
pub(super) const SECTIONS: &[Section] = &[
    Section {
        title: "Runs that open connections and send no query",
        rules: CONNECTIONS_ONLY,
    },
    Section {
        title: "Whether anything can be concluded",
        rules: WORTH,
    },
    Section {
        title: "Limits that drop, outages, and clients that the target did not serve",
        rules: OUTAGES,
    },
    Section {
        title: "The generator and its host",
        rules: GENERATOR,
    },
    Section {
        title: "The network, and the models of a simulation",
        rules: NETWORK,
    },
    Section {
        title: "Queries and connections that the target turned away",
        rules: TURNED_AWAY,
    },
    Section {
        title: "Observed servers",
        rules: SERVERS,
    },
    Section {
        title: "The load itself",
        rules: LOAD,
    },
];

/// The rules of all sections.
pub(super) fn rules() -> impl Iterator<Item = &'static Rule> {
    SECTIONS.iter().flat_map(|it| it.rules)
}

/// True if the rule is one of those on the load itself.
pub(super) fn is_of_load(rule: &Rule) -> bool {
    LOAD.iter().any(|it| std::ptr::eq(it, rule))
}

/// Rows of the table: name, words, symptoms, the limit that they name, and what else holds.
macro_rules! rules {
    ($($name:tt $kind:ident($($words:ident)::+) if [$($shows:ident),*] $(=> $limit:ident)?
        $(, $more:ident($($with:tt)*))*;)+) => {
        &[$(Rule::$kind($name, &[$($shows),*], $($words)::+)
            $(.limits($limit))? $(.$more($($with)*))*),+]
    };
}

static CONNECTIONS_ONLY: &[Rule] = rules! {
    "nothing opened" concludes(set_up::nothing_opened)
        if [ConnectionsOnly, NothingOpened] => Unknown,
        does_not_know("whether the target is down or the path is closed");
    "too short" concludes(worth::short_window) if [ConnectionsOnly, ShortWindow] => Unknown,
        does_not_know("what a longer run would show");
    "no resources" says(generator::no_resources) if [ConnectionsOnly, NoResources] => Generator,
        does_not_know("what the target would do with all connections");
    "limit on new connections, without queries" says(set_up::attempts_turned_away)
        if [ConnectionsOnly, AttemptsTurnedAway, AdmissionsLimited] => Policy,
        unless(&[RateHeld]),
        does_not_know("whether the target's host has the limit or a device before it");
    "attempts turned away, without queries" says(set_up::attempts_turned_away)
        if [ConnectionsOnly, AttemptsTurnedAway] => Unknown, silent_if(&[AdmissionsLimited]),
        unless(&[RateHeld]),
        does_not_know("whether a limit, a full listen queue or one of several servers did it");
    "attempts failed" concludes(set_up::attempts_failed)
        if [ConnectionsOnly, AttemptsFailed] => Server,
        does_not_know("whether a firewall or a proxy before the target refused them");
    "connect rate held" concludes(load::rate_held) if [ConnectionsOnly, RateHeld] => Rate,
        does_not_know("how many more the target can open");
    "worker out of CPU" says(generator::out_of_cpu) if [ConnectionsOnly, OutOfCpu] => Generator,
        does_not_know("how many more the target can open");
    "segments lost" says(path::retransmissions) if [ConnectionsOnly, Retransmissions] => Network,
        does_not_know("where on the path they were lost");
    "connections queued" concludes(set_up::queued) if [ConnectionsOnly, SetUpQueued] => Server,
        does_not_know("what in the target was short");
    "too few clients" concludes(set_up::clients_in_use)
        if [ConnectionsOnly, ClientsInUse] => Outstanding,
        does_not_know("how many more the target can open");
    "unclear" concludes(set_up::unclear) if [ConnectionsOnly] => Unknown,
        does_not_know("what limited the run");
};

static WORTH: &[Rule] = rules! {
    "server drops queries" says(server::queries_dropped) if [ServerQueriesDropped] => Policy,
        unless(&[OwnReceiveDrops, OutagesOfGenerator]), in_every_verdict(),
        does_not_know("which of its limits or rules dropped them");
    "no message ID, and no response" says(generator::no_message_id)
        if [NoMessageId, NothingAnswered] => Generator,
        does_not_know("why the target does not answer");
    "messages match no query, and no response" says(answers::unmatched_messages)
        if [UnmatchedMessages, NothingAnswered] => Unknown,
        does_not_know("whether the target, a middlebox or others sent them");
    "all responses late" says(losses::late_responses) if [LateResponses] => Unknown,
        in_every_verdict(), does_not_know("whether the path or the target delayed them");
    "one HTTP error for most queries" says(answers::http_errors) if [HttpErrors] => Unknown,
        in_every_verdict(), does_not_know("what the server does with requests that it accepts");
    "segments that never come" says(path::gaps_unfilled) if [GapsUnfilled] => Network,
        unless(&[OutagesOfGenerator]), in_every_verdict(),
        does_not_know("where on the path they are dropped, and from which length on");
    "rejections, and no response" says(path::rejections) if [Rejections, NothingAnswered]
        => Network, does_not_know("which device rejects, unless the messages are looked at");
    "no response" concludes(worth::nothing_answered) if [NothingAnswered] => Unknown,
        does_not_know("whether the target is down, silent or out of reach");
    "too short" concludes(worth::short_window) if [ShortWindow] => Unknown,
        does_not_know("what a longer run would show");
    "too few queries" concludes(worth::too_few) if [FewQueries] => Unknown,
        does_not_know("how many are lost on average");
    "useless responses" says_each(answers::useless_responses) if [UselessResponses] => Unknown,
        in_every_verdict(), does_not_know("what the server would do with queries that it answers");
    "only empty responses" says_each(answers::empty_responses) if [EmptyResponses],
        in_every_verdict();
    "messages match no query" says(answers::unmatched_messages) if [UnmatchedMessages] => Unknown,
        in_every_verdict(), does_not_know("whether the target, a middlebox or others sent them");
};

static OUTAGES: &[Rule] = rules! {
    "losses of one agent" says(losses::losses_of_one_agent) if [LossesOfOneAgent] => Network,
        silent_if(&[OwnReceiveDrops]), in_every_verdict(),
        unless(&[OwnReceiveDrops, OutOfCpu, LateSends, OutagesOfGenerator, OutagesOfNetwork]),
        does_not_know("whether its link, its host or a limit on its address lost them");
    "losses by name, turn or size" says(losses_by_name::silent_names)
        if [SilentNames, SilentNamesLookAlike] => Unknown, in_every_verdict(),
        does_not_know("whether names, turns or the size of answers decide what is lost");
    "losses by name" says(losses_by_name::silent_names) if [SilentNames] => Server,
        silent_if(&[SilentNamesLookAlike]), in_every_verdict(),
        does_not_know("whether a rule, a zone or an upstream of these names is the reason");
    "losses by client" says(losses_by_client::losses_of_some_clients)
        if [LossesOfSomeClients] => Unknown, silent_if(&[SilentNames]),
        unless(&[OwnReceiveDrops, OutagesOfGenerator, StarvedOutages, UnclearOutages]),
        in_every_verdict(),
        does_not_know("whether a part of the target, a path or a limit on each source does it");
    "fixed rate of responses" says(losses::rate_limited) if [RateLimited, AdmittedByTime]
        => Policy, silent_if(&[SilentNames, UnservedClients, LossesOfSomeClients]),
        unless(&[OwnReceiveDrops, OutagesOfGenerator]), in_every_verdict(),
        does_not_know("whether the target limits it or a device on the path");
    STEADY_LOSSES says(losses::steady_losses) if [RateLimited] => Unknown,
        silent_if(&[AdmittedByTime, SilentNames, UnservedClients, LossesOfSomeClients]),
        unless(&[OwnReceiveDrops, OutagesOfGenerator]), in_every_verdict(),
        does_not_know("whether a limit on the rate or a dead path or server of several does it");
    "clients of some addresses" says(unserved::unserved_by_source) if [UnservedBySource] => Unknown,
        silent_if(&[SilentNames]), unless(&[HandshakesRefused]), in_every_verdict(),
        does_not_know("whether the target, its firewall or a part of it turns them away");
    "limit on new connections" says(set_up::attempts_turned_away)
        if [AttemptsTurnedAway, AdmissionsLimited] => Policy, in_every_verdict(),
        silent_if(&[UnservedBySource]), unless(&[RateHeld]),
        does_not_know("whether the target's host has the limit or a device before it");
    "connection attempts turned away" says(set_up::attempts_turned_away)
        if [AttemptsTurnedAway] => Unknown, in_every_verdict(),
        silent_if(&[AdmissionsLimited, UnservedBySource]), unless(&[RateHeld]),
        does_not_know("whether a limit, a full listen queue or one of several servers did it");
    "rules broken" says(connections::rules_broken) if [RulesBroken] => Generator,
        in_every_verdict(),
        does_not_know("what the target can do with connections that stay open");
    "outage of the generator by its CPU quota" says(host::quota_used)
        if [OutagesOfGenerator, ThrottledOutages] => Generator, in_every_verdict(),
        does_not_know("what the target does while the generator runs");
    "outage of the generator" says(losses::outages_of_generator)
        if [OutagesOfGenerator] => Generator, in_every_verdict(),
        does_not_know("what the target would have answered meanwhile");
    "outage of the network" says(losses::outages_of_network) if [OutagesOfNetwork] => Network,
        in_every_verdict(), does_not_know("where on this host or beyond it the route ended");
    "queue of a target kept from its CPU" says(host::target_starved)
        if [StarvedQueue] => Generator, does_not_know("what the target does with all of its CPUs");
    "queue outgrew the timeout" says(losses::timeout_outgrown) if [TimeoutOutgrown] => Server,
        unless(&[StarvedQueue]), in_every_verdict(),
        does_not_know("what in the target was short: observe it");
    "outage with rejections" says(path::rejections) if [OutagesOfTarget, RejectedOutages]
        => Network, in_every_verdict(),
        silent_if(&[RulesBroken, TimeoutOutgrown, AttemptsTurnedAway, GapsUnfilled]),
        does_not_know("which device rejects, unless the messages are looked at");
    "silence over TCP after losses" says(losses::outages_of_target)
        if [OutagesOfTarget, StalledConnections] => Unknown, in_every_verdict(),
        silent_if(&[RulesBroken, TimeoutOutgrown, AttemptsTurnedAway, GapsUnfilled]),
        unless(&[StarvedOutages, RejectedOutages]),
        does_not_know("whether the path drops long segments, or the target stopped");
    "outage of the target or of its host" says(losses::outages_of_target)
        if [OutagesOfTarget, UnclearOutages] => Unknown, in_every_verdict(),
        silent_if(&[
            RulesBroken, TimeoutOutgrown, AttemptsTurnedAway, GapsUnfilled, StalledConnections
        ]),
        unless(&[RejectedOutages, TargetThrottled]),
        does_not_know("whether the target waited for its CPU in it, or stopped by itself");
    "outage of the target, or a limit on the rate" says(losses::outages_of_target)
        if [OutagesOfTarget, OutagesOrLimit] => Unknown, in_every_verdict(),
        silent_if(&[
            RulesBroken, TimeoutOutgrown, AttemptsTurnedAway, GapsUnfilled, StalledConnections,
            UnclearOutages
        ]),
        unless(&[StarvedOutages, RejectedOutages]),
        does_not_know("whether the target was down, or drops what is beyond a limit on the rate");
    "outage of the target" says(losses::outages_of_target) if [OutagesOfTarget] => Server,
        silent_if(&[
            RulesBroken, TimeoutOutgrown, AttemptsTurnedAway, GapsUnfilled, StalledConnections,
            UnclearOutages, OutagesOrLimit
        ]),
        unless(&[StarvedOutages, RejectedOutages]),
        in_every_verdict(),
        does_not_know("whether the target or the path to it was down");
    "no message ID, and clients without response" says(generator::no_message_id)
        if [NoMessageId, UnservedByTarget] => Generator,
        does_not_know("why these clients get no response");
    "clients never connected" says(unserved::never_connected)
        if [NeverConnected, UnservedByTarget] => Unknown, in_every_verdict(),
        silent_if(&[SilentNames, AttemptsTurnedAway, UnservedBySource]),
        does_not_know("whether a firewall, a full listen queue or a server that is down did it");
    "clients turned away" says(connections::unserved_clients)
        if [UnservedByTarget, UnservedClients] => Server, unless(&[HandshakesRefused]),
        silent_if(&[SilentNames, AttemptsTurnedAway, NeverConnected, UnservedBySource]),
        in_every_verdict(), does_not_know("which limit of the target it was");
    "handshakes refused, and clients without response" says(connections::handshakes_refused)
        if [HandshakesRefused, UnservedByTarget] => Server, in_every_verdict(),
        does_not_know("whether all servers behind the address refuse");
    "server's CPU used up" says_each(server::cpu_used_up) if [ServerCpuUsedUp] => Server,
        unless(&[RateHeld]), in_every_verdict(), with_load(),
        does_not_know("whether it could do the same work with less");
    "target's quota used up" says(host::target_throttled) if [TargetThrottled] => Server,
        unless(&[RateHeld]), in_every_verdict(),
        does_not_know("what it could do with more of its CPUs");
    "servers' shared CPU used up" says(server::service_cpu) if [ServiceCpuUsedUp] => Server,
        unless(&[RateHeld]), silent_if(&[ServerCpuUsedUp]), in_every_verdict(), with_load(),
        does_not_know("which of them needs more of it");
    "more responses far late than the host explains" says(tail::far_tail)
        if [FarTail, TailBeyondHost] => Unknown, unless(&[FellBehind]),
        does_not_know("what in the target held them up, and what the host adds");
};

static GENERATOR: &[Rule] = rules! {
    "no resources" says(generator::no_resources) if [NoResources] => Generator, in_every_verdict(),
        does_not_know("what the target would do with all clients");
    "local ports used again" says(generator::ports_recycled) if [PortsRecycled] => Generator,
        unless(&[RateHeld]), in_every_verdict(),
        does_not_know("what the target does with more connections");
    "CPU quota" says(host::quota_used) if [QuotaUsed] => Generator,
        unless(&[RateHeld, FewSlots]),
        does_not_know("what the target does while the generator runs");
    "worker out of CPU" says(generator::out_of_cpu) if [OutOfCpu] => Generator,
        silent_if(&[PortsRecycled]), unless(&[LossesBeyondGenerator]),
        does_not_know("what the target can do beyond this rate");
    "worker busy" says(generator::busy_worker) if [BusyWorker];
    "queries left late" says(generator::late_sends) if [LateSends] => Generator,
        unless(&[LossesBeyondGenerator]), does_not_know("what kept the worker from running");
    "target kept from its CPU" says(host::target_starved) if [TargetStarved] => Generator,
        unless(&[RateHeld, FewSlots, LossesBeyondGenerator, QueueOnPath]),
        does_not_know("what the target does with all of its CPUs");
    "agents left late" says(generator::late_agents) if [LateAgents], in_every_verdict();
    "waiting in this host" says(generator::waits_in_host) if [WaitsInHost];
    "CPU steal" says(host::steal) if [Steal];
    "no route" concludes(generator::no_route) if [NoRoute] => Network,
        does_not_know("when the route was lost");
    "port closed" concludes(generator::port_closed) if [PortClosed] => Server,
        does_not_know("why the server ended");
    "sends refused" concludes(generator::sends_refused) if [SendsRefused] => Generator,
        does_not_know("what the target would do with them");
    "queries not sent" says_each(generator::not_sent) if [NotSentQueries];
};

static NETWORK: &[Rule] = rules! {
    "own receive buffers full" says(host::own_receive_drops) if [OwnReceiveDrops] => Network,
        does_not_know("whether the target answered the others");
    "own send buffers full" says(host::own_send_drops) if [OwnSendDrops] => Network,
        does_not_know("whether the link or its queue is the reason");
    "backlog full" says(host::backlog_drops) if [BacklogDrops];
    "flows refused" says(host::flows_refused) if [FlowsRefused];
    "frames dropped" says(host::frames_dropped_beyond) if [FramesDroppedBeyond],
        in_every_verdict();
    "queries rejected" says(path::rejections) if [Rejections], in_every_verdict();
    "segments lost" says(path::retransmissions) if [Retransmissions] => Network,
        silent_if(&[UnservedByTarget]), does_not_know("where on the path they were lost");
    "queue on the path" says(path::queue_on_path) if [QueueOnPath] => Network,
        unless(&[RateHeld, FewSlots, ServerCpuLimits]),
        does_not_know("whether a link is full or the kernel of the target's host is busy");
    "echo requests lost" says(path::echoes_lost) if [EchoesLost] => Network, unless(&[RateHeld]),
        does_not_know("where on the path they were lost");
    "model of a server busy" concludes(path::model_limit) if [ModelLimit] => Server,
        does_not_know("anything of a real server");
    "model of a server kept up" concludes(path::model_carried) if [ModelCarried] => Rate,
        does_not_know("anything of a real server");
    "model of a network loses" says(path::model_losses) if [ModelLosses] => Network,
        does_not_know("anything of a real path");
};

static TURNED_AWAY: &[Rule] = rules! {
    "listen queue full" says(connections::listen_queue_full) if [ListenQueueFull],
        silent_if(&[AttemptsTurnedAway, NeverConnected, UnservedBySource]);
    "no message ID" says(generator::no_message_id) if [NoMessageId] => Generator,
        does_not_know("how the target does with more clients");
    "clients without connection" says(unserved::never_connected)
        if [NeverConnected] => Unknown, in_every_verdict(),
        silent_if(&[SilentNames, AttemptsTurnedAway, UnservedBySource]),
        does_not_know("whether a firewall, a full listen queue or a server that is down did it");
    "clients without response" says(connections::unserved_clients) if [UnservedClients] => Server,
        unless(&[HandshakesRefused]), in_every_verdict(),
        silent_if(&[SilentNames, AttemptsTurnedAway, NeverConnected, UnservedBySource]),
        does_not_know("whether the generator kept them from asking");
    "handshakes refused" says(connections::handshakes_refused) if [HandshakesRefused] => Server,
        in_every_verdict(), does_not_know("whether all servers behind the address refuse");
    "queries without a DNS message" says(answers::exchanges_failed) if [ExchangesFailed] => Server,
        silent_if(&[HttpErrors]), unless(&[HttpErrors]), in_every_verdict(),
        does_not_know("which limit or fault of the target it was");
    "connections reset as by chance" says(connections::connections_ended)
        if [ConnectionsEnded, ResetsByChance] => Unknown,
        silent_if(&[UnservedClients, RulesBroken]), in_every_verdict(),
        does_not_know("whether the target or a device before it reset them");
    "connections ended" says(connections::connections_ended) if [ConnectionsEnded] => Server,
        silent_if(&[ResetsByChance, UnservedClients, RulesBroken]), in_every_verdict(),
        does_not_know("which of the target's limits or rules ended them");
    "connections silent" says(connections::connections_silent) if [ConnectionsSilent] => Unknown,
        silent_if(&[UnservedClients, RulesBroken]), in_every_verdict(),
        does_not_know("whether the target or the path drops what they carry");
    "streams full" says(connections::streams_full) if [StreamsFull], in_every_verdict();
    "delayed acknowledgements" says(connections::delayed_acknowledgements)
        if [DelayedAcknowledgements] => Unknown, unless(&[RateHeld]), in_every_verdict(),
        does_not_know("which end holds small segments back");
    "target's receive buffers full" says(losses::target_receive_drops) if [TargetReceiveDrops],
        silent_if(&[ServerDatagramsDropped]), in_every_verdict();
};

static SERVERS: &[Rule] = rules! {
    "server's CPU" says_each(server::cpu_limits) if [ServerCpuLimits] => Server,
        unless(&[RateHeld]), in_every_verdict(), with_load(),
        does_not_know("whether it could do the same work with less");
    "server's CPU taken by others" says_each(server::cpu_taken) if [ServerCpuTaken],
        in_every_verdict();
    "server's CPU free" says_each(server::cpu_left) if [ServerCpuLeft];
    "server's memory" says_each(server::memory_short) if [ServerMemoryShort], in_every_verdict();
    "server stopped" says_each(server::stopped) if [ServerStopped], in_every_verdict();
    "server's receive buffers full" says_each(server::datagrams_dropped)
        if [ServerDatagramsDropped], in_every_verdict();
    "server's interface drops" says_each(server::interface_dropped)
        if [ServerInterfaceDropped], in_every_verdict();
    "server's listen queue full" says_each(server::listen_overflow) if [ServerListenOverflow],
        in_every_verdict();
    "server's TCP clients" says(server::tcp_clients) if [ServerTcpClients], in_every_verdict();
    "server's log" says(server::log) if [ServerLog], in_every_verdict();
    "server waits for others" says(server::upstream) if [ServerUpstream], where_much(),
        in_every_verdict();
    "server asks others" says(server::upstream) if [ServerUpstream], silent_if(&[ServerUpstream]);
    "server's cache" says(server::cache) if [ServerCache];
    "server idle" says(server::idle) if [FellBehind, ServersIdle],
        silent_if(&[ServerDatagramsDropped, ServerQueriesDropped, ServerUpstream]),
        in_every_verdict();
    "both ends differ" says(server::counts_differ) if [ServerCounts], where_much(),
        silent_if(&[UnservedClients]), in_every_verdict();
    "both ends agree" says(server::counts_agree) if [ServerCounts], silent_if(&[ServerCounts]);
    "slow scrapes" says_each(server::slow_scrapes) if [SlowScrapes], in_every_verdict(),
        silent_if(&[OutagesOfTarget, OutagesOfNetwork, OutagesOfGenerator, OutOfCpu]);
};

static LOAD: &[Rule] = rules! {
    "queries lost in the warm-up hold slots" says(losses::slots_stuck) if [SlotsStuck]
        => Outstanding, in_every_verdict(), does_not_know("what the warm-up lost them to");
    "lost queries hold most slots" says(losses::slots_held) if [SlotsHeld, SlotsExhausted]
        => Unknown, does_not_know("what loses them: the open loop shows it");
    "lost queries hold slots, and a queue is full" says(losses::slots_held)
        if [SlotsHeld, SlotsOverflow] => Server, in_every_verdict(),
        does_not_know("whether the target or a link before it is slow: observe the target");
    "lost queries hold slots" says(losses::slots_held) if [SlotsHeld] => Outstanding,
        silent_if(&[SlotsOverflow]), in_every_verdict(), does_not_know("where they were lost");
    "only empty responses in time" says_each(answers::empty_responses)
        if [EmptyResponses, RateHeld] => Unknown,
        does_not_know("how the server does with names and types that it has");
    "only empty responses in all slots" says_each(answers::empty_responses)
        if [EmptyResponses, FewSlots] => Unknown,
        does_not_know("how the server does with names and types that it has");
    "few responses are far late" says(tail::far_tail) if [FarTail, RateHeld] => Unknown,
        does_not_know("what in the target held them up");
    "late responses beside others" says(tail::far_tail) if [FarTail],
        silent_if(&[PortsRecycled]), in_every_verdict();
    "servers left for others" says(tail::failovers) if [Failovers, RateHeld] => Unknown,
        does_not_know("whether the servers or the path to them failed");
    "some servers left for others" says(tail::failovers) if [Failovers], in_every_verdict();
    "generated names at a recursive server" says(load::generated_recursed) if [GeneratedRecursed],
        in_every_verdict();
    "rate held" concludes(load::rate_held) if [RateHeld] => Rate,
        does_not_know("how much more the target can do");
    "target fell behind" concludes(load::fell_behind) if [FellBehind] => Server,
        does_not_know("what in the target was short: observe it");
    WITHOUT_QUEUE says(losses::without_queue) if [QueriesLost] => Unknown,
        silent_if(&[
            SilentNames, SignOfLoad, RateLimited, ServerQueriesDropped, OwnReceiveDrops,
            LossesOfOneAgent, LossesOfSomeClients,
            HandshakesRefused, UnservedClients, AttemptsTurnedAway, ConnectionsEnded,
            ConnectionsSilent, RulesBroken,
            OutagesOfTarget, OutagesOfNetwork, OutagesOfGenerator, TimeoutOutgrown, GapsUnfilled,
            ModelLosses
        ]),
        does_not_know("whether the path or a limit of the target loses them");
    "too few slots" concludes(load::few_slots) if [FewSlots] => Outstanding,
        does_not_know("how much more the target can do");
    "times differ in all slots" concludes(load::uneven_times) if [UnevenTimes] => Unknown,
        does_not_know("whether more slots, or a part of the target, would give a higher rate");
    "too few to tell" concludes(worth::too_few) if [TooFewToTell] => Unknown,
        does_not_know("how many are lost on average");
    "unclear" concludes(load::unclear) if [] => Unknown, does_not_know("what limited the run");
};
