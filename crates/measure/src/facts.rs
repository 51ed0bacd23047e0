//! Facts beside the measurement: the host, the workers and the network interface of the run.
//!
//! Filled in by the code that runs it; nothing here is looked up.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::histogram::Histogram;
use crate::interval::per;
use crate::notation::{decimal, percent};
use crate::scope;
use crate::zero::is_zero;

/// The host that generated the load. Unknown values are none or missing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostFacts {
    /// Model name of the CPU.
    pub cpu_model: Option<String>,
    /// CPUs this process may use.
    pub cores: Option<u64>,
    /// Kernel release.
    pub kernel: Option<String>,
    /// Name and version of the operating system.
    pub os: Option<String>,
    /// CPU frequency governor.
    pub governor: Option<String>,
    /// Memory in bytes.
    pub memory_octets: Option<u64>,
    /// Kernel parameters that matter, by name (`net.core.rmem_max`, ...).
    pub sysctls: BTreeMap<String, String>,
    /// Resource limits of the process, by name (`open_files`, ...).
    pub limits: BTreeMap<String, String>,
    /// Clock source of the kernel.
    pub clock_source: Option<String>,
    /// Hypervisor; none on bare metal or if unknown.
    pub hypervisor: Option<String>,
    /// Which host it was; none in a simulation, or in a record of a version that did not write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<HostIdentity>,
}

/// Identity of a host: two runs with the same identity share the kernel's counters, and runs with
/// an equal part share those of that scope.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostIdentity {
    /// Identity of the kernel since it booted, as in /proc/sys/kernel/random/boot_id.
    pub boot_id: String,
    /// Name of the node, of the UTS namespace that the run was in.
    pub node: String,
    /// Inode of the network namespace that the run was in; none if unknown.
    pub network_namespace: Option<u64>,
    /// Inode of the control group whose quota of CPU time the run had; none without a quota, or if
    /// unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_group: Option<u64>,
}

impl HostFacts {
    /// True if it is the same host. Of hosts whose identity is not known, equal ones are taken for
    /// the same.
    pub fn is(&self, other: &HostFacts) -> bool {
        match (&self.identity, &other.identity) {
            (Some(own), Some(others)) => own == others,
            _ => self == other,
        }
    }

    /// True if nothing but their identity tells them apart.
    pub fn is_like(&self, other: &HostFacts) -> bool {
        let (mut own, mut others) = (self.clone(), other.clone());
        (own.identity, others.identity) = (None, None);
        own == others
    }
}

/// Figures of one worker in the measured window.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkerFacts {
    /// CPU it was pinned to; none if it was not.
    pub cpu: Option<u32>,
    /// CPU time it used, nanoseconds.
    pub cpu_ns: u64,
    /// Time on the clock over which the two CPU times were taken, nanoseconds: the window, and what
    /// the worker was late in closing it.
    pub wall_ns: u64,
    /// Time it was ready to run but waited for its CPU, nanoseconds; none if unknown.
    pub cpu_wait_ns: Option<u64>,
    /// 99th percentile of the time by which its queries left late; none if it sent none.
    pub send_lateness_p99_ns: Option<u64>,
    /// Queries it sent.
    pub queries: u64,
    /// The lowest limit of streams open at once that the target set on one of its connections;
    /// none if the transport has no such limit or no connection was set up.
    pub streams_max: Option<u64>,
    /// Position of its host in `hosts` of the record.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub host: u64,
    /// Position of its agent in `agents` of the record; none if several agents were not led
    /// together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<u64>,
    /// It did not end with the run, and was left behind: what it measured is known until the end
    /// of its last whole interval.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub left_behind: bool,
}

impl WorkerFacts {
    /// Share of the window in which it computed, 0 to 1.
    pub fn busy_share(&self) -> f64 {
        self.share(self.cpu_ns)
    }

    /// Share of the window in which it waited for its CPU, 0 to 1; 0 if unknown.
    pub fn cpu_wait_share(&self) -> f64 {
        self.share(self.cpu_wait_ns.unwrap_or(0))
    }

    /// Records of older versions have the CPU times of a longer span than `wall_ns`.
    fn share(&self, time_ns: u64) -> f64 {
        per(time_ns as f64, self.wall_ns as f64).min(1.0)
    }
}

