//! Rules about observed servers: their CPU, memory, sockets, queries and upstreams.

use super::connections::more_clients;
use super::finding::Finding;
use super::phrases::{
    BUFFER_OCTETS, MORE_QUOTA, STOPPED_BY_QUOTA, larger_server_buffers, lift_rate_limits,
};
use crate::doctor::{Cure, Diagnosis, Place, State};
use crate::notation::{count, counted, decimal, latency, percent};
use crate::observation::{ProgramUse, QueryUse};
use crate::symptoms::server::{
    CpuUse, MemoryNeed, NUMBER_MAX, OtherClients, ServerCounts, ServerUpstream, queries_sent_again,
};
use crate::symptoms::{Figures, Symptoms};

const MIB: f64 = 1_048_576.0;

/// A finding for each of these programs.
fn each<'a>(
    symptoms: &Symptoms<'a>,
    programs: Option<&impl AsRef<[usize]>>,
    says: fn(&ProgramUse<'a>, &str) -> Diagnosis,
) -> Vec<Finding> {
    let programs = programs.into_iter().flat_map(|it| it.as_ref());
    let finding = |position: &usize| {
        let behind = match position {
            0 => "",
            _ => ", behind the target",
        };
        let program = &symptoms.figures.programs[*position];
        let mut diagnosis = says(program, behind);
        // Those of another server beside it have no effect on it.
        if let Some(own) = &program.observation().facts.product {
            let fits = |cure: &Cure| cure.place.product().is_none_or(|it| it == own);
            diagnosis.cures.retain(fits);
        }
        diagnosis.into()
    };
    programs.map(finding).collect()
}

pub(super) fn cpu_used_up(symptoms: &Symptoms<'_>) -> Vec<Finding> {
    each(symptoms, symptoms.server_cpu_used_up.as_ref(), cpu)
}

pub(super) fn cpu_limits(symptoms: &Symptoms<'_>) -> Vec<Finding> {
    each(symptoms, symptoms.server_cpu_limits.as_ref(), cpu)
}

pub(super) fn cpu_taken(symptoms: &Symptoms<'_>) -> Vec<Finding> {
    each(symptoms, symptoms.server_cpu_taken.as_ref(), cpu)
}

pub(super) fn cpu_left(symptoms: &Symptoms<'_>) -> Vec<Finding> {
    each(symptoms, symptoms.server_cpu_left.as_ref(), cpu)
}

/// The CPUs that the target and servers behind it have in common.
pub(super) fn service_cpu(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let it = symptoms.service_cpu_used_up.as_ref()?;
    let programs = &symptoms.figures.programs;
    let used = |position: &usize| decimal(programs[*position].cpus_used, 2);
    let behind = it.programs[1..].iter();
    let behind = behind.map(|it| format!("{}, behind it, {}", programs[*it].name(), used(it)));
    let seen = format!(
        "{} used {} and {} of the {} CPUs that they share ({}): their CPU is the limit",
        programs[0].name(),
        used(&0),
        behind.collect::<Vec<_>>().join(", "),
        decimal(it.allowed, 2),
        percent(it.used / it.allowed)
    );
    let matters = "the rate is what these servers can do together with these CPUs, and not what \
                   one of them can do";
    let diagnosis = Diagnosis::new("CPU of the servers", State::Ok, seen, matters);
    let cure = "give the servers behind the target CPUs of their own (taskset, cpuset), or all of \
                them more";
    Some(diagnosis.cure(Cure::words(cure)).into())
}

fn cpu(program: &ProgramUse<'_>, behind: &str) -> Diagnosis {
    let how = CpuUse::of(program);
    let seen = format!("{}{behind}", cpu_seen(program, how));
    let (state, matters) = match how {
        CpuUse::Throttled => (State::Problem, STOPPED_BY_QUOTA),
        CpuUse::Full => (
            State::Ok,
            "the rate is what this server can do with these CPUs; more CPUs or less work a query \
             raise it",
        ),
        CpuUse::OneThread => (
            State::Problem,
            "threads that wait for one of them, for a lock or for one socket leave CPUs unused",
        ),
        CpuUse::TakenByOthers => (
            State::Warning,
            "the rate is what the server can do beside these processes, not what it can do",
        ),
        CpuUse::Free | CpuUse::Some => (State::Ok, "its CPU did not keep it from answering more"),
    };
    Diagnosis::new("CPU of the server", state, seen, matters).cures(cpu_cures(program, how))
}

