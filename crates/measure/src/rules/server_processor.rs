//! The CPU of an observed server: used up, used up by one thread, kept from it by a quota or by
//! others, or free.

use crate::doctor::{Cure, Diagnosis, Place, State};
use crate::limit::Limit;
use crate::notation::{decimal, percent};
use crate::observation::ProgramUse;

use super::{Figures, Finding, Stage, load};

/// From this share of what it may use on, its CPU is the limit.
const FULL: f64 = 0.9;
/// From this share on nothing of it is left: of what a quota gives that stops it in so many of its
/// periods, and of CPUs alone.
const USED_UP: f64 = 0.95;
const ALWAYS_THROTTLED: f64 = 0.9;
const USED_UP_ALONE: f64 = 0.98;
/// From this share of one CPU on, a thread is busy all the time.
const THREAD_FULL: f64 = 0.9;
/// Below this share of its CPUs a server has much to spare.
const MUCH_TO_SPARE: f64 = 0.5;
/// From this share of the periods on, a quota matters.
const THROTTLED: f64 = 0.05;
/// From this share of what it used on, time that threads waited for a CPU matters.
const WAITED: f64 = 0.25;
/// From this many CPUs on it matters at all.
const WAITED_CPUS_MIN: f64 = 0.1;

/// What a server's CPU was to its rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    Throttled,
    Full,
    OneThread,
    TakenByOthers,
    Free,
    /// Neither busy nor idle.
    Some,
}

impl Use {
    fn of(program: &ProgramUse<'_>) -> Use {
        let share = program.cpu_share();
        let thread = program.busiest_thread_cpus.unwrap_or(0.0);
        let waited = program.waited_cpus.unwrap_or(0.0);
        if program.throttled_share >= Some(THROTTLED) {
            Use::Throttled
        } else if share >= Some(FULL) {
            Use::Full
        } else if thread >= THREAD_FULL {
            Use::OneThread
        } else if waited >= WAITED_CPUS_MIN.max(WAITED * program.cpus_used) {
            Use::TakenByOthers
        } else if share.is_some_and(|share| share < MUCH_TO_SPARE) {
            Use::Free
        } else {
            Use::Some
        }
    }

    /// It kept the server from answering more.
    fn limits(self) -> bool {
        matches!(self, Use::Throttled | Use::Full | Use::OneThread)
    }
}

/// True if the server that was asked had much of its CPU to spare.
pub(super) fn is_free(figures: &Figures<'_>) -> bool {
    let programs = figures.record.programs();
    !programs.is_empty() && programs.iter().all(|it| Use::of(it) == Use::Free)
}

pub(super) fn found(figures: &Figures<'_>) -> Vec<Finding> {
    let programs = figures.record.programs();
    let each = programs.iter().enumerate();
    each.map(|(position, program)| of_program(figures, program, position > 0))
        .collect()
}

fn of_program(figures: &Figures<'_>, program: &ProgramUse<'_>, is_behind: bool) -> Finding {
    let how = Use::of(program);
    let seen = format!(
        "{}{}",
        seen(program, how),
        if is_behind { ", behind the target" } else { "" }
    );
    let (state, matters) = meaning(how);
    let diagnosis = Diagnosis::new("CPU of the server", state, seen, matters);
    let finding = Finding::met(diagnosis.cures(cures(program, how)));
    let finding = match how {
        Use::Some | Use::Free => finding,
        _ => finding.beside(),
    };
    // Whatever else was slow meanwhile, it could not have answered more.
    let stage = match is_used_up(program) && !is_behind {
        true => Stage::ServersCpu,
        false => Stage::ServersOwn,
    };
    finding
        .limits(stage, Limit::Server)
        .only_if(how.limits() && !load::is_held(figures))
}

/// Nothing of what it may use was left, all the time.
fn is_used_up(program: &ProgramUse<'_>) -> bool {
    let is_always_stopped = program.throttled_share >= Some(ALWAYS_THROTTLED);
    let least = if is_always_stopped {
        USED_UP
    } else {
        USED_UP_ALONE
    };
    program.cpu_share() >= Some(least)
}

fn seen(program: &ProgramUse<'_>, how: Use) -> String {
    let used = decimal(program.cpus_used, 2);
    let of_all = match program.cpus_allowed {
        Some(all) => format!("{used} of its {} CPUs", decimal(all, 2)),
        None => format!("{used} CPUs"),
    };
    let share = program.cpu_share().map(percent);
    let of_all = match share {
        Some(share) => format!("{of_all} ({share})"),
        None => of_all,
    };
    let thread = program.busiest_thread_cpus.unwrap_or(0.0);
    let name = program.name();
    match how {
        Use::Throttled => format!(
            "{name} used {of_all}; its CPU quota stopped it in {} of the periods",
            percent(program.throttled_share.unwrap_or(0.0))
        ),
        Use::Full => format!("{name} used {of_all}: its CPU is the limit"),
        Use::OneThread => format!(
            "{name} used {of_all}, but one of its threads was busy {} of the time: that thread is \
             the limit, other CPUs do not help",
            percent(thread.min(1.0))
        ),
        Use::TakenByOthers => format!(
            "{name} used {of_all}; its threads had to wait for a CPU, {} s in each second: other \
             processes used them",
            decimal(program.waited_cpus.unwrap_or(0.0), 2)
        ),
        Use::Free | Use::Some => format!("{name} used {of_all}"),
    }
}

