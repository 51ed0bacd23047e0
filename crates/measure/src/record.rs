//! The run record: one value that holds everything measured, what was run, where, and the verdict.
//!
//! Its JSON form has a version ([`SCHEMA_VERSION`]), a published schema
//! ([`RunRecord::json_schema`]) and no field that a reader may ignore: unknown fields are refused.
//! [`RunRecord::from_json`] also refuses a record whose total is not the sum of its intervals or
//! whose queries do not add up.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::aborted::Aborted;
use crate::absent::AbsentAgent;
use crate::agent_counts::AgentCounts;
use crate::agent_series::AgentSeries;
use crate::counts::{Connections, WireCounts};
use crate::degraded::Degraded;
use crate::event::Event;
use crate::experience::{ClientExperience, GroupRecord};
use crate::facts::{CpuUse, HostFacts, NetworkFacts, ResponderFacts, WorkerFacts};
use crate::histogram::Histogram;
use crate::instances::Instances;
use crate::interval::{ConnectionTimes, Interval, per};
use crate::intervals;
use crate::limit::Verdict;
use crate::losses_by_question::LossesByQuestion;
use crate::observation::Observation;
use crate::outcome::ConditionRecord;
use crate::scenario::{Arrival, DriverKind, ScenarioRecord};
use crate::simulation::SimulationRecord;
use crate::steady_state::SteadyState;
use crate::summary::Summary;
use crate::target::{self, TargetRecord};
use crate::timeline::{FoundOutages, Timeline};
use crate::zero::is_zero;

mod numbers;
mod pretty;
#[cfg(test)]
mod tests;

/// Version of the record's JSON form; changes when an older reader could misread it.
pub const SCHEMA_VERSION: &str = "4";
/// The version before, which is read too. It has no `open`, and calls `agents` `runs`, without
/// their hosts.
const SCHEMA_VERSION_BEFORE: &str = "3";

