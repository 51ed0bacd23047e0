//! The way to a server as text: a line a hop.

use std::fmt::Write;

use measure::Trace;
use measure::notation::{counted, latency};
use measure::trace::{Hop, IcmpReason, Probe, TraceEnd};

/// The line above the hops, ending in a line break.
pub fn headline(question: &str, server: &str, address: &str, hops_max: u8) -> String {
    let of = match server == address {
        true => String::new(),
        false => format!(" ({address})"),
    };
    format!("{question} over udp to {server}{of}, at most {hops_max} hops\n")
}

/// One hop, ending in a line break: who answered, then the time of each query.
pub fn hop(hop: &Hop) -> String {
    let mut line = format!("{:>3} ", hop.distance);
    let (mut last, mut answer) = (None, None);
    for probe in &hop.probes {
        let (Probe::Icmp { from, after_ns, .. } | Probe::Response { from, after_ns, .. }) = probe
        else {
            line.push_str("  *");
            continue;
        };
        if last != Some(from) {
            let _ = write!(line, "  {from}");
        }
        last = Some(from);
        let _ = write!(line, "  {}", latency(*after_ns as f64));
        match probe {
            Probe::Icmp { reason, .. } if *reason != IcmpReason::TimeExceeded => {
                let _ = write!(line, " ({})", words(*reason));
            }
            Probe::Response { rcode, octets, .. } => answer = Some((rcode, octets)),
            _ => {}
        }
    }
    if let Some((rcode, octets)) = answer {
        let _ = write!(line, "  DNS response: {rcode}, {octets} bytes");
    }
    line.push('\n');
    line
}

/// The line below the hops, ending in a line break.
pub fn conclusion(trace: &Trace) -> String {
    let hops = counted(trace.hops.len() as u64, "hop");
    let mut text = match trace.ended {
        TraceEnd::Response => format!("the server answers at a distance of {hops}\n"),
        TraceEnd::Unreachable => format!("unreachable beyond {hops}\n"),
        TraceEnd::HopsMax => format!("no response within {hops}\n"),
        TraceEnd::Interrupted => format!("interrupted after {hops}\n"),
    };
    if trace.unexpected > 0 {
        let messages = counted(trace.unexpected, "message");
        let _ = writeln!(text, "note: {messages} came late or match no query");
    }
    text
}

fn words(reason: IcmpReason) -> String {
    match reason {
        IcmpReason::TimeExceeded => "time exceeded".into(),
        IcmpReason::NetworkUnreachable => "network unreachable".into(),
        IcmpReason::HostUnreachable => "host unreachable".into(),
        IcmpReason::PortUnreachable => "port unreachable".into(),
        IcmpReason::Prohibited => "prohibited".into(),
        IcmpReason::Other { icmp_type, code } => format!("ICMP type {icmp_type} code {code}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hop_names_its_router_once_and_shows_silence_as_a_star() {
        let icmp = |from: &str| Probe::Icmp {
            from: from.into(),
            reason: IcmpReason::TimeExceeded,
            after_ns: 1_500_000,
        };
        let probes = vec![icmp("192.0.2.1"), Probe::Silence, icmp("192.0.2.1")];
        let line = hop(&Hop {
            distance: 2,
            probes,
        });
        assert_eq!(line, "  2   192.0.2.1  1.500 ms  *  1.500 ms\n");
    }

    #[test]
    fn a_response_says_what_it_is_at_the_end_of_its_line() {
        let response = |ms: u64| Probe::Response {
            from: "2001:db8::1".into(),
            octets: 43,
            rcode: "NXDOMAIN".into(),
            after_ns: ms * 1_000_000,
        };
        let probes = vec![response(1), Probe::Silence, response(2)];
        let line = hop(&Hop {
            distance: 3,
            probes,
        });
        let times = "2001:db8::1  1.000 ms  *  2.000 ms";
        assert_eq!(
            line,
            format!("  3   {times}  DNS response: NXDOMAIN, 43 bytes\n")
        );
    }

    #[test]
    fn who_ends_the_way_says_why() {
        let probes = vec![Probe::Icmp {
            from: "192.0.2.9".into(),
            reason: IcmpReason::PortUnreachable,
            after_ns: 2_000,
        }];
        let line = hop(&Hop {
            distance: 12,
            probes,
        });
        assert_eq!(line, " 12   192.0.2.9  2.000 us (port unreachable)\n");
    }
}
