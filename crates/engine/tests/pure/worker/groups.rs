//! Several groups of clients on one thread.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use driver::sim::{Link, World, WorldConfig};
use engine::{Control, RunInputs, ThreadWorkers};
use load::arrival::Arrival;
use proto::{Instant, Transport};

use crate::echo::{Echo, plan};

#[test]
fn a_group_that_has_finished_says_no_more_while_another_goes_on() {
    let world = World::new(WorldConfig {
        link: Link::constant(Duration::from_millis(1)),
        ..WorldConfig::default()
    });
    let arrival = Arrival::Closed {
        outstanding: 10,
        rate_qps_max: None,
    };
    let inputs = [Some(50), None].map(|queries_max| {
        let mut plan = plan(Transport::Udp, 10, arrival.clone());
        plan.interval = Duration::from_millis(100);
        plan.queries_max = queries_max;
        plan.duration = queries_max.is_none().then_some(Duration::from_secs(2));
        RunInputs {
            plan: Arc::new(plan),
            tls: None,
            observer: None,
        }
    });
    let mut echo = Echo::open(&world, &inputs[0].plan, None);
    let mut driver = world.endpoint(IpAddr::from([192, 0, 2, 1]));
    let mut workers = ThreadWorkers::new(&inputs, 0, &Arc::new(Control::new(2)));
    workers.open(&mut driver).unwrap();
    let (mut finished, mut intervals) = (Vec::new(), [0, 0]);
    for step in 0..100_000 {
        world.advance_to(Instant::from_nanos(50_000 * step));
        echo.step();
        workers.step(&mut driver);
        while let Some((group, _)) = workers.poll_interval() {
            assert!(!finished.contains(&group), "group {group} has finished");
            intervals[group] += 1;
        }
        finished.extend(std::iter::from_fn(|| workers.poll_finished()));
        if workers.is_finished() {
            break;
        }
    }
    assert_eq!(finished, [0, 1]);
    assert!(intervals[0] >= 1 && intervals[1] >= 20, "{intervals:?}");
}