/// Everything that one run (or several, merged) measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunRecord {
    /// Version of this form: [`SCHEMA_VERSION`].
    #[schemars(extend("const" = SCHEMA_VERSION))]
    pub schema_version: String,
    /// Version of the binary that ran it.
    pub throng_version: String,
    /// When the run started, RFC 3339.
    pub started_at: String,
    /// Generators whose records were merged into this one; 1 for a single run.
    #[schemars(range(min = 1))]
    pub generators: u64,
    /// Agents, the processes that simulated clients, of all generators: more than one a generator
    /// if one process may not open enough files, or if more were requested.
    #[serde(alias = "processes")]
    #[schemars(range(min = 1))]
    pub agent_count: u64,
    /// The settings of the run.
    pub scenario: ScenarioRecord,
    /// What was asked for, of each group of clients, without secrets; none in a record of a version
    /// that did not write it. What was none there has been decided in `scenario`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<AskedGroup>,
    /// What sent and received the data.
    pub driver: DriverKind,
    /// Why it was chosen: requested, measured to be faster, or the other one is forbidden here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver_reason: Option<String>,
    /// The target was the responder built into this binary.
    pub self_test: bool,
    /// The generating hosts, each once.
    pub hosts: Vec<HostFacts>,
    /// The agents that generated the load; one unless there were several, or records were merged.
    /// None in a simulation, or in a record of a version that did not write it. Older versions
    /// have one for all agents of a host.
    #[serde(default, alias = "runs", skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<Agent>,
    /// Agents that were asked for and had not come when the run began; nothing of the load was
    /// theirs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub absent_agents: Vec<AbsentAgent>,
    /// Why its runs were not one concurrent load on one target, and were merged nevertheless
    /// (`throng merge --force`), one sentence each. Rates over all of it never existed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub merged_by_force: Vec<String>,
    /// How long each phase took.
    pub phases: Phases,
    /// The window for rates. Of a run bound by duration (or interrupted): how long measured
    /// queries were offered. Of a run bound by a number of queries: from its start to the last
    /// response. Intervals begin anew where the window ends.
    pub measured_ns: u64,
    /// Responses that came within the window, those to queries of the warm-up included (as many
    /// leave it unanswered as enter it in flight). Achieved QPS of a closed loop = this /
    /// `measured_ns`. In an open loop those responses count too that come after the window no
    /// slower than 99 % of those in the first interval that has any; where more than 1 % of the
    /// queries were lost, up to one and a half times the fastest.
    pub responses_in_window: u64,
    /// The sum of `intervals`: every query scheduled in the measured phase and how it ended,
    /// in the drain too.
    pub total: Interval,
    /// Every query scheduled in the warm-up and how it ended.
    pub warmup: Interval,
    /// The measured phase and its drain, successive intervals of all workers together.
    pub intervals: Vec<Interval>,
    /// Intervals of `scenario.interval_ns` that were merged into each of `intervals`, a power of
    /// two; the last one of the window has the rest, and the drain is separate. 1, which is left
    /// out, unless a run is so long that it has more than 1,024 of them, or that their histograms
    /// hold more than 4,194,304 buckets.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    #[schemars(range(min = 1))]
    pub intervals_merged: u64,
    /// Queries due, sent, answered and lost over time, in steps of 10 ms or more; none in a record
    /// of a version that did not write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeline: Option<Timeline>,
    /// The outages of a run whose steps of `timeline` are longer than its intervals; none if
    /// `timeline` shows them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outages: Option<FoundOutages>,
    /// The groups of clients, in the order of the scenario: what was measured of each, and how its
    /// clients fared.
    #[schemars(length(min = 1))]
    pub groups: Vec<GroupRecord>,
    /// The targets, in the order in which groups name them: what was measured of each. None where
    /// there is only one, or in a record of a version that did not write it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<TargetRecord>,
    /// Queries without a response by question, of a run with several; none for scripts, replays and
    /// generated names, and in a record of a version that did not write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub losses_by_question: Option<LossesByQuestion>,
    /// Responses by the server instance that sent them; none unless queries requested its
    /// identifier (`--nsid`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instances: Option<Instances>,
    /// The workers of all generators.
    pub workers: Vec<WorkerFacts>,
    /// Counters of driver and kernel.
    pub network: NetworkFacts,
    /// Shares of this host's CPU time, from before the first connection to after the drain; none in
    /// a simulation, for several hosts or runs, and if /proc does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_use: Option<CpuUse>,
    /// The target's counters, if it was the built-in responder and not a simulation; none in a
    /// record of a version that did not write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub responder: Option<ResponderFacts>,
    /// Metrics of servers, hosts and exporters during the run (`--observe`); instants are those of
    /// the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1_024))]
    pub observations: Vec<Observation>,
    /// Operations on the target during the run, in order of time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1_024))]
    pub events: Vec<Event>,
    /// There only if the run was a simulation: what it assumed. None of its figures was measured
    /// on a network or a server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub simulation: Option<SimulationRecord>,
    /// What ended the run.
    pub ended_by: EndedBy,
    /// The condition of `--abort-if` that ended it early, and what was measured; none if none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aborted: Option<Aborted>,
    /// The results of `--abort-if`, `--fail-if` and `--require`; none in a merged record, whose
    /// conditions were those of its runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<ConditionRecord>,
    /// The time after the result, if an agent was lost; not included in any other figure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub degraded: Option<Degraded>,
    /// How the run began, what it sustained and how that drifted; none if nothing was answered, or
    /// if the record is of a version that did not write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steady_state: Option<SteadyState>,
    /// What limited the result.
    pub verdict: Verdict,
    /// What a reader of the figures must know, one sentence each.
    pub warnings: Vec<String>,
    /// Its figures by name; none in a record of a version that did not write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Summary>,
}

/// What was asked for of a group of clients.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AskedGroup {
    /// Its name, as in `groups`; parts of a group have the same.
    pub name: String,
    /// All that was asked for.
    pub run: settings::Run,
}