fn cpu_seen(program: &ProgramUse<'_>, how: CpuUse) -> String {
    let used = decimal(program.cpus_used, 2);
    let of_all = match program.cpus_allowed {
        Some(all) => format!("{used} of its {} CPUs", decimal(all, 2)),
        None => format!("{used} CPUs"),
    };
    let of_all = match program.cpu_share() {
        Some(share) => format!("{of_all} ({})", percent(share)),
        None => of_all,
    };
    let thread = program.busiest_thread_cpus.unwrap_or(0.0);
    let name = program.name();
    match how {
        CpuUse::Throttled => format!(
            "{name} used {of_all}; its CPU quota stopped it in {} of the periods",
            percent(program.throttled_share.unwrap_or(0.0))
        ),
        CpuUse::Full => format!("{name} used {of_all}: its CPU is the limit"),
        CpuUse::OneThread => format!(
            "{name} used {of_all}, but one of its threads was busy {} of the time: that thread is \
             the limit, other CPUs do not help",
            percent(thread.min(1.0))
        ),
        CpuUse::TakenByOthers => format!(
            "{name} used {of_all}; its threads had to wait for a CPU, {} s in each second: other \
             processes used them",
            decimal(program.waited_cpus.unwrap_or(0.0), 2)
        ),
        CpuUse::Free | CpuUse::Some => format!("{name} used {of_all}"),
    }
}

fn cpu_cures(program: &ProgramUse<'_>, how: CpuUse) -> Vec<Cure> {
    match how {
        CpuUse::Throttled => vec![Cure::words(MORE_QUOTA)],
        CpuUse::OneThread => more_threads(program),
        CpuUse::TakenByOthers => vec![
            Cure::busiest_processes(),
            Cure::words("let generator and server have CPUs of their own: --cpus, taskset"),
        ],
        CpuUse::Full => vec![
            Cure::words("give the server more CPUs, or faster ones"),
            Cure::named("minimal-responses yes;"),
        ],
        CpuUse::Free | CpuUse::Some => Vec::new(),
    }
}

/// How servers use all of their CPUs.
fn more_threads(program: &ProgramUse<'_>) -> Vec<Cure> {
    let cpus = program.cpus_allowed.unwrap_or(1.0).ceil();
    let all = [
        (
            "BIND",
            Cure::new(Place::Server, format!("named -n {cpus:.0}")),
        ),
        (
            "Unbound",
            Cure::new(Place::UnboundConf, format!("num-threads: {cpus:.0}")),
        ),
        (
            "Knot DNS",
            Cure::new(Place::KnotConf, format!("udp-workers: {cpus:.0}")),
        ),
    ];
    let is_known = all.iter().any(|(product, _)| *product == program.product());
    let fitting = all.into_iter();
    let fitting = fitting.filter(|(product, _)| !is_known || *product == program.product());
    fitting.map(|(_, cure)| cure).collect()
}

pub(super) fn memory_short(symptoms: &Symptoms<'_>) -> Vec<Finding> {
    let programs = symptoms.server_memory_short.as_ref();
    each(symptoms, programs, |program, _| memory(program))
}