/// Shares of a host's CPU time over some time, as reported by its kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CpuUse {
    /// How long that was, nanoseconds.
    pub wall_ns: u64,
    /// CPU time of this program and its children, a built-in responder's included, nanoseconds.
    pub own_ns: u64,
    /// The target is on this host.
    pub is_target_here: bool,
    /// CPU time of the processes that serve the target's port; none if they were not found.
    pub target_ns: Option<u64>,
    /// Time that their threads were ready to run but waited for a CPU, at least; none if unknown.
    pub target_wait_ns: Option<u64>,
    /// The number of threads of the processes that serve the target's port that waited for a CPU;
    /// none if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_threads_waiting: Option<u64>,
    /// Datagrams that the UDP sockets on the target's port had no room for; none if they were not
    /// found, or one of them was closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_udp_drops: Option<u64>,
    /// The CPU quota of the target's control group, or of one above it; none if it has no quota, if
    /// it shares the generator's, and if that is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_quota: Option<QuotaUse>,
    /// CPU time of everything else, including stolen time, without kernel threads and interrupts.
    pub others_ns: u64,
    /// The part of it that was stolen by the hypervisor.
    pub stolen_ns: u64,
    /// The processes that used most of the rest, at most three.
    pub busiest: Vec<ProcessUse>,
}

/// How often a CPU quota stopped the processes of a control group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QuotaUse {
    /// Periods of the quota in which one of the processes ran.
    pub periods: u64,
    /// Those in which the quota was used up.
    pub throttled: u64,
    /// For how long they were stopped, nanoseconds.
    pub throttled_ns: u64,
}

/// CPU time of one process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProcessUse {
    /// Its name, as the kernel has it.
    pub name: String,
    /// Its number.
    pub pid: u32,
    /// CPU time that it used, nanoseconds.
    pub cpu_ns: u64,
}

impl CpuUse {
    /// How many CPUs everything else kept busy.
    pub fn others_cpus(&self) -> f64 {
        self.cpus(self.others_ns)
    }

    fn cpus(&self, ns: u64) -> f64 {
        per(ns as f64, self.wall_ns as f64)
    }

    /// What everything else was, in a sentence: `others kept 0.98 CPUs busy: stress (4711) 97.2 %`.
    pub fn others_text(&self) -> String {
        let share = |ns| percent(self.cpus(ns));
        let each = self.busiest.iter();
        let each = each.map(|it| format!("{} ({}) {}", it.name, it.pid, share(it.cpu_ns)));
        let mut each: Vec<String> = each.collect();
        if self.stolen_ns > self.others_ns / 10 {
            each.push(format!("the hypervisor {}", share(self.stolen_ns)));
        }
        let named = match each.is_empty() {
            true => String::new(),
            false => format!(": {}", each.join(", ")),
        };
        let cpus = decimal(self.others_cpus(), 2);
        format!("other processes kept {cpus} CPUs busy{named}")
    }
}

/// Counters of driver and kernel, from connecting to the end of the drain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NetworkFacts {
    /// System calls that sent datagrams.
    pub send_calls: u64,
    /// Datagrams sent.
    pub datagrams_sent: u64,
    /// Datagrams that left in a burst of two or more under UDP GSO.
    pub datagrams_offloaded: u64,
    /// GSO bursts sent.
    pub offload_bursts: u64,
    /// System calls that received datagrams.
    pub receive_calls: u64,
    /// Datagrams received.
    pub datagrams_received: u64,
    /// Datagrams dropped because a receive buffer of ours was full (SO_RXQ_OVFL, SO_MEMINFO).
    pub receive_drops: u64,
    /// System calls on streams.
    pub stream_calls: u64,
    /// Calls that waited for events. With io_uring they also hand over what is sent on streams.
    pub waits: u64,
    /// Waits before which results had not fitted into io_uring's queue; the kernel kept them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub ring_overflows: u64,
    /// How often a stream had to wait because all receive buffers of io_uring were full.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub buffer_shortages: u64,
    /// Requests to send of which io_uring sent a part.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub short_sends: u64,
    /// TCP statistics of our connections; none without any, or in a record of a version that did
    /// not write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp: Option<TcpFacts>,
    /// Additional counters of AF_XDP; none with another driver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub xdp: Option<XdpFacts>,
    /// ICMP echo requests to the target, ten a second; none if the target is on this host, there
    /// are several, the run has no preflight, no reply came, or this process may not send them.
    /// Older records have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub echo: Option<EchoFacts>,
    /// By how much the host's counters in /proc/net/snmp grew, named `Udp.RcvbufErrors`,
    /// `Tcp.RetransSegs` and so on; beside them those of packet backlog (`Softnet.Dropped`),
    /// conntrack (`Conntrack.Dropped`), CPU time in ticks (`Cpu.All`, `Cpu.Idle`, `Cpu.Steal`) and
    /// CPU quota (`Cgroup.Periods`, `Cgroup.Throttled`). They count every process of their scope:
    /// CPU time and packet backlog are of the machine, quota is of the control group, all others
    /// are of the network namespace. Of several hosts, the sum over them, each counter once in its
    /// scope.
    pub kernel: BTreeMap<String, u64>,
    /// `kernel` of each host, in the order of `hosts` of the record; empty of a single one. Of
    /// several runs in one scope, on one host or several, `kernel` has the largest count of each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kernel_of_hosts: Vec<BTreeMap<String, u64>>,
}