/// One process that generated load: which run it made, where, and when it measured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Agent {
    /// Random, of this run alone.
    pub id: String,
    /// Position of its host in `hosts` of the record.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub host: u64,
    /// When its measured window began by the wall clock of its host: microseconds since 1970.
    pub began_us: u64,
    /// Length of the window, microseconds.
    pub window_us: u64,
    /// By how much that clock may be wrong, microseconds; none if its host does not know.
    pub clock_error_us: Option<u64>,
    /// Its host, as it was named to the command that led several agents; none if it led itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its clock beside that of the command that led several agents; none if it led itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<AgentClock>,
    /// Where an orchestrator has placed it; none where its environment does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<Placement>,
    /// By how much its first query left later than it was due, nanoseconds: in a closed loop, later
    /// than the common start. None if it sent none, or in a record of a version that did not write
    /// it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_late_ns: Option<u64>,
    /// The first rule of `docs/verdict.md` that names this agent; none if there is none, and of a
    /// single agent, whose verdict is that of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limited_by: Option<String>,
    /// Datagrams or frames that its own receive buffers and queues dropped, of those of all agents
    /// in `network`; none if it was the only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_drops: Option<u64>,
    /// Its own counts; none if it was the only one, or in a record of a version that did not write
    /// it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counts: Option<AgentCounts>,
    /// What it did over time; none if it was the only one, or in a record of a version that did not
    /// write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<AgentSeries>,
}

impl Agent {
    /// Its responses a second within the window; none if they are not known.
    pub fn achieved_qps(&self) -> Option<f64> {
        let responses = self.counts?.responses_in_window?;
        Some(per(responses as f64, self.window_us as f64 / 1e6))
    }
}

/// Where an orchestrator has placed an agent, as its environment says (`THRONG_NODE`,
/// `THRONG_ZONE`, `THRONG_POD`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Placement {
    /// Name of the node, the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Zone of the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// Name of the pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<String>,
}

/// The clock of an agent compared with its lead's, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentClock {
    /// By how much the agent may have begun earlier or later than the others, since its clock is
    /// not known better: half of the round trip of the best exchange, and drift since then.
    pub start_bound_ns: u64,
    /// The same at the end of the run.
    pub end_bound_ns: u64,
    /// Drift of its clock by the end, relative to the other; its error is at most the sum of both
    /// bounds.
    pub drift_ns: i64,
}

/// How long each phase of a run took, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Phases {
    /// Connecting the clients.
    pub connect_ns: u64,
    /// Warm-up.
    pub warmup_ns: u64,
    /// Offering measured queries.
    pub run_ns: u64,
    /// Waiting for the last responses.
    pub drain_ns: u64,
}

/// What ended a run; the later variant prevails when records are merged.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum EndedBy {
    /// The duration was over.
    Duration,
    /// All queries had been sent.
    Queries,
    /// The target could not be reached any more.
    TargetGone,
    /// A condition of `--abort-if` was met.
    Aborted,
    /// The user interrupted it.
    Interrupted,
    /// An agent was lost: the result is that of the last checkpoint of all agents.
    AgentLost,
    /// Nothing: the command was killed, and this is what it had measured until its last checkpoint.
    Killed,
}

fn one() -> u64 {
    1
}

fn is_one(number: &u64) -> bool {
    *number == 1
}

/// The one field that is looked at before everything else.
#[derive(Deserialize)]
struct VersionOnly {
    schema_version: String,
}

