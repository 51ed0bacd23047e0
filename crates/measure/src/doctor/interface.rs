//! Network interfaces: queues, drops, offloads.

use super::{Cure, Diagnosis, HostReading, Interface, Place, State};
use crate::notation::{count, counted};

/// Counters that say that the interface had no room.
const NO_ROOM: [&str; 3] = ["rx_missed_errors", "rx_fifo_errors", "rx_over_errors"];

/// No interface was named, and none leads anywhere.
pub(super) fn none() -> Diagnosis {
    let seen = "none was checked: there is no default route";
    let matters = "its queues and offloads decide how many CPUs can take what arrives";
    Diagnosis::new("interface", State::Unknown, seen, matters)
        .cure(Cure::shell("throng doctor --interface NAME"))
}

/// Whether more than one CPU can take what arrives.
pub(super) fn queues(host: &HostReading, interface: &Interface) -> Diagnosis {
    const MATTERS: &str = "each receive queue is served by one CPU; with one queue, one CPU takes \
                           every packet, however many workers there are";
    let name = &interface.name;
    let topic = format!("queues of {name}");
    let mut seen = format!(
        "{} and {} transmit, {}",
        counted(interface.receive_queues, "receive queue"),
        count(interface.transmit_queues),
        words(interface)
    );
    if interface.state.as_deref() == Some("down") {
        seen.push_str(", down");
        let cure = Cure::new(Place::Root, format!("ip link set {name} up"));
        return Diagnosis::new(topic, State::Problem, seen, MATTERS).cure(cure);
    }
    let cpus = host.cores();
    let is_spread = interface.receive_queues_spread > 0;
    if is_spread {
        seen.push_str(&format!(
            ", {} spread over CPUs (RPS)",
            count(interface.receive_queues_spread)
        ));
    }
    // Packets of a virtual interface arrive on the CPU that sent them.
    let is_narrow = interface.receive_queues < cpus && !is_spread && interface.driver.is_some();
    if !is_narrow {
        return Diagnosis::new(topic, State::Ok, seen, MATTERS);
    }
    seen.push_str(&format!(", for {}", counted(cpus, "CPU")));
    let state = match interface.receive_queues {
        0 | 1 => State::Warning,
        _ => State::Ok,
    };
    let mask = match cpus {
        64.. => u64::MAX,
        cpus => (1 << cpus) - 1,
    };
    let spread = format!("echo {mask:x} > /sys/class/net/{name}/queues/rx-0/rps_cpus");
    Diagnosis::new(topic, state, seen, MATTERS)
        .cure(Cure::new(
            Place::Root,
            format!("ethtool -L {name} combined {cpus}"),
        ))
        .cures((state != State::Ok).then(|| Cure::new(Place::Root, spread)))
}

fn words(interface: &Interface) -> String {
    let mut words = vec![
        interface
            .driver
            .clone()
            .map_or_else(|| "virtual".into(), |driver| format!("driver {driver}")),
    ];
    words.extend(
        interface
            .speed_mbit_s
            .map(|speed| format!("{} Mbit/s", count(speed))),
    );
    words.extend(interface.mtu_octets.map(|mtu| format!("MTU {mtu}")));
    words.join(", ")
}

/// Packets that the interface had no room for.
pub(super) fn drops(interface: &Interface) -> Diagnosis {
    const MATTERS: &str = "packets that its ring had no room for are lost before the kernel sees \
                           them, and look like the target's loss";
    let name = &interface.name;
    let topic = format!("drops of {name}");
    let met = NO_ROOM.iter().filter_map(|counter| {
        let number = *interface.counters.get(*counter)?;
        (number > 0).then(|| format!("{counter} {}", count(number)))
    });
    let met: Vec<String> = met.collect();
    if met.is_empty() {
        return Diagnosis::new(topic, State::Ok, "none for lack of room", MATTERS);
    }
    let seen = format!("{} since it came up, of all traffic", met.join(", "));
    Diagnosis::new(topic, State::Warning, seen, MATTERS)
        .cure(Cure::shell(format!("ethtool -g {name}")))
        .cure(Cure::new(Place::Root, format!("ethtool -G {name} rx 4096")))
}

/// What /sys does not tell.
pub(super) fn offloads(interface: &Interface) -> Diagnosis {
    const MATTERS: &str = "segmentation and receive offloads (GSO, GRO) let one call carry many \
                           packets; receive coalescing (LRO) and long interrupt delays add latency";
    let name = &interface.name;
    let topic = format!("offloads of {name}");
    if interface.driver.is_none() {
        let seen = "those of the kernel: a virtual interface";
        return Diagnosis::new(topic, State::Ok, seen, MATTERS);
    }
    let seen = "/sys does not show them";
    Diagnosis::new(topic, State::Unknown, seen, MATTERS)
        .cure(Cure::shell(format!(
            "ethtool -k {name} | grep -E 'segmentation|receive-offload'"
        )))
        .cure(Cure::shell(format!("ethtool -c {name}")))
}