fn memory(program: &ProgramUse<'_>) -> Diagnosis {
    let it = MemoryNeed::of(program);
    let seen = [
        (it.killed > 0).then(|| {
            let times = counted(it.killed, "time");
            format!("the kernel killed processes of its control group for lack of memory, {times}")
        }),
        it.pages_per_second.map(|pages| {
            let pages = decimal(pages, 0);
            format!("it waited for {pages} pages a second from a disk")
        }),
        it.full.map(|(most, limit)| {
            format!(
                "its control group had up to {} of {} MiB ({})",
                decimal(most / MIB, 1),
                decimal(limit / MIB, 1),
                percent(most / limit)
            )
        }),
    ];
    let seen: Vec<String> = seen.into_iter().flatten().collect();
    let state = match it.is_urgent() {
        true => State::Problem,
        false => State::Warning,
    };
    let seen = format!("memory of {}: {}", program.name(), seen.join("; "));
    let matters = "a server without memory waits for a disk or is killed; what the kernel caches \
                   for it counts too, and is given up first";
    let more = "give it more memory: memory.max of its control group, limits.memory in Kubernetes, \
                --memory of a container";
    let smaller = program.memory.limit_bytes.map(|limit| {
        let half = (limit / 2.0 / MIB).floor().max(1.0);
        let quarter = (limit / 4.0 / MIB).floor().max(1.0);
        let unbound = format!("rrset-cache-size: {quarter:.0}m");
        [
            Cure::named(format!("max-cache-size {half:.0}m;")),
            Cure::new(Place::UnboundConf, unbound),
        ]
    });
    Diagnosis::new("memory of the server", state, seen, matters)
        .cure(Cure::words(more))
        .cures(smaller.into_iter().flatten())
}

pub(super) fn stopped(symptoms: &Symptoms<'_>) -> Vec<Finding> {
    let programs = symptoms.server_stopped.as_ref();
    each(symptoms, programs, |program, behind| {
        let (with, all) = program.stopped;
        let seen = format!(
            "{}{behind}{} had been stopped by a signal at {} of {}",
            program.name(),
            if behind.is_empty() { "" } else { "," },
            count(with),
            counted(all, "scrape")
        );
        let matters = "a program that is stopped answers nothing, and queries wait in its sockets";
        let process = program.observation().facts.process_id;
        let resume = process.map(|pid| Cure::new(Place::Server, format!("kill -CONT {pid}")));
        let look = Cure::words("find out who stopped it: a debugger, a supervisor, a snapshot");
        Diagnosis::new("stopped server", State::Problem, seen, matters)
            .cures(resume)
            .cure(look)
    })
}

pub(super) fn datagrams_dropped(symptoms: &Symptoms<'_>) -> Vec<Finding> {
    let programs = symptoms.server_datagrams_dropped.as_ref();
    each(symptoms, programs, |program, _| {
        let mut seen = format!(
            "the UDP sockets of {} had no room for {}",
            program.name(),
            counted(program.udp_drops, "datagram")
        );
        if let Some(octets) = program.udp_buffer_bytes {
            seen.push_str(&format!("; the smallest takes {} bytes", count(octets)));
        }
        let matters = "queries that its sockets had no room for are lost: it reads too slowly, or \
                       in bursts";
        let topic = "receive buffers of the server";
        Diagnosis::new(topic, State::Problem, seen, matters)
            .cures(larger_server_buffers())
            .cure(Cure::named(format!("udp-receive-buffer {BUFFER_OCTETS};")))
            .cure(Cure::new(Place::UnboundConf, "so-rcvbuf: 16m"))
    })
}

pub(super) fn interface_dropped(symptoms: &Symptoms<'_>) -> Vec<Finding> {
    let programs = symptoms.server_interface_dropped.as_ref();
    each(symptoms, programs, |program, _| {
        let seen = format!(
            "the network interface of the pod of {} dropped {} to it",
            program.name(),
            counted(program.interface_drops, "packet")
        );
        let matters = "packets that are dropped before the pod reads them are lost queries, or \
                       segments that come again later";
        Diagnosis::new("interface of the server", State::Problem, seen, matters).cure(Cure::words(
            "look at the network of its node: ip -s link, limits on the pod's bandwidth, and the \
             queue of its interface (txqueuelen)",
        ))
    })
}

pub(super) fn listen_overflow(symptoms: &Symptoms<'_>) -> Vec<Finding> {
    let programs = symptoms.server_listen_overflow.as_ref();
    each(symptoms, programs, |program, _| {
        let mut seen = format!(
            "the listen queue of {}, or of another program of its network namespace, was full for \
             {}",
            program.name(),
            counted(program.listen_overflows, "connection")
        );
        if let Some(room) = program.listen_queue {
            seen.push_str(&format!("; its own has room for {}", count(room)));
        }
        let matters = "a connection that a full listen queue drops is tried again after 1 s, then \
                       3 s";
        Diagnosis::new("listen queue of the server", State::Problem, seen, matters)
            .cure(Cure::server_sysctl("net.core.somaxconn", 4_096))
            .cure(Cure::named("tcp-listen-queue 4096;"))
    })
}