/// TCP statistics of the run's connections, read from their sockets when they were closed
/// (TCP_INFO).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TcpFacts {
    /// Established connections that were closed.
    pub closed: u64,
    /// Connections whose statistics were read: the first 10,000 of each worker, and one in 16
    /// beyond. All further figures are of these.
    pub read: u64,
    /// Segments sent, acknowledgements and repeated ones included.
    pub segments_sent: u64,
    /// Segments sent again.
    pub segments_repeated: u64,
    /// Segments that the target reported as duplicates (DSACK, RFC 2883): none of these was lost.
    pub segments_repeated_in_vain: u64,
    /// Segments sent again on connections from which not one byte was received: the target may not
    /// have accepted them. Older records have none.
    #[serde(default)]
    pub segments_repeated_unanswered: u64,
    /// Connections that received a segment before an earlier one: the path lost that or reordered
    /// them. Older records have none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub out_of_order: u64,
    /// Connections that had sent a segment again repeatedly, and still had no acknowledgement of it
    /// when they were closed. Older records have none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unacknowledged: u64,
    /// The sum of the round-trip times as last estimated, in microseconds.
    pub rtt_us_sum: u64,
    /// The longest of them.
    pub rtt_us_max: u64,
}

impl TcpFacts {
    /// Segments sent again that the target has not said to have had already, on connections that
    /// it answered: those that were lost, or whose acknowledgements were late or lost. A full
    /// listen queue drops what comes on connections that wait in it, which no path has lost.
    pub fn segments_lost(&self) -> u64 {
        self.segments_repeated
            .saturating_sub(self.segments_repeated_in_vain)
            .saturating_sub(self.segments_repeated_unanswered)
    }

    /// Of the segments sent, the share that was lost, 0 to 1.
    pub fn lost_share(&self) -> f64 {
        per(self.segments_lost() as f64, self.segments_sent as f64)
    }

    /// Mean round-trip time in nanoseconds; none if no connection was asked.
    pub fn rtt_ns_mean(&self) -> Option<f64> {
        (self.read > 0).then(|| self.rtt_us_sum as f64 * 1e3 / self.read as f64)
    }

    /// Adds everything counted in `other`.
    pub fn add(&mut self, other: &TcpFacts) {
        // Names every field, so that a new one cannot be forgotten here.
        let TcpFacts {
            closed,
            read,
            segments_sent,
            segments_repeated,
            segments_repeated_in_vain,
            segments_repeated_unanswered,
            out_of_order,
            unacknowledged,
            rtt_us_sum,
            rtt_us_max,
        } = other;
        self.closed += closed;
        self.read += read;
        self.segments_sent += segments_sent;
        self.segments_repeated += segments_repeated;
        self.segments_repeated_in_vain += segments_repeated_in_vain;
        self.segments_repeated_unanswered += segments_repeated_unanswered;
        self.out_of_order += out_of_order;
        self.unacknowledged += unacknowledged;
        self.rtt_us_sum += rtt_us_sum;
        self.rtt_us_max = self.rtt_us_max.max(*rtt_us_max);
    }
}

/// ICMP echo requests to the target (RFC 792, RFC 4443), which its kernel answers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EchoFacts {
    /// Requests until the last one that was answered.
    pub sent: u64,
    /// From the send to the reply, nanoseconds.
    pub times: Histogram,
}

