//! Everything about a host that `throng doctor` judges.

use std::sync::mpsc;
use std::time::Duration;

use driver::SocketOptions;
use driver::clock::Clock;
use driver::kernel::{DriverChoice, KernelDriver, Load};
use measure::doctor::HostReading;

use super::interfaces::UnknownInterface;
use super::{Host, counters, parse_memory_octets};

impl Host {
    /// Reads the host, with the interface of that name or those of the default routes. Counters are
    /// watched for as long as `watch`, which is how long this takes; a folder's do not move, and
    /// are not watched.
    ///
    /// # Errors
    /// There is no interface of that name.
    pub fn reading(
        &self,
        interface: Option<&str>,
        watch: Duration,
    ) -> Result<HostReading, UnknownInterface> {
        let interfaces = self.interfaces(interface)?;
        let before = self.counters();
        let growth = match self.is_this() && !watch.is_zero() {
            true => {
                pause(watch);
                counters::difference(&before, &self.counters())
            }
            false => Default::default(),
        };
        let cpus_allowed = self.cpus_allowed();
        let memory = self.text("proc/meminfo").unwrap_or_default();
        let clocks = self.text("sys/devices/system/clocksource/clocksource0/available_clocksource");
        let clocks = clocks.unwrap_or_default();
        Ok(HostReading {
            facts: self.facts(),
            counters: before,
            growth,
            governors: self.governors(&cpus_allowed),
            second_threads: self.second_threads(&cpus_allowed),
            cores_online: self.cores_online(),
            quota_cpus: self.quota_cpus(),
            memory_available_octets: parse_memory_octets(&memory, "MemAvailable:"),
            clock_sources: clocks.split_ascii_whitespace().map(str::to_owned).collect(),
            conntrack_entries: self.number("proc/sys/net/netfilter/nf_conntrack_count"),
            io_uring: self.is_this().then(try_io_uring),
            interfaces,
            cpus_allowed,
        })
    }
}

/// Waits that long.
pub(crate) fn pause(length: Duration) {
    let (_nobody, nothing) = mpsc::channel::<()>();
    // Nothing ever comes: it is over when the time is.
    let _ = nothing.recv_timeout(length);
}

/// Opens an io_uring as a run would, and closes it again.
fn try_io_uring() -> Result<(), String> {
    let opened = KernelDriver::open(
        DriverChoice::Uring,
        Load::default(),
        Clock::start(),
        SocketOptions::default(),
    );
    opened.map(drop).map_err(|error| error.to_string())
}
