//! How much a host disturbed a run: the one definition of a quiet host, for all tests.
//!
//! Read from the run's record: CPU time that the hypervisor took (steal), and run-queue wait, the
//! time in which a thread was ready to run but another one had the CPU. Idle time is not looked at:
//! one busy CPU of two leaves half of the time idle, and still disturbs.

use std::fs;
use std::time::Duration;

use measure::RunRecord;

/// The quietness that a test needs.
///
/// On an idle host of two CPUs, generators of 30 to 20,000 queries a second waited up to 0.5 % of
/// the time and 0.11 of their demand; beside two CPU hogs 0.8 % and 0.28 at least.
#[derive(Clone, Copy, Debug)]
pub struct Quiet {
    /// The largest share of a run that anyone may wait for a CPU.
    wait_share_max: f64,
    /// The largest share of the time in which the generator needed a CPU that it may wait for it.
    demand_share_max: f64,
}

impl Quiet {
    /// For percentiles of latency: one wait of 10 ms in a run of 5 s moves the 99.9th.
    pub const LATENCY: Quiet = Quiet {
        wait_share_max: 0.002,
        demand_share_max: 0.05,
    };
    /// For verdicts and rates.
    pub const VERDICT: Quiet = Quiet {
        wait_share_max: 0.005,
        demand_share_max: 0.15,
    };
}

/// Shares of a run, 0 to 1, in which its host kept somebody from running.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Disturbance {
    /// CPU time of the host that the hypervisor took.
    pub stolen: f64,
    /// Run-queue wait of the generator's worker that waited longest.
    pub generator_waited: f64,
    /// The same as a share of the time in which the worker ran or waited. One that seldom runs
    /// waits for a small share of the run, and each of its queries may still be late.
    pub generator_hindered: f64,
    /// Run-queue wait of the target, sum of its threads; 0 if the record does not have it.
    pub target_waited: f64,
}

impl Disturbance {
    /// Reads the record of a run. A target's wait is known if it is this tool's responder in a
    /// self-test, a process that the run observed, or one of this host that others kept waiting;
    /// see [`Disturbance::and_target`].
    pub fn of(record: &RunRecord) -> Disturbance {
        let ticks = |name| record.network.kernel_counter(name) as f64;
        let all = ticks("Cpu.All").max(1.0);
        let workers = record.workers.iter();
        let waits = workers.clone().map(|it| it.cpu_wait_share());
        let hindered = workers.map(|it| {
            let waited = it.cpu_wait_share();
            waited / (it.busy_share() + waited).max(f64::EPSILON)
        });
        let responder = record.responder.and_then(|it| it.cpu_wait_ns);
        let responder = responder.map(|ns| ns as f64 / run_ns(record));
        let programs = record.programs();
        let programs = programs.iter().filter_map(|it| it.waited_cpus);
        // As the verdict has it, also of a target that the run did not observe.
        let of_others = record.target_waited_for_others();
        Disturbance {
            stolen: ticks("Cpu.Steal") / all,
            generator_waited: waits.fold(0.0, f64::max),
            generator_hindered: hindered.fold(0.0, f64::max),
            target_waited: programs
                .chain(responder)
                .chain(of_others)
                .fold(0.0, f64::max),
        }
    }

    /// Adds what is known of the target from elsewhere: its run-queue wait during the run.
    #[must_use]
    pub fn and_target(mut self, record: &RunRecord, waited: Duration) -> Disturbance {
        let share = waited.as_nanos() as f64 / run_ns(record);
        self.target_waited = self.target_waited.max(share);
        self
    }

    /// The larger of each share: several runs, of which a test compares the results.
    #[must_use]
    pub fn or(self, other: Disturbance) -> Disturbance {
        Disturbance {
            stolen: self.stolen.max(other.stolen),
            generator_waited: self.generator_waited.max(other.generator_waited),
            generator_hindered: self.generator_hindered.max(other.generator_hindered),
            target_waited: self.target_waited.max(other.target_waited),
        }
    }

    /// Why the host was not as quiet as a test needs it; none if it was.
    pub fn beyond(&self, quiet: Quiet) -> Option<String> {
        let Quiet {
            wait_share_max,
            demand_share_max,
        } = quiet;
        let shares = [
            ("the hypervisor took", self.stolen, wait_share_max),
            (
                "the generator waited for a CPU",
                self.generator_waited,
                wait_share_max,
            ),
            (
                "of the time that it needed a CPU, the generator waited",
                self.generator_hindered,
                demand_share_max,
            ),
            (
                "the target waited for a CPU",
                self.target_waited,
                wait_share_max,
            ),
        ];
        let worst = shares
            .into_iter()
            .max_by(|a, b| (a.1 / a.2).total_cmp(&(b.1 / b.2)));
        let (what, share, most) = worst.unwrap();
        (share > most).then(|| {
            let (share, most) = (share * 100.0, most * 100.0);
            format!("{what} {share:.1} %, more than {most:.1} %")
        })
    }
}

/// Run-queue wait of a process so far, the sum of its threads; zero if it has ended.
pub fn run_queue_wait(process: u32) -> Duration {
    let threads = fs::read_dir(format!("/proc/{process}/task"));
    let waits = threads
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|thread| {
            // Time on a CPU, time waited for one, time slices (proc_pid_schedstat).
            let text = fs::read_to_string(thread.path().join("schedstat")).ok()?;
            text.split_ascii_whitespace().nth(1)?.parse::<u64>().ok()
        });
    Duration::from_nanos(waits.sum())
}

/// From connecting the clients to the last response, nanoseconds; at least 1.
fn run_ns(record: &RunRecord) -> f64 {
    let phases = &record.phases;
    let all = phases.connect_ns + phases.warmup_ns + phases.run_ns + phases.drain_ns;
    all.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_queue_wait_of_a_process_is_that_of_its_threads() {
        let own = fs::read_to_string("/proc/thread-self/schedstat").unwrap();
        let own_ns: u64 = own.split(' ').nth(1).unwrap().parse().unwrap();
        assert!(run_queue_wait(std::process::id()) >= Duration::from_nanos(own_ns));
        assert_eq!(run_queue_wait(u32::MAX), Duration::ZERO);
    }

    #[test]
    fn each_share_is_held_against_the_quietness_asked_for() {
        let quiet = Disturbance {
            stolen: 0.001,
            generator_waited: 0.001,
            generator_hindered: 0.04,
            target_waited: 0.002,
        };
        assert_eq!(quiet.beyond(Quiet::LATENCY), None);
        let target = Disturbance {
            target_waited: 0.004,
            ..quiet
        };
        assert_eq!(target.beyond(Quiet::VERDICT), None);
        let why = target.beyond(Quiet::LATENCY).unwrap();
        assert_eq!(why, "the target waited for a CPU 0.4 %, more than 0.2 %");
        let stolen = Disturbance {
            stolen: 0.03,
            ..quiet
        };
        assert!(quiet.or(stolen).beyond(Quiet::VERDICT).is_some());
        // It ran for 0.7 % of the time and waited for 0.3 %.
        let seldom_runs = Disturbance {
            generator_waited: 0.003,
            generator_hindered: 0.3,
            ..quiet
        };
        assert!(seldom_runs.beyond(Quiet::VERDICT).is_some());
    }
}