/// The meaning of a counter of dropped queries.
fn dropped_by(counter: &str, product: &str) -> &'static str {
    match (counter, product) {
        ("requestlist.exceeded", _) => "because its request list was full",
        ("requestlist.overwritten", _) => "to make room in its request list",
        ("connections.failed", _) => "TCP connections that it did not accept",
        ("clients.tcp_gave_up", _) => "TCP connections that it gave up",
        (_, "BIND") => {
            "by a rate limit, a rule, an access list, or because more clients than \
             clients-per-query waited for one name"
        }
        _ => "by a rate limit, a rule or an access list",
    }
}

pub(super) fn queries_dropped(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let (it, figures) = (symptoms.server_queries_dropped.as_ref()?, &symptoms.figures);
    let product = figures.servers.first()?.name();
    let each = it.by_counter.iter().map(|(name, number)| {
        let (number, why) = (count(*number), dropped_by(name, product));
        format!("{number} {why} ({name})")
    });
    let seen = format!(
        "{product} dropped by its own count: {}",
        each.collect::<Vec<_>>().join(", ")
    );
    let matters = "a server that drops queries by a rule or a limit was not driven to what it can \
                   do: the rate is that of the limit";
    let state = match it.explain_losses() {
        true => State::Problem,
        false => State::Warning,
    };
    let is_list = |(name, _): &(&str, u64)| name.starts_with("requestlist");
    let list = Cure::new(Place::UnboundConf, "num-queries-per-thread: 4096");
    let diagnosis = Diagnosis::new("queries dropped by the server", state, seen, matters)
        .cures(it.by_counter.iter().any(is_list).then_some(list))
        .cures(lift_rate_limits());
    Some(diagnosis.into())
}

pub(super) fn tcp_clients(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let it = symptoms.server_tcp_clients.as_ref()?;
    let seen = format!(
        "{} had no more than {} TCP clients at once by its own count, of {} that asked: {}",
        symptoms.figures.servers.first()?.name(),
        count(it.most),
        count(it.all),
        match it.others {
            OtherClients::TurnedAway => "its limit on TCP clients is met",
            OtherClients::OfOtherAddresses => "it is their address that keeps the others out",
            OtherClients::NeverConnected => "the others did not reach it",
        }
    );
    let topic = "TCP clients of the server";
    if it.others != OtherClients::TurnedAway {
        let matters = "as many as reach it are no limit of its own";
        return Some(Diagnosis::new(topic, State::Ok, seen, matters).into());
    }
    let matters = "a server at this limit leaves further connections in its listen queue, or \
                   closes them";
    let diagnosis = Diagnosis::new(topic, State::Problem, seen, matters);
    Some(diagnosis.cures(more_clients(&symptoms.figures)).into())
}

/// A query log. Its share of the server's CPU time, or its waits for a disk, are in no kernel
/// counter; a run without it shows them.
pub(super) fn log(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let it = symptoms.server_log.as_ref()?;
    let program = symptoms.figures.programs.first()?;
    let seen = format!(
        "{} wrote {} bytes to files for each query, as a log of queries does",
        program.name(),
        decimal(it.bytes_each, 0)
    );
    let matters = "a log takes CPU time, and a lock where threads share it; a slow disk stops the \
                   server. How much it takes shows when the same runs without";
    let of_bind = Cure::new(Place::Rndc, "rndc querylog off");
    let diagnosis = Diagnosis::new("log of the server", State::Warning, seen, matters)
        .cure(Cure::named("querylog no;"))
        .cure(Cure::new(Place::UnboundConf, "log-queries: no"))
        .cure(Cure::new(Place::UnboundConf, "log-replies: no"))
        .cures((program.product() == "BIND").then_some(of_bind))
        .cure(Cure::words(
            "switch its log of queries off (CoreDNS: remove the plugin log), and compare",
        ));
    Some(diagnosis.into())
}

/// A worst time of this many times the mean is reported.
const MUCH_WORSE: f64 = 3.0;

