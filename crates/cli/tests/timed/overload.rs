//! More than there is room for: a rate that no generator can offer, which falls behind and measures
//! what it can, and a closed loop that is larger than the target's receive buffers.

use anyhow::ensure;
use lab::target::products;
use load::arrival::Arrival;
use load::client_arrival::ClientArrival;
use proto::Transport;

use crate::bench::{Load, Ran, ms};
use crate::situations::on_quiet_host;
use crate::target::zone;

/// Queries a second: more than one core sends over single streams, by far.
const RATE_QPS: f64 = 5_000_000.0;
/// So many that a response seldom shares its segment with others.
const CLIENTS: u32 = 1_000;
/// Share of what was sent in the run that must have been answered in it. A worker that keeps
/// sending as long as anything is due reads one response for thousands of queries.
const ANSWERED_SHARE_MIN: f64 = 0.1;

fn run(arrival: Arrival, transport: Transport) -> Ran {
    let load = Load::over(transport).clients(CLIENTS).plan(|plan| {
        plan.arrival = arrival;
        plan.duration = Some(ms(400));
        plan.interval = ms(200);
    });
    let (ran, _) = load.run_against(|_| {});
    let counts = ran.counts();
    assert_eq!(counts.offered, 2_000_000, "{transport}");
    assert!(counts.not_sent.run_ended > 0, "{transport}: {counts:?}");
    ran
}

fn check_reads(arrival: Arrival, transport: Transport) {
    on_quiet_host(
        || run(arrival.clone(), transport),
        |ran| {
            let sent = ran.counts().sent;
            let share = ran.record.responses_in_window as f64 / sent as f64;
            ensure!(share > ANSWERED_SHARE_MIN, "{transport}: {share} of {sent}");
            Ok(())
        },
    );
}

#[test]
fn generator_that_cannot_keep_up_goes_on_reading_responses() {
    for transport in [Transport::Tcp, Transport::Dot] {
        let process = load::arrival::Process::Constant;
        check_reads(
            Arrival::Open {
                rate_qps: RATE_QPS,
                process,
                burst: 1,
            },
            transport,
        );
        let rate_qps = RATE_QPS / f64::from(CLIENTS);
        let each = Arrival::Clients(ClientArrival::Constant { rate_qps });
        check_reads(each, transport);
    }
}

/// A socket has 212,992 octets for what it has received, which is room for some 200 small queries
/// or more. More places than the buffers of the target hold are lost however gently they are
/// filled, and nowhere else than there.
#[test]
fn closed_loop_loses_nothing_that_the_receive_buffers_of_bind_hold() {
    let target = products::BIND.start(&zone()).unwrap();
    let address = target.endpoints().do53();
    let run = |outstanding: u32| {
        let load = Load::over(Transport::Udp).clients(20);
        let load = load.outstanding(outstanding).plan(|plan| {
            plan.duration = Some(ms(2_000));
            plan.timeout = ms(2_000);
        });
        let ran = load.target_process(target.process_id()).run_at(address);
        assert!(ran.counts().responses > 0);
        ran
    };
    for outstanding in [150, 1_000] {
        on_quiet_host(
            || run(outstanding),
            |ran| {
                let (counts, network) = (ran.counts(), &ran.record.network);
                let fits = outstanding < 200;
                ensure!(counts.lost() == 0 || !fits, "{outstanding}: {counts:?}");
                let dropped = network.kernel_counter("Udp.RcvbufErrors");
                ensure!(counts.lost() <= dropped, "{counts:?}, {network:?}");
                ensure!(network.receive_drops == 0, "{network:?}");
                Ok(())
            },
        );
    }
}
