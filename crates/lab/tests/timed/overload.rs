//! More than there is room for: a rate that no generator can offer, which falls behind and measures
//! what it can, and a closed loop that is larger than the target's receive buffers.

use lab::target::products;
use load::arrival::Arrival;
use load::client_arrival::ClientArrival;
use proto::Transport;

use crate::bench::{Load, alone, ms};
use crate::servers::zone;

/// Queries a second: more than one core sends over single streams, by far.
const RATE_QPS: f64 = 5_000_000.0;
/// So many that a response seldom shares its segment with others.
const CLIENTS: u32 = 1_000;
/// Share of what was sent in the run that must have been answered in it. A worker that keeps
/// sending as long as anything is due reads one response for thousands of queries.
const ANSWERED_SHARE_MIN: f64 = 0.1;

fn assert_reads(arrival: Arrival, transport: Transport) {
    let load = Load::over(transport).clients(CLIENTS).plan(|plan| {
        plan.arrival = arrival;
        plan.duration = Some(ms(400));
        plan.interval = ms(200);
    });
    let (ran, _) = load.run_against(|_| {});
    let record = &ran.record;
    let counts = &record.total.counts;
    assert_eq!(counts.offered, 2_000_000, "{transport}");
    assert!(counts.not_sent.run_ended > 0, "{transport}: {counts:?}");
    let share = record.responses_in_window as f64 / counts.sent as f64;
    assert!(
        share > ANSWERED_SHARE_MIN,
        "{transport}: {share}, {counts:?}"
    );
}

#[test]
fn generator_that_cannot_keep_up_goes_on_reading_responses() {
    let _alone = alone();
    for transport in [Transport::Tcp, Transport::Dot] {
        let process = load::arrival::Process::Constant;
        assert_reads(
            Arrival::Open {
                rate_qps: RATE_QPS,
                process,
                burst: 1,
            },
            transport,
        );
        let rate_qps = RATE_QPS / f64::from(CLIENTS);
        let each = Arrival::Clients(ClientArrival::Constant { rate_qps });
        assert_reads(each, transport);
    }
}

/// A socket has 212,992 octets for what it has received, which is room for some 200 small queries
/// or more. More places than the buffers of the target hold are lost however gently they are
/// filled, and nowhere else than there.
#[test]
fn closed_loop_loses_nothing_that_the_receive_buffers_of_bind_hold() {
    let _alone = alone();
    let target = products::BIND.start(&zone()).unwrap();
    let address = target.endpoints().do53();
    for outstanding in [150, 1_000] {
        let load = Load::over(Transport::Udp).clients(20);
        let load = load.outstanding(outstanding).plan(|plan| {
            plan.duration = Some(ms(4_000));
        });
        let ran = load.run_at(address);
        let (counts, network) = (ran.counts(), &ran.record.network);
        let fits = outstanding < 200;
        assert!(counts.responses > 0);
        assert!(counts.lost() == 0 || !fits, "{outstanding}: {counts:?}");
        let dropped = network.kernel_counter("Udp.RcvbufErrors");
        assert!(counts.lost() <= dropped, "{counts:?}, {network:?}");
        assert_eq!(network.receive_drops, 0, "{network:?}");
    }
}
