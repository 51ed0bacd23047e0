//! Rules about the generator's host: stolen CPU time, and dropped packets.

use super::finding::Finding;
use super::phrases::{
    BUFFER_OCTETS, MORE_QUOTA, STOPPED_BY_QUOTA, at_hosts, host_of, some_agents, times,
};
use crate::doctor::{Cure, Diagnosis, STEAL_PROBLEM, State};
use crate::notation::{count, counted, decimal, latency, percent, share};
use crate::symptoms::{Figures, Symptoms};

pub(super) fn steal(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let it = symptoms.steal.as_ref()?;
    let state = match it.share >= STEAL_PROBLEM {
        true => State::Problem,
        false => State::Warning,
    };
    let at = at_hosts(&symptoms.figures, &it.at);
    let seen = format!(
        "{}the hypervisor took {} of {}'s CPU time during the run",
        at.agents,
        percent(it.share),
        at.host
    );
    let matters = "while a virtual CPU is taken away, every query on it stalls";
    let diagnosis = Diagnosis::new("CPU steal", state, seen, matters);
    Some(diagnosis.cure(Cure::dedicated_cpus()).into())
}

pub(super) fn target_starved(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let it = symptoms.target_starved.as_ref()?;
    let seen = format!(
        "the target on this host waited for a CPU {} s in each second: {}",
        decimal(it.waited, 2),
        it.others
    );
    let matters = "the result is what the target can do beside these processes, not what it can do";
    let diagnosis = Diagnosis::new("target's CPU", State::Problem, seen, matters)
        .cure(cpus_for_target())
        .cure(Cure::busiest_processes());
    Some(diagnosis.into())
}

pub(super) fn cpus_for_target() -> Cure {
    Cure::words("stop the other processes, or give the target CPUs of its own: taskset, cpuset")
}

pub(super) fn target_throttled(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let quota = &symptoms.target_throttled.as_ref()?.quota;
    let seen = format!(
        "the CPU quota of the target on this host was used up in {} of {}, and stopped it for {} \
         in total",
        count(quota.throttled),
        counted(quota.periods, "period"),
        latency(quota.throttled_ns as f64)
    );
    let diagnosis = Diagnosis::new("target's quota", State::Problem, seen, STOPPED_BY_QUOTA);
    Some(diagnosis.cure(Cure::words(MORE_QUOTA)).into())
}

pub(super) fn quota_used(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let it = symptoms.quota_used.as_ref()?;
    let at = at_hosts(&symptoms.figures, &it.at);
    let periods = match it.of_periods.filter(|all| *all >= it.periods) {
        Some(all) => format!("in {} of {}", count(it.periods), counted(all, "period")),
        None => times(it.periods),
    };
    let seen = format!(
        "{}the CPU quota of {} was used up {periods}, and its threads were throttled for {} in \
         total",
        at.agents,
        at.container,
        latency(it.throttled_ns)
    );
    let matters = "throttled threads send late and read late, which shows as the target's latency";
    let cure = "in Kubernetes: leave out limits.cpu, or set it and requests.cpu to the same whole \
                number under the static CPU manager policy";
    let state = match it.is_much() || symptoms.throttled_outages.is_some() {
        true => State::Problem,
        false => State::Warning,
    };
    let diagnosis = Diagnosis::new("CPU quota", state, seen, matters)
        .cure(Cure::words(cure))
        .cure(Cure::throng("--workers 1"));
    Some(diagnosis.into())
}

/// Cure for an interface's queues, whose length is given.
const QUEUES_ADVICE: &str = "send fewer queries at a time (--rate, --outstanding), or give the \
    generator a core of its own: a queue of AF_XDP holds 4,096 frames, one of a veth pair 256";

pub(super) fn own_receive_drops(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let (it, figures) = (symptoms.own_receive_drops.as_ref()?, &symptoms.figures);
    let has_xdp = figures.record.network.xdp.is_some();
    let (agents, host) = (some_agents(figures, &it.agents), host_of(&it.agents));
    let mut seen = match has_xdp {
        false => format!(
            "{agents}full receive buffers on {host} dropped {}",
            counted(it.drops, "datagram")
        ),
        true => format!(
            "{agents}full receive queues of the interface dropped {}",
            counted(it.drops, "frame")
        ),
    };
    let mut state = State::Warning;
    if it.explain_losses() {
        state = State::Problem;
        let lost = figures.unanswered();
        let of_lost = share(it.drops.min(lost), lost);
        seen.push_str(&format!(
            ", {of_lost} of the {} without response",
            count(lost)
        ));
    }
    let matters = "responses that arrived but were dropped here count as lost by the target";
    if has_xdp {
        let diagnosis = Diagnosis::new("receive queues", state, seen, matters);
        return Some(diagnosis.cure(Cure::words(QUEUES_ADVICE)).into());
    }
    let workers = figures.record.scenario.workers + 1;
    let diagnosis = Diagnosis::new("receive buffers", state, seen, matters)
        .cure(Cure::sysctl("net.core.rmem_max", BUFFER_OCTETS))
        .cure(Cure::throng(format!("--socket-buffer {BUFFER_OCTETS}")))
        .cure(Cure::throng(format!("--workers {workers}")));
    let advice = "raise net.core.rmem_max, or give the generator another worker";
    Some(Finding::from(diagnosis).advising(advice))
}

