//! Rules about a lossy path, and about the models of a simulation.

use super::finding::{Conclusion, Finding};
use super::phrases::{lower_rate, some_agents};
use crate::doctor::{Cure, Diagnosis, State};
use crate::notation::{count, counted, latency, percent, rate, share};
use crate::simulation::ModelledServer;
use crate::symptoms::path::{ModelLimit, ModelLosses};
use crate::symptoms::{Figures, Symptoms};

/// What a firewall says that rejects. The kernel counts it for all programs of its namespace.
pub(super) fn rejections(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let it = symptoms.rejections.as_ref()?;
    let figures = &symptoms.figures;
    let seen = format!(
        "{} (ICMP destination unreachable) came to this host and named no closed port, as when a \
         firewall rejects queries (administratively prohibited) or a router has no route: of {} \
         without response",
        counted(it.messages, "rejection"),
        counted(figures.counts.lost(), "query")
    );
    let matters = "a firewall or a router that rejects queries sends few such messages a second, \
                   and drops the other queries: the target never gets them";
    let diagnosis = Diagnosis::new("rejections", State::Problem, seen, matters);
    Some(diagnosis.cure(who_rejects()).into())
}

pub(super) fn who_rejects() -> Cure {
    Cure::shell("tcpdump -c 3 -vni any 'icmp[0] = 3 or icmp6[0] = 1'  (sender and reason)")
}

pub(super) fn retransmissions(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let it = symptoms.retransmissions.as_ref()?;
    let whose = match it.are_of_run() {
        true => "this run's",
        false => "its",
    };
    let seen = format!(
        "{}{} of the TCP segments of {whose} connections ({}) were lost and sent again: the path \
         loses them",
        some_agents(&symptoms.figures, &it.agents),
        share(it.lost, it.sent),
        count(it.lost)
    );
    let advice = "look for drops on the path to the target";
    Some(lossy_path(&symptoms.figures, seen, advice))
}

/// Connections that wait for a segment that the path drops each time.
pub(super) fn gaps_unfilled(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let it = symptoms.gaps_unfilled.as_ref()?;
    let seen = format!(
        "{} of {} waited for a segment from the target that never came, though later ones did: {} \
         timed out, and next to none was answered late",
        count(it.connections),
        counted(it.closed, "connection"),
        counted(it.timeouts, "query")
    );
    let matters = "a path that drops segments longer than its MTU, and the ICMP messages about \
                   them, stops each connection at its first long response; what is lost at random \
                   is sent again and comes";
    let target = symptoms.figures.record.scenario.target.as_str();
    let diagnosis = Diagnosis::new("long segments", State::Problem, seen, matters);
    let finding = diagnosis.cures(long_segments(target));
    Some(finding.into())
}

/// How to find out whether a path carries long segments, and what to do where it does not.
pub(super) fn long_segments(target: &str) -> [Cure; 2] {
    [
        Cure::shell(format!(
            "ping -M do -s 1472 {}  (from the target to this host too; less until it passes)",
            Cure::host_of(target)
        )),
        Cure::words(
            "let ICMP \"fragmentation needed\" pass, or clamp the MSS on the path to what passes",
        ),
    ]
}

/// Queries and echo requests wait behind the same packets.
pub(super) fn queue_on_path(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let it = symptoms.queue_on_path.as_ref()?;
    let [echo, queries, shortest] =
        [it.echo_p50_ns, it.queries_p50_ns, it.shortest_ns].map(|ns| latency(ns as f64));
    let seen = format!(
        "ICMP echo requests to the target waited as queries did: p50 {echo} and {queries}, against \
         the shortest {shortest}"
    );
    let matters = "the kernel of the target's host answers them, and no server reads them: what \
                   delays both is a queue on the path, or in that kernel";
    let below = lower_rate(&symptoms.figures, 1.0);
    Some(on_path(&symptoms.figures, seen, matters).advising(&below))
}

/// Queries and echo requests are lost on the same path.
pub(super) fn echoes_lost(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let it = symptoms.echoes_lost.as_ref()?;
    let figures = &symptoms.figures;
    let seen = format!(
        "{} of the ICMP echo requests to the target ({} of {}) got no reply, and {} of the queries \
         got no response",
        share(it.lost, it.sent),
        count(it.lost),
        count(it.sent),
        percent(figures.unanswered_share())
    );
    let matters = "the kernel of the target's host answers them, and no server reads them: the \
                   path loses both";
    Some(on_path(figures, seen, matters).advising("look for drops on the path to the target"))
}