/// Counters of frames exchanged with a network interface (AF_XDP).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct XdpFacts {
    /// Datagrams dropped because the receive ring was full.
    pub receive_ring_full: u64,
    /// Datagrams dropped for lack of a free frame, or because they were longer than one.
    pub receive_dropped: u64,
    /// How often the kernel found no frame to fill.
    pub fill_ring_empty: u64,
    /// Frames that the kernel did not take for sending.
    pub transmit_invalid: u64,
    /// How often a client had to wait because all frames to send with were on their way.
    pub transmit_full: u64,
    /// Datagrams dropped because their UDP checksum was wrong.
    pub checksums_wrong: u64,
    /// Datagrams over a virtual interface whose checksum the sender had left to a network card;
    /// they were taken for right.
    pub checksums_unfinished: u64,
    /// Frames to our ports that were for no client.
    pub stray: u64,
    /// Datagrams that arrived in the queue of another worker and were passed on.
    pub forwarded: u64,
    /// Those that were dropped because the other worker did not keep up.
    pub forward_drops: u64,
    /// Datagrams sent by a socket of the kernel, because they were too long for a frame.
    pub sent_by_kernel: u64,
    /// Frames of any program that came to the interface and that it dropped (`rx_dropped` and
    /// `rx_missed_errors` of `ip -s link`); most drivers count here too what is in
    /// `receive_ring_full` and `receive_dropped`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub interface_received_dropped: u64,
    /// Frames of any program that the interface was to send, and that it dropped
    /// (`tx_dropped`); over a veth pair the other end had no room for them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub interface_sent_dropped: u64,
    /// Frames that came to the other end of a veth pair, and that it dropped: there is no free
    /// frame of AF_XDP there, mostly.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub peer_received_dropped: u64,
    /// Frames that the other end of a veth pair was to send, and for which this end had no room.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub peer_sent_dropped: u64,
}

impl XdpFacts {
    /// Frames towards this program that were dropped before AF_XDP saw them.
    pub fn dropped_before_ring(&self) -> u64 {
        let at_ring = self.receive_ring_full + self.receive_dropped;
        self.interface_received_dropped.saturating_sub(at_ring) + self.peer_sent_dropped
    }

    /// Frames of this program's interface that were dropped after they had left it.
    pub fn dropped_by_peer(&self) -> u64 {
        self.interface_sent_dropped + self.peer_received_dropped
    }

    fn add(&mut self, other: &XdpFacts) {
        // Names every field, so that a new one cannot be forgotten here.
        let XdpFacts {
            receive_ring_full,
            receive_dropped,
            fill_ring_empty,
            transmit_invalid,
            transmit_full,
            checksums_wrong,
            checksums_unfinished,
            stray,
            forwarded,
            forward_drops,
            sent_by_kernel,
            interface_received_dropped,
            interface_sent_dropped,
            peer_received_dropped,
            peer_sent_dropped,
        } = other;
        self.receive_ring_full += receive_ring_full;
        self.receive_dropped += receive_dropped;
        self.fill_ring_empty += fill_ring_empty;
        self.transmit_invalid += transmit_invalid;
        self.transmit_full += transmit_full;
        self.checksums_wrong += checksums_wrong;
        self.checksums_unfinished += checksums_unfinished;
        self.stray += stray;
        self.forwarded += forwarded;
        self.forward_drops += forward_drops;
        self.sent_by_kernel += sent_by_kernel;
        self.interface_received_dropped += interface_received_dropped;
        self.interface_sent_dropped += interface_sent_dropped;
        self.peer_received_dropped += peer_received_dropped;
        self.peer_sent_dropped += peer_sent_dropped;
    }
}

/// Counters of the built-in responder as the target of a self-test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResponderFacts {
    /// Times that a connection could not be accepted, for lack of file descriptors mostly; it
    /// waits, and is tried again.
    pub accepts_failed: u64,
    /// Time that its threads were ready to run but waited for a CPU, nanoseconds; none if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_wait_ns: Option<u64>,
}

