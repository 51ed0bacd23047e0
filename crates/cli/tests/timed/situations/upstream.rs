//! CoreDNS in front of a BIND that stands still for a while, or is 20 ms away: the verdict names
//! the server behind the target.

use std::collections::HashMap;
use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use lab::target::{BindOptions, BindTarget, RunningServer, products};
use measure::doctor::of_run;
use proto::Transport;

use super::servers::has_evidence;
use super::{on_quiet_host, signal};
use crate::bench::{Load, Ran, ms};
use crate::target::zone;

fn bind() -> BindTarget {
    BindTarget::start(&BindOptions::new(zone())).unwrap()
}

/// Both are observed, the one that is asked first.
fn sources(target: &RunningServer, behind: &BindTarget) -> Vec<String> {
    let exposition = target.other_ports()[0];
    let channel = behind.other_ports()[0];
    [
        format!("process={}", target.process_id()),
        format!("coredns=http://127.0.0.1:{exposition}/metrics"),
        format!("process={}", behind.process_id()),
        format!("bind=http://127.0.0.1:{channel}/"),
    ]
    .map(|source| format!("{source},period=250ms"))
    .into()
}

fn observing(load: Load, sources: &[String]) -> Load {
    let sources: Vec<&str> = sources.iter().map(String::as_str).collect();
    load.observe(&sources)
}

/// Cures are those of CoreDNS, and of the server behind it.
fn has_cures(ran: &Ran) -> Result<()> {
    let all = of_run(&ran.record);
    let found = all
        .iter()
        .find(|it| it.topic == "servers behind the target");
    let found = found.with_context(|| format!("{all:#?}"))?;
    let cures: Vec<String> = found.cures.iter().map(|it| it.sentence()).collect();
    let cache = "CoreDNS, Corefile, server block: cache 300";
    ensure!(cures.iter().any(|it| it == cache), "{cures:?}");
    Ok(())
}

#[test]
fn a_server_behind_the_target_that_stands_still_is_named() {
    let behind = bind();
    let target = products::coredns_in_front_of(behind.endpoints().do53(), &zone()).unwrap();
    let load = Load::over(Transport::Udp).rate(300.0).plan(|plan| {
        plan.duration = Some(ms(4_000));
        plan.interval = ms(100);
        plan.timeout = ms(4_000);
    });
    let load = observing(load, &sources(&target, &behind));
    let process = behind.process_id();
    let run = || {
        let address = target.endpoints().do53();
        load.clone()
            .run_watched(address, |progress, _| match progress.index {
                5 => signal(process, "STOP"),
                25 => signal(process, "CONT"),
                _ => {}
            })
    };
    on_quiet_host(run, |ran| {
        let stopped = "named, behind the target, had been stopped by a signal at";
        has_evidence(ran, &[stopped])?;
        has_evidence(ran, &["CoreDNS asked other servers"])?;
        has_evidence(ran, &["it waited for them"])?;
        has_cures(ran)
    });
}

/// So far away the server behind is, there and back.
const AWAY: Duration = Duration::from_millis(20);

/// A query on its way: who asked, by which message ID, and when.
type OnTheWay = HashMap<u16, (SocketAddr, [u8; 2], Instant)>;

/// Passes queries on to a server, and its responses back when they are due. It ends with this
/// process.
fn distance_to(server: SocketAddr) -> SocketAddr {
    let front = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = front.local_addr().unwrap();
    let back = UdpSocket::bind("127.0.0.1:0").unwrap();
    back.connect(server).unwrap();
    let on_the_way = Arc::new(Mutex::new(OnTheWay::new()));
    let there = (
        front.try_clone().unwrap(),
        back.try_clone().unwrap(),
        Arc::clone(&on_the_way),
    );
    thread::spawn(move || {
        let (front, back, on_the_way) = there;
        let mut message = [0; 4_096];
        let mut id = 0_u16;
        while let Ok((octets, from)) = front.recv_from(&mut message) {
            id = id.wrapping_add(1);
            let asked = (from, [message[0], message[1]], Instant::now());
            on_the_way.lock().unwrap().insert(id, asked);
            message[..2].copy_from_slice(&id.to_be_bytes());
            let _ = back.send(&message[..octets]);
        }
    });
    thread::spawn(move || {
        let mut message = [0; 4_096];
        while let Ok(octets) = back.recv(&mut message) {
            let id = u16::from_be_bytes([message[0], message[1]]);
            let Some((to, id, at)) = on_the_way.lock().unwrap().remove(&id) else {
                continue;
            };
            while let Some(left) = (at + AWAY).checked_duration_since(Instant::now()) {
                thread::park_timeout(left);
            }
            message[..2].copy_from_slice(&id);
            let _ = front.send_to(&message[..octets], to);
        }
    });
    address
}

#[test]
fn a_server_behind_the_target_that_is_far_away_is_named_with_its_time() {
    let behind = bind();
    let upstream = distance_to(behind.endpoints().do53());
    let target = products::coredns_in_front_of(upstream, &zone()).unwrap();
    let load = Load::over(Transport::Udp).outstanding(10).plan(|plan| {
        plan.duration = Some(ms(2_000));
        plan.timeout = ms(5_000);
    });
    let load = observing(load, &sources(&target, &behind));
    let run = || {
        let ran = load.clone().run_at(target.endpoints().do53());
        let servers = ran.record.servers();
        assert_eq!(servers.len(), 2, "{servers:#?}");
        let mean_s = servers[0].upstream_s_mean.unwrap();
        assert!(mean_s >= AWAY.as_secs_f64(), "{mean_s}");
        assert_eq!(servers[1].upstream_queries.unwrap_or(0.0), 0.0);
        ran
    };
    on_quiet_host(run, |ran| {
        has_evidence(ran, &["on average: it waited for them"])?;
        // The server itself counted all that was passed on, but for what it has just answered.
        let servers = ran.record.servers();
        let asked = servers[0].upstream_queries.unwrap();
        ensure!(servers[1].queries + 10.0 >= asked, "{servers:#?}");
        has_cures(ran)
    });
}