fn on_path(figures: &Figures<'_>, seen: String, matters: &'static str) -> Finding {
    let cure = Cure::trace_path("udp", &figures.record.scenario.target);
    Finding::from(Diagnosis::new("path", State::Problem, seen, matters).cure(cure))
}

pub(super) fn model_losses(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let figures = &symptoms.figures;
    let seen = match symptoms.model_losses.as_ref()? {
        ModelLosses::SentAgain { number, is_quic } => {
            let what = if *is_quic { "datagram" } else { "segment" };
            let lost = counted(*number, what);
            format!("the modelled network lost {lost}, whose data was sent again later")
        }
        ModelLosses::Datagrams(number) => format!(
            "the modelled network lost {}: {} of the queries got no response",
            counted(*number, "datagram"),
            share(figures.unanswered(), figures.counts.sent)
        ),
    };
    Some(lossy_path(figures, seen, "that is the model: --sim-loss"))
}

fn lossy_path(figures: &Figures<'_>, seen: String, advice: &str) -> Finding {
    let matters = "what the path loses is not lost by the target; over TCP it shows as latency";
    let cure = match figures.record.simulation {
        Some(_) => Cure::words(advice),
        None => Cure::trace_path("tcp", &figures.record.scenario.target),
    };
    let diagnosis = Diagnosis::new("path", State::Problem, seen, matters);
    Finding::from(diagnosis.cure(cure)).advising(advice)
}

/// A note in every verdict on a simulation, so that it is not mistaken for a measurement.
pub(crate) fn marking(figures: &Figures<'_>) -> Option<String> {
    let simulation = figures.record.simulation.as_ref()?;
    let what = match &simulation.server {
        None => "no server was measured, and the simulated one needed no time".to_owned(),
        Some(server) => format!(
            "no server was measured; {} busy for {} of the run in the model",
            workers(server),
            percent(server.seen.utilisation)
        ),
    };
    Some(format!("SIMULATION: {what}"))
}

fn workers(server: &ModelledServer) -> String {
    let were = if server.workers == 1 { "was" } else { "were" };
    format!("{} {were}", counted(server.workers, "worker"))
}

fn model<'a>(symptoms: &Symptoms<'a>) -> Option<&'a ModelledServer> {
    let simulation = symptoms.figures.record.simulation.as_ref()?;
    simulation.server.as_ref()
}

pub(super) fn model_limit(symptoms: &Symptoms<'_>) -> Option<Conclusion> {
    let server = model(symptoms)?;
    let seen = &server.seen;
    let busy = percent(seen.utilisation);
    let wait = seen.waits.percentile(0.99);
    let wait = wait.map_or_else(|| "-".to_owned(), |wait| latency(wait as f64));
    let queue = format!(
        "up to {} waited, queries p99 {wait}, and {} of the queries were dropped",
        counted(seen.waiting_max, "job"),
        share(seen.dropped, seen.queries)
    );
    let (evidence, advice) = match symptoms.model_limit.as_ref()? {
        ModelLimit::WorkersBusy => (
            format!(
                "the modelled server's {} busy for {busy} of the run: {queue}",
                workers(server)
            ),
            "give the model more workers (--sim-workers), or less load",
        ),
        ModelLimit::QueueShort => (
            format!(
                "the modelled server's queue of {} was too short for the peaks, with its workers \
                 busy for {busy} of the run: {queue}",
                count(server.queue_max.unwrap_or(0))
            ),
            "give the model a longer queue: --sim-queue",
        ),
        ModelLimit::SynsDropped(syns) => (
            format!(
                "the modelled server's listen backlog was full: {} dropped, and sent again after a \
                 second or more",
                counted(*syns, "SYN")
            ),
            "give the model a longer backlog: --sim-backlog",
        ),
    };
    Some(Conclusion::new(evidence, advice))
}

pub(super) fn model_carried(symptoms: &Symptoms<'_>) -> Option<Conclusion> {
    let (server, figures) = (model(symptoms)?, &symptoms.figures);
    let counts = figures.counts;
    let evidence = format!(
        "{} of the queries offered at {} were answered, with the modelled server's workers busy \
         for {} of the run",
        share(counts.responses, counts.offered),
        rate(figures.record.offered_qps()),
        percent(server.seen.utilisation)
    );
    let advice = "raise the load, or give the model fewer workers, to find its limit";
    Some(Conclusion::new(evidence, advice))
}