fn meaning(how: Use) -> (State, &'static str) {
    match how {
        Use::Throttled => (
            State::Problem,
            "a server that is stopped for the rest of each period answers late, or drops what its \
             receive buffers cannot hold",
        ),
        Use::Full => (
            State::Ok,
            "the rate is what this server can do with these CPUs; more CPUs or less work a query \
             raise it",
        ),
        Use::OneThread => (
            State::Problem,
            "threads that wait for one of them, for a lock or for one socket leave CPUs unused",
        ),
        Use::TakenByOthers => (
            State::Warning,
            "the rate is what the server can do beside these processes, not what it can do",
        ),
        Use::Free | Use::Some => (State::Ok, "its CPU did not keep it from answering more"),
    }
}

fn cures(program: &ProgramUse<'_>, how: Use) -> Vec<Cure> {
    let cpus = program.cpus_allowed.unwrap_or(1.0).ceil();
    match how {
        Use::Throttled => vec![Cure::words(
            "raise the quota: cpu.max or cpu.cfs_quota_us of its control group, limits.cpu in \
             Kubernetes, --cpus of a container",
        )],
        Use::OneThread => more_threads(program, cpus),
        Use::TakenByOthers => vec![
            Cure::busiest_processes(),
            Cure::words("let generator and server have CPUs of their own: --cpus, taskset"),
        ],
        Use::Full => vec![
            Cure::words("give the server more CPUs, or faster ones"),
            Cure::named("minimal-responses yes;"),
        ],
        Use::Free | Use::Some => Vec::new(),
    }
}

/// How servers use all of their CPUs.
fn more_threads(program: &ProgramUse<'_>, cpus: f64) -> Vec<Cure> {
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

#[cfg(test)]
mod tests {
    use crate::observation::SeriesKind;
    use crate::rules::observed_situations::*;
    use crate::rules::situations::*;

    /// So many places that nothing queued.
    fn with_few_places() -> RunRecord {
        run(&[(10 * MS, 1_000)])
    }

    #[test]
    fn a_server_that_has_used_its_cpus_is_told_with_its_figures() {
        let record = observing(saturated(), &[program(1.96, 0.99, &[])]);
        assert_eq!(record.verdict.limit, Limit::Server);
        tells(
            &record,
            &["named used 1.96 of its 2.00 CPUs (98.0 %): its CPU is the limit"],
        );
        // What the load shows by itself stands beside, with its advice.
        assert!(record.verdict.evidence[0].contains("its CPU is the limit"));
        tells(
            &record,
            &["queries queued at the target", "run with --rate 7000"],
        );
    }

    #[test]
    fn a_server_without_cpu_left_is_the_limit_where_the_load_alone_does_not_tell() {
        let alone = observing(with_few_places(), &[]);
        assert_eq!(alone.verdict.limit, Limit::Outstanding);
        let record = observing(with_few_places(), &[program(1.96, 0.99, &[])]);
        assert_eq!(record.verdict.limit, Limit::Server, "{:#?}", record.verdict);
        let record = observing(in_time(10_000.0), &[program(1.96, 0.99, &[])]);
        assert_eq!(record.verdict.limit, Limit::Rate, "{:#?}", record.verdict);
    }

    #[test]
    fn one_full_thread_is_told_from_a_full_server() {
        let record = observing(saturated(), &[program(1.1, 0.97, &[])]);
        tells(
            &record,
            &[
                "one of its threads was busy 97.0 % of the time",
                "named -n 2",
            ],
        );
    }

    #[test]
    fn a_quota_that_stops_the_server_is_its_limit() {
        let periods = [
            ("group.periods", SeriesKind::Counter, 10.0),
            ("group.throttled_periods", SeriesKind::Counter, 9.0),
        ];
        let mut program = program(0.5, 0.3, &periods);
        program.facts.quota_cpus = Some(0.5);
        let record = observing(with_few_places(), &[program]);
        assert_eq!(record.verdict.limit, Limit::Server);
        tells(
            &record,
            &[
                "0.50 of its 0.50 CPUs",
                "its CPU quota stopped it in 90.0 % of the periods",
            ],
        );
    }

    #[test]
    fn a_generator_that_had_to_wait_is_no_limit_of_a_server_without_cpu_left() {
        let limit = |cpus_used: f64, throttled: f64| {
            let periods = [
                ("group.periods", SeriesKind::Counter, 10.0),
                ("group.throttled_periods", SeriesKind::Counter, throttled),
            ];
            let mut program = program(cpus_used, 0.3, &periods);
            program.facts.quota_cpus = Some(0.5);
            let mut record = with_few_places();
            record.workers[0].cpu_wait_ns = Some(14 * record.measured_ns / 100);
            observing(record, &[program]).verdict.limit
        };
        assert_eq!(limit(0.5, 9.8), Limit::Server);
        assert_eq!(limit(0.5, 0.0), Limit::Server);
        // It had time left that it was not asked to use.
        assert_eq!(limit(0.48, 0.0), Limit::Generator);
        assert_eq!(limit(0.4, 9.8), Limit::Generator);
    }

    #[test]
    fn time_in_which_others_had_its_cpus_is_told() {
        let waited = [("cpu.wait", SeriesKind::Counter, 0.8)];
        let record = observing(saturated(), &[program(1.2, 0.6, &waited)]);
        tells(&record, &["had to wait for a CPU, 0.80 s in each second"]);
    }
}