impl ResponderFacts {
    /// Adds everything counted in `other`.
    pub fn add(&mut self, other: &ResponderFacts) {
        // Names every field, so that a new one cannot be forgotten here.
        let ResponderFacts {
            accepts_failed,
            cpu_wait_ns,
        } = other;
        self.accepts_failed += accepts_failed;
        let both = self.cpu_wait_ns.zip(*cpu_wait_ns);
        self.cpu_wait_ns = both.map(|(own, other)| own + other);
    }
}

impl NetworkFacts {
    /// Checks that what each kernel counted is of one of the hosts, and that `kernel` has all,
    /// each once in its scope.
    ///
    /// # Errors
    /// Names the counter that is not, or both numbers of hosts.
    pub(crate) fn check_kernels(&self, hosts: &[HostFacts]) -> Result<(), String> {
        let each = &self.kernel_of_hosts;
        if each.is_empty() {
            return Ok(());
        }
        if each.len() != hosts.len() {
            let (counted, hosts) = (each.len(), hosts.len());
            return Err(format!("the kernels of {counted} hosts, of {hosts} hosts"));
        }
        let all = scope::count_once(hosts, each);
        let names = all.keys().chain(self.kernel.keys());
        for name in names {
            let (sum, told) = (all.get(name), self.kernel.get(name));
            let (sum, told) = (sum.unwrap_or(&0), told.unwrap_or(&0));
            if sum != told {
                return Err(format!(
                    "network.kernel: {name} is {told}, and {sum} over the kernels of all hosts"
                ));
            }
        }
        Ok(())
    }

    /// Counts again what older programs have added up over all hosts, once for each agent.
    pub(crate) fn count_kernels_once(&mut self, hosts: &[HostFacts]) {
        let mut sum: BTreeMap<String, u64> = BTreeMap::new();
        for (name, count) in self.kernel_of_hosts.iter().flatten() {
            let sum = sum.entry(name.clone()).or_default();
            *sum = sum.saturating_add(*count);
        }
        if self.kernel_of_hosts.len() == hosts.len() && sum == self.kernel {
            self.kernel = scope::count_once(hosts, &self.kernel_of_hosts);
        }
    }

    /// Datagrams that came to this run's sockets and were dropped before the generator read them.
    pub(crate) fn received_but_dropped(&self) -> u64 {
        let before_ring = self.xdp.as_ref().map(XdpFacts::dropped_before_ring);
        self.receive_drops + before_ring.unwrap_or(0)
    }

    /// By how much a kernel counter grew; 0 if it is unknown.
    pub fn kernel_counter(&self, name: &str) -> u64 {
        self.kernel.get(name).copied().unwrap_or(0)
    }

    /// Mean number of datagrams in a GSO burst; none without bursts.
    pub fn offload_burst_mean(&self) -> Option<f64> {
        let bursts = self.offload_bursts;
        (bursts > 0).then(|| self.datagrams_offloaded as f64 / bursts as f64)
    }

    /// Adds everything counted in `other`; of the hosts' kernels as if they were other hosts.
    pub fn add(&mut self, other: &NetworkFacts) {
        // Names every field, so that a new one cannot be forgotten here.
        let NetworkFacts {
            send_calls,
            datagrams_sent,
            datagrams_offloaded,
            offload_bursts,
            receive_calls,
            datagrams_received,
            receive_drops,
            stream_calls,
            waits,
            ring_overflows,
            buffer_shortages,
            short_sends,
            tcp,
            xdp,
            echo,
            kernel,
            kernel_of_hosts: _,
        } = other;
        self.send_calls += send_calls;
        self.datagrams_sent += datagrams_sent;
        self.datagrams_offloaded += datagrams_offloaded;
        self.offload_bursts += offload_bursts;
        self.receive_calls += receive_calls;
        self.datagrams_received += datagrams_received;
        self.receive_drops += receive_drops;
        self.stream_calls += stream_calls;
        self.waits += waits;
        self.ring_overflows += ring_overflows;
        self.buffer_shortages += buffer_shortages;
        self.short_sends += short_sends;
        if let Some(tcp) = tcp {
            self.tcp.get_or_insert_default().add(tcp);
        }
        if let Some(xdp) = xdp {
            self.xdp.get_or_insert_default().add(xdp);
        }
        if let Some(echo) = echo {
            let own = self.echo.get_or_insert_default();
            own.sent += echo.sent;
            own.times.merge(&echo.times);
        }
        for (name, count) in kernel {
            *self.kernel.entry(name.clone()).or_default() += count;
        }
    }
}