/// Other servers for which an observed server waited: its latency is theirs.
pub(super) fn upstream(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let it = symptoms.server_upstream.as_ref()?;
    let server = symptoms.figures.servers.first()?;
    let state = match it.is_cause() {
        true => State::Problem,
        false => State::Ok,
    };
    let matters = "what a forwarder or a resolver waits for is another server's latency, and the \
                   queries that wait hold its memory, sockets and limits";
    let seen = upstream_seen(it, server);
    let diagnosis = Diagnosis::new("servers behind the target", state, seen, matters)
        .cure(Cure::words(
            "measure those servers by themselves, with the same questions",
        ))
        .cure(Cure::new(Place::Corefile, "cache 300"))
        .cure(Cure::new(Place::UnboundConf, "serve-expired: yes"))
        .cure(Cure::named(
            "stale-cache-enable yes; stale-answer-enable yes;",
        ));
    Some(diagnosis.into())
}

fn upstream_seen(it: &ServerUpstream, server: &QueryUse<'_>) -> String {
    let mut seen = format!(
        "{} asked other servers {} times, for {} of its queries",
        server.name(),
        count(it.queries as u64),
        percent(it.share.min(1.0))
    );
    if let Some(mean_s) = server.upstream_s_mean {
        let mean = latency(mean_s * 1e9);
        seen.push_str(&format!(", which took {mean} on average"));
        let worst = server.upstream_s_worst;
        if let Some(worst_s) = worst.filter(|worst_s| *worst_s >= MUCH_WORSE * mean_s) {
            let worst = latency(worst_s * 1e9);
            seen.push_str(&format!(", {worst} from one scrape to the next at worst"));
        }
    }
    for (counter, number) in &server.upstream_failures {
        let (all, queries) = (count(*number), counted(*number, "query"));
        seen.push_str(&match *counter {
            "upstream.timeouts" => format!("; {all} times no server answered in time"),
            "upstream.checks_failed" => {
                format!("; {} whether they answer failed", counted(*number, "check"))
            }
            "upstream.send_errors" => format!("; {queries} could not be sent to one"),
            "upstream.rejected" => {
                format!("; {queries} did not go on, as too many had not been answered")
            }
            _ => format!("; for {queries} there was no server to ask"),
        });
    }
    if it.has_waited {
        seen.push_str(": it waited for them");
    }
    seen
}

pub(super) fn cache(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let it = symptoms.server_cache.as_ref()?;
    let seen = format!(
        "the cache of {} answered {} of the lookups",
        symptoms.figures.servers.first()?.name(),
        percent(it.hit_share)
    );
    let matters = "a miss costs a resolver many times what a hit does: rates are those of this mix";
    Some(Diagnosis::new("cache of the server", State::Ok, seen, matters).into())
}

/// An observed server that fell behind although it was not busy: it waited for something.
pub(super) fn idle(_: &Symptoms<'_>) -> Option<Finding> {
    let seen = "the server had CPU to spare: it waited for something else, a \
                lock, a disk, a log, a timer or another server, or the network did";
    let matters = "more CPU does not help a server that waits";
    let diagnosis = Diagnosis::new("idle server", State::Warning, seen, matters)
        .cure(Cure::words(
            "look where its threads wait: cat /proc/PID/task/*/wchan, or perf trace -p PID",
        ))
        .cure(Cure::words("switch its query log off"));
    Some(diagnosis.into())
}

/// Both ends compared: what the observed server counted, and what was sent to it.
fn both_ends(state: State, seen: String) -> Finding {
    let matters = "where both ends count the same, losses and rates are beyond doubt";
    Diagnosis::new("queries at both ends", state, seen, matters).into()
}

pub(super) fn counts_agree(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let (it, figures) = (symptoms.server_counts.as_ref()?, &symptoms.figures);
    let again = match queries_sent_again(figures) {
        0 => String::new(),
        number => format!(", {} of them sent again", count(number)),
    };
    let seen = format!(
        "{} counted {} of the {} that were sent to it{again}",
        figures.servers.first()?.name(),
        count(it.received),
        counted(it.sent, "query")
    );
    Some(both_ends(State::Ok, seen))
}