pub(super) fn own_send_drops(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let it = symptoms.own_send_drops.as_ref()?;
    let at = at_hosts(&symptoms.figures, &it.at);
    let seen = format!(
        "{}the kernel of {} dropped {} on sending (Udp.SndbufErrors), and {} got no response",
        at.agents,
        at.host,
        counted(it.drops, "datagram"),
        counted(it.lost, "query")
    );
    let matters = "queries that never left count as lost by the target";
    let advice = "raise net.core.wmem_max, or lower the rate: the link or its queue is full";
    let diagnosis = Diagnosis::new("send buffers", State::Problem, seen, matters)
        .cure(Cure::sysctl("net.core.wmem_max", BUFFER_OCTETS))
        .cure(Cure::words(advice));
    Some(Finding::from(diagnosis).advising(advice))
}

pub(super) fn backlog_drops(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let (it, figures) = (symptoms.backlog_drops.as_ref()?, &symptoms.figures);
    let state = match it.explain_losses() {
        true => State::Problem,
        false => State::Warning,
    };
    let at = at_hosts(figures, &it.at);
    let seen = format!(
        "{}the backlog of {}'s CPUs was full and dropped {}",
        at.agents,
        at.host,
        counted(it.packets, "packet")
    );
    let matters = "they were dropped before any socket saw them, and look like the target's loss";
    let cure = larger(figures, "net.core.netdev_max_backlog", 16_384);
    let diagnosis = Diagnosis::new("packet backlog", state, seen, matters);
    Some(diagnosis.cure(cure).into())
}

pub(super) fn flows_refused(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let it = symptoms.flows_refused.as_ref()?;
    let at = at_hosts(&symptoms.figures, &it.at);
    let seen = format!(
        "{}conntrack of {} refused {}: its table was full, or two flows collided in it",
        at.agents,
        at.host,
        counted(it.flows, "new flow")
    );
    let matters = "the first packet of a refused flow is dropped: a query without response, or a \
                   connection that takes a second longer";
    let table = larger(&symptoms.figures, "net.netfilter.nf_conntrack_max", 1 << 20);
    let state = match it.explain_losses() {
        true => State::Problem,
        false => State::Warning,
    };
    let diagnosis = Diagnosis::new("conntrack", state, seen, matters)
        .cure(table)
        .cure(Cure::untracked("OUTPUT", "dport"))
        .cure(Cure::untracked("PREROUTING", "sport"));
    Some(diagnosis.into())
}

/// Sets a kernel parameter to four times what it was during the run, at least to `least`.
fn larger(figures: &Figures<'_>, name: &str, least: u64) -> Cure {
    let hosts = figures.record.hosts.iter();
    let values = hosts.filter_map(|host| host.sysctls.get(name)?.parse::<u64>().ok());
    Cure::sysctl(name, (4 * values.max().unwrap_or(0)).max(least))
}

pub(super) fn frames_dropped_beyond(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let it = symptoms.frames_dropped_beyond.as_ref()?;
    let both = [
        (
            it.by_peer,
            "dropped at the other end of the veth pair, where no program read them in time",
        ),
        (
            it.by_interface,
            "dropped on leaving the interface, whose queue was full, or that of the other end of a \
             veth pair",
        ),
    ];
    let shown = both.into_iter().filter(|(frames, _)| *frames > 0);
    let shown = shown.map(|(frames, what)| format!("{} {what}", counted(frames, "frame")));
    let agents = some_agents(&symptoms.figures, &it.agents);
    let seen = format!("{agents}{}", shown.collect::<Vec<_>>().join("; "));
    let matters = "no server saw these queries: the host at the other end had no time to read them";
    let diagnosis = Diagnosis::new("queues beyond the interface", State::Warning, seen, matters)
        .cure(Cure::words(
            "send fewer queries at a time: lower --rate or --outstanding",
        ))
        .cure(Cure::words("give the target a core of its own"));
    Some(diagnosis.into())
}