impl RunRecord {
    /// The record as one line of JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("all keys are strings and memory takes every byte")
    }

    /// The record as JSON with one field a line; arrays of numbers stay on their line.
    pub fn to_json_pretty(&self) -> String {
        pretty::to_string(self)
    }

    /// As [`RunRecord::to_json_pretty`], without holding all of it in memory.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write_json_pretty(&self, to: impl std::io::Write) -> std::io::Result<()> {
        pretty::write(self, to)
    }

    /// Reads a record and checks that it agrees with itself.
    ///
    /// # Errors
    /// A message for the user, without the file's name: not a run record, another schema version,
    /// a field that is unknown, missing or of the wrong type (with line and column), or figures
    /// that contradict each other.
    pub fn from_json(json: &str) -> Result<RunRecord, String> {
        let VersionOnly { schema_version } =
            serde_json::from_str(json).map_err(|error| format!("not a run record: {error}"))?;
        if ![SCHEMA_VERSION_BEFORE, SCHEMA_VERSION].contains(&&*schema_version) {
            return Err(format!(
                "run record has schema version {schema_version}, this binary reads versions \
                 {SCHEMA_VERSION_BEFORE} and {SCHEMA_VERSION}: use the version of throng that \
                 wrote it"
            ));
        }
        numbers::check(json)?;
        let mut record: RunRecord = serde_json::from_str(json)
            .map_err(|error| format!("not a valid run record: {error}"))?;
        // Nothing that both have means something else.
        SCHEMA_VERSION.clone_into(&mut record.schema_version);
        record.network.count_kernels_once(&record.hosts);
        record
            .check()
            .map_err(|reason| format!("run record contradicts itself: {reason}"))?;
        Ok(record)
    }

    /// Checks that the record, written to a file, can be read again.
    ///
    /// # Errors
    /// Names the first number that is larger than any in a record.
    pub(crate) fn check_numbers(&self) -> Result<(), String> {
        numbers::check(&self.to_json())
    }

    /// Checks that the record agrees with itself.
    ///
    /// # Errors
    /// Names what does not add up, with both numbers.
    pub fn check(&self) -> Result<(), String> {
        let sum = Interval::total(&self.intervals);
        if sum.counts != self.total.counts {
            return Err(format!(
                "the total of {} offered queries and {} responses is not the sum of its \
                 intervals ({} and {}), or differs in another count",
                self.total.counts.offered,
                self.total.counts.responses,
                sum.counts.offered,
                sum.counts.responses
            ));
        }
        if sum.distributions != self.total.distributions {
            return Err("the total's histograms are not the sum of those of its intervals".into());
        }
        if !self.intervals_merged.is_power_of_two() {
            let merged = self.intervals_merged;
            return Err(format!(
                "intervals_merged is {merged}, which is not a power of two"
            ));
        }
        let (counts, latency) = (&self.total.counts, &self.total.distributions.latency);
        if latency.count() != counts.responses {
            return Err(format!(
                "{} responses, but {} latencies",
                counts.responses,
                latency.count()
            ));
        }
        let all_responses = counts.responses + self.warmup.counts.responses;
        if self.responses_in_window > all_responses {
            return Err(format!(
                "{} responses within the window, but {all_responses} in total",
                self.responses_in_window
            ));
        }
        counts.check_identity()?;
        if let Some(losses) = &self.losses_by_question {
            losses.check(counts)?;
        }
        if let Some(instances) = &self.instances {
            instances.check(counts)?;
        }
        if let Some(timeline) = &self.timeline {
            timeline.check(&self.total)?;
        }
        if let Some(outages) = &self.outages {
            outages.check(counts.offered)?;
        }
        self.observations.iter().try_for_each(Observation::check)?;
        self.events.iter().try_for_each(Event::check)?;
        if let Some(degraded) = &self.degraded {
            degraded.check(self.measured_ns)?;
        }
        let warmup = self.warmup.counts.check_identity();
        warmup.map_err(|reason| format!("warm-up: {reason}"))?;
        intervals::check_open(&self.intervals)?;
        target::check(&self.targets, &self.total)?;
        self.check_hosts()?;
        self.check_groups()
    }

    /// Workers and agents are on hosts that are listed, and what each kernel counted is the whole.
    fn check_hosts(&self) -> Result<(), String> {
        let hosts = self.hosts.len() as u64;
        let workers = self.workers.iter().map(|worker| ("a worker", worker.host));
        let agents = self.agents.iter().map(|agent| ("an agent", agent.host));
        // Where no host is known, all are on the same one.
        if let Some((who, host)) = workers.chain(agents).find(|it| it.1 >= hosts.max(1)) {
            return Err(format!(
                "{who} is on the host at position {host}, of {hosts} hosts"
            ));
        }
        let mut of_workers = self.workers.iter().filter_map(|worker| worker.agent);
        if let Some(agent) = of_workers.find(|agent| *agent >= self.agents.len() as u64) {
            let agents = self.agents.len();
            return Err(format!(
                "a worker is of the agent at position {agent}, of {agents}"
            ));
        }
        let mut series = self.agents.iter().filter_map(|agent| agent.series.as_ref());
        series.try_for_each(AgentSeries::check)?;
        let agents_max = self.agent_count.max(self.generators);
        if self.agents.len() as u64 > agents_max {
            let agents = self.agents.len();
            return Err(format!("{agents} agents, and agent_count is {agents_max}"));
        }
        self.network.check_kernels(&self.hosts)
    }

    /// Every group agrees with itself, and all of them together are the run.
    fn check_groups(&self) -> Result<(), String> {
        let mut sum = Interval::default();
        let mut clients = 0;
        for group in &self.groups {
            group.check()?;
            sum.merge(&group.total);
            clients += group.clients;
        }
        if sum.counts != self.total.counts || sum.distributions != self.total.distributions {
            return Err(format!(
                "the total of {} offered queries and {} responses is not the sum of its groups \
                 ({} and {}), or differs in another count or histogram",
                self.total.counts.offered,
                self.total.counts.responses,
                sum.counts.offered,
                sum.counts.responses
            ));
        }
        // Clients that changed what they did on the way are in the groups of before and after.
        if clients < self.scenario.clients {
            return Err(format!(
                "{} clients, but {clients} in its groups",
                self.scenario.clients
            ));
        }
        Ok(())
    }

    /// The JSON Schema (2020-12) of the record.
    pub fn json_schema() -> serde_json::Value {
        schemars::schema_for!(RunRecord).to_value()
    }

    /// Length of each whole one of `intervals`, in nanoseconds.
    pub fn interval_ns(&self) -> u64 {
        (self.scenario.interval_ns).saturating_mul(self.intervals_merged)
    }

    /// Merges intervals until each is of `merged` of the length asked for; more than they are now,
    /// and a power of two.
    pub(crate) fn widen_intervals(&mut self, merged: u64) {
        let by = merged / self.intervals_merged.max(1);
        if by > 1 {
            intervals::widen(&mut self.intervals, by, self.measured_ns);
            self.intervals_merged = merged;
        }
    }

    /// A worker by its position, for people: with its agent if there are several.
    pub fn worker_name(&self, position: usize) -> String {
        let worker = self.workers.get(position);
        let agent = worker.and_then(|worker| worker.agent).map(|it| it as usize);
        let is_named = |agent: &usize| {
            let agents = &self.agents;
            agents.len() > 1 || agents.get(*agent).is_some_and(|it| it.name.is_some())
        };
        match agent.filter(is_named) {
            Some(agent) => format!("worker {position} ({})", self.agent_name(agent)),
            None => format!("worker {position}"),
        }
    }

    /// An agent by its position, for people: as the command that led it was given it, or the name
    /// of its node; with its number where others have the same name, or by that alone.
    pub fn agent_name(&self, position: usize) -> String {
        // Counted from 1, as in errors on agents.
        let number = position + 1;
        let by_position = || format!("agent {number}");
        let Some(agent) = self.agents.get(position) else {
            return by_position();
        };
        let name = self.host_name(agent);
        let others = self.agents.iter().enumerate();
        let mut others = others.filter(|(other, _)| *other != position);
        let is_shared = others.any(|(_, other)| self.host_name(other) == name);
        match (name, &agent.name) {
            (Some(name), _) if !is_shared => name.to_owned(),
            (_, Some(name)) => format!("{name} (agent {number})"),
            _ => by_position(),
        }
    }

    /// An agent by its position, with its node where an orchestrator has placed it.
    pub(crate) fn agent_on_node(&self, position: usize) -> String {
        let name = self.agent_name(position);
        let agent = self.agents.get(position);
        let placement = agent.and_then(|agent| agent.placement.as_ref());
        match placement.and_then(|it| it.node.as_ref()) {
            Some(node) if *node != name => format!("{name} on {node}"),
            _ => name,
        }
    }

    /// The host of an agent, as the command that led it was given it, or the name of its node.
    fn host_name<'a>(&'a self, agent: &'a Agent) -> Option<&'a str> {
        agent.name.as_deref().or_else(|| self.node_name(agent))
    }

    /// The node of an agent: as the orchestrator calls it, or as the node calls itself.
    pub fn node_name<'a>(&'a self, agent: &'a Agent) -> Option<&'a str> {
        let placement = agent.placement.as_ref();
        let host = self.hosts.get(agent.host as usize);
        let own = || Some(host?.identity.as_ref()?.node.as_str());
        placement.and_then(|it| it.node.as_deref()).or_else(own)
    }

    /// True if the agents are processes of one command on its host.
    pub fn has_local_agents(&self) -> bool {
        self.agents.len() > 1
            && self.generators == 1
            && self.agents.iter().all(|agent| agent.name.is_none())
    }

    /// The window for rates in seconds.
    pub fn measured_seconds(&self) -> f64 {
        self.measured_ns as f64 / 1e9
    }

    /// How the clients of all groups fared together; none if a group does not tell.
    pub fn experience(&self) -> Option<ClientExperience> {
        let mut all = ClientExperience::default();
        for group in &self.groups {
            all.merge(group.experience.as_ref()?);
        }
        Some(all)
    }

    /// Connections of the whole run, those set up before it and during warm-up included.
    pub fn connections(&self) -> Connections {
        let mut all = self.warmup.counts.connections.clone();
        all.add(&self.total.counts.connections);
        all
    }

    /// Set-up times of all connections and of their first queries, as [`RunRecord::connections`].
    pub fn connection_times(&self) -> ConnectionTimes {
        let mut all = self.warmup.distributions.connections.clone();
        all.merge(&self.total.distributions.connections);
        all
    }

    /// Queries of the warm-up that took so long that they held their slots of a closed loop for
    /// half of the measured part, whenever they were sent; 0 if nothing was measured.
    pub fn answered_after_warmup(&self) -> u64 {
        if self.measured_ns == 0 || self.outstanding().is_none() {
            return 0;
        }
        let from_ns = self.phases.warmup_ns + self.measured_ns / 2;
        self.warmup.distributions.latency.count_from(from_ns)
    }

    /// Service time of all queries but the first of each connection, warm-up included.
    pub fn later_queries(&self) -> Histogram {
        let mut all = self.warmup.distributions.service.clone();
        all.merge(&self.total.distributions.service);
        all.without(&self.connection_times().first_query)
    }

    /// TLS and QUIC handshakes completed a second within the window.
    pub fn handshakes_per_second(&self) -> f64 {
        let each = self
            .intervals_in_window()
            .map(|interval| interval.counts.connections.handshakes.total());
        self.per_second(each.sum())
    }

    /// Attempts to connect a second within the window.
    pub fn attempts_per_second(&self) -> f64 {
        let each = self
            .intervals_in_window()
            .map(|interval| interval.counts.connections.attempted);
        self.per_second(each.sum())
    }

    /// True if connections were opened and closed, and nothing was asked.
    pub fn asks_nothing(&self) -> bool {
        self.scenario.connections.asks_nothing()
    }

    /// Connections that became usable in the measured run, its drain included.
    pub fn connections_opened(&self) -> u64 {
        self.scenario.usable(&self.total.counts.connections)
    }

    /// Connections that became usable a second within the window.
    pub fn opened_per_second(&self) -> f64 {
        let each = self
            .intervals_in_window()
            .map(|interval| self.scenario.usable(&interval.counts.connections));
        self.per_second(each.sum())
    }

    /// Mean number of connections being set up, by Little's law: those that became usable times
    /// how long that took.
    pub fn setting_up_mean(&self) -> f64 {
        let times = &self.total.distributions.connections;
        per(times.set_up_ns() as f64, self.measured_ns as f64)
    }

    /// The lowest limit of streams open at once that the target set; none without such a limit.
    pub fn streams_max(&self) -> Option<u64> {
        let limits = self.workers.iter().filter_map(|worker| worker.streams_max);
        limits.min()
    }

    /// Queries scheduled a second.
    pub fn offered_qps(&self) -> f64 {
        self.per_second(self.total.counts.offered)
    }

    /// Queries handed to the network a second.
    pub fn sent_qps(&self) -> f64 {
        self.per_second(self.total.counts.sent)
    }

    /// Responses a second, of those that count: see [`RunRecord::responses_achieved`].
    pub fn achieved_qps(&self) -> f64 {
        self.per_second(self.responses_achieved())
    }

    /// Responses with an RCODE of the goodput set, all of the run.
    pub fn goodput(&self) -> u64 {
        self.total.counts.goodput(&self.scenario.goodput_rcodes)
    }

    /// Achieved QPS times the share of responses that are goodput.
    pub fn goodput_qps(&self) -> f64 {
        self.achieved_qps() * per(self.goodput() as f64, self.total.counts.responses as f64)
    }

    /// Share of the offered queries that got no response, 0 to 1, whatever the cause.
    pub fn lost_share(&self) -> f64 {
        per(
            self.total.counts.lost() as f64,
            self.total.counts.offered as f64,
        )
    }

    /// Bits of DNS messages sent a second, without transport framing.
    pub fn sent_bit_rate(&self) -> f64 {
        self.per_second(self.total.counts.sent_octets) * 8.0
    }

    /// Bits of DNS messages received a second, without transport framing.
    pub fn received_bit_rate(&self) -> f64 {
        self.per_second(self.total.counts.received_octets) * 8.0
    }

    /// Bits of IP packets sent a second, with all headers and handshakes; none in a record of a
    /// version that did not count them.
    pub fn sent_wire_rate(&self) -> Option<f64> {
        self.wire_rate(WireCounts::sent_octets)
    }

    /// Bits of IP packets received a second, counted alike.
    pub fn received_wire_rate(&self) -> Option<f64> {
        self.wire_rate(WireCounts::received_octets)
    }

    fn wire_rate(&self, octets: fn(&WireCounts, bool) -> u64) -> Option<f64> {
        let wire = &self.total.counts.wire;
        let is_ipv6 = self.scenario.target.starts_with('[');
        (!wire.is_empty()).then(|| self.per_second(octets(wire, is_ipv6)) * 8.0)
    }

    /// Mean size of a query in bytes; none if none was sent.
    pub fn query_octets_mean(&self) -> Option<f64> {
        let counts = &self.total.counts;
        (counts.sent > 0).then(|| counts.sent_octets as f64 / counts.sent as f64)
    }

    /// Mean size of a response in bytes; none if none came.
    pub fn response_octets_mean(&self) -> Option<f64> {
        let counts = &self.total.counts;
        (counts.responses > 0).then(|| counts.received_octets as f64 / counts.responses as f64)
    }

    /// Mean number of queries in flight within the window, those that were lost included.
    pub fn mean_in_flight(&self) -> f64 {
        let within = self.intervals_in_window();
        let (mut in_flight_ns, mut length_ns) = (0, 0);
        for interval in within {
            in_flight_ns += interval.in_flight_ns;
            length_ns += interval.length_ns();
        }
        per(in_flight_ns as f64, length_ns as f64)
    }

    /// The intervals within the window, without those of the drain.
    pub fn intervals_in_window(&self) -> impl Iterator<Item = &Interval> {
        let within = |interval: &&Interval| interval.start_ns < self.measured_ns;
        self.intervals.iter().filter(within)
    }

    /// Those of them that are no remainder: half as long as the others at least.
    pub fn whole_intervals(&self) -> impl Iterator<Item = &Interval> {
        let least = (self.interval_ns() / 2).max(1);
        let is_whole = move |interval: &&Interval| interval.length_ns() >= least;
        self.intervals_in_window().filter(is_whole)
    }

    /// Places of the closed loop; none in open loop.
    pub fn outstanding(&self) -> Option<u64> {
        match self.scenario.arrival {
            Arrival::Closed { outstanding, .. } => Some(outstanding),
            Arrival::Open { .. } | Arrival::Clients { .. } => None,
        }
    }

    fn per_second(&self, count: u64) -> f64 {
        per(count as f64, self.measured_seconds())
    }
}