pub(super) fn counts_differ(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let it = symptoms.server_counts.as_ref()?;
    let seen = differing(&symptoms.figures, it)?;
    Some(both_ends(State::Warning, seen))
}

fn differing(figures: &Figures<'_>, it: &ServerCounts) -> Option<String> {
    let server = figures.servers.first()?;
    let (name, sent, received) = (server.name(), it.sent, it.received);
    Some(if server.was_reset {
        format!(
            "{name} began to count again in mid-run: it knows of {} of the {} that were sent",
            count(received),
            counted(sent, "query")
        )
    } else if received > sent {
        format!(
            "{name} counted {}, {} more than were sent to it: others ask it too, or what was sent \
             came twice",
            counted(received, "query"),
            count(received - sent)
        )
    } else {
        format!(
            "{name} counted {} of the {} that were sent, {} fewer: {}",
            count(received),
            counted(sent, "query"),
            count(sent - received),
            missing(figures, sent - received)
        )
    })
}

/// What is known of those that it did not count.
fn missing(figures: &Figures<'_>, number: u64) -> String {
    let of_sockets = figures.programs.first().map_or(0, |it| it.udp_drops);
    let observations = figures.record.observations.iter();
    let backlogs = observations.filter_map(|it| it.series("softnet.dropped")?.growth);
    let of_host = backlogs.fold(0.0, f64::max) as u64;
    let rest = number.saturating_sub(of_sockets + of_host);
    let mut why = Vec::new();
    if of_sockets > 0 {
        why.push(format!("its sockets had no room for {}", count(of_sockets)));
    }
    if of_host > 0 {
        why.push(format!(
            "its host dropped {} before any socket",
            counted(of_host, "packet")
        ));
    }
    if rest > NUMBER_MAX {
        let which = match why.is_empty() {
            true => "they".to_owned(),
            false => format!("the other {}", count(rest)),
        };
        why.push(format!(
            "{which} were lost on the path, or it does not count what it drops, or was restarted \
             between two looks at it"
        ));
    }
    why.join("; ")
}

/// Scrapes that disturbed the server: what observing costs is part of what was observed.
pub(super) fn slow_scrapes(symptoms: &Symptoms<'_>) -> Vec<Finding> {
    let scrapes = symptoms.slow_scrapes.iter().flat_map(|it| &it.0);
    let finding = |it: &crate::symptoms::scrapes::SlowScrape| {
        let seen = format!(
            "while {} was asked for its statistics ({}), mean latency was {}, in the rest of the \
             run {}: the scrapes slow it down",
            it.source,
            counted(it.scrapes as u64, "time"),
            latency(it.meanwhile_ns),
            latency(it.usual_ns)
        );
        let matters = "a server that stops to count itself is slower for being observed";
        let cure = Cure::words(
            "observe it less often (period=30s), or before and after only (mode=around)",
        );
        let diagnosis = Diagnosis::new("cost of a scrape", State::Problem, seen, matters);
        diagnosis.cure(cure).into()
    };
    scrapes.map(finding).collect()
}

/// How to see whether a busy server can do more.
pub(super) fn where_its_time_goes(symptoms: &Symptoms<'_>, mut diagnosis: Diagnosis) -> Diagnosis {
    diagnosis.matters = "whether more threads or less work for each query help shows in the CPU \
                         time of the server: idle threads wait for locks, sockets or logs"
        .to_owned();
    let programs = &symptoms.figures.programs;
    let name = programs.first().map_or("named", ProgramUse::name);
    let top = format!("top -H -n 1 -b -p $(pgrep -o {name}) | head -20");
    let observed = symptoms.figures.servers.first();
    if observed.is_some_and(|it| it.name() != "BIND") {
        return diagnosis.cure(Cure::new(Place::Server, top));
    }
    let status = "rndc status | grep -E 'worker threads|query logging|tcp clients'";
    diagnosis
        .cure(Cure::new(Place::Server, top))
        .cure(Cure::new(Place::Server, status))
        .cure(Cure::words(
            "label the runs (--label querylog=on), change one thing (rndc querylog off), \
             measure again (--label querylog=off), and pass both records to throng doctor",
        ))
}
