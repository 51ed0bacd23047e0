use std::sync::Arc;
use std::time::Duration;

use load::client_arrival::ClientArrival;
use load::{Plan, QuestionSet};
use proto::Transport;

use super::super::addresses::{choose, choose_local_addresses, choose_own_addresses};
use super::super::{Description, RunRequest};
use super::*;

/// What is asked for of a run against a server.
fn asked_of(server: &str) -> Arc<settings::Run> {
    Arc::new(settings::Run {
        servers: vec![server.to_owned()],
        ..settings::Run::default()
    })
}

/// Clients that ask once a second, on one worker.
fn request(transport: Transport, clients: u32) -> RunRequest {
    RunRequest {
        group: clients.to_string(),
        plan: Plan {
            arrival: Arrival::Clients(ClientArrival::Constant { rate_qps: 1.0 }),
            clients,
            duration: Some(Duration::from_secs(1)),
            ..Plan::new(
                "127.0.0.1:53".parse().unwrap(),
                transport,
                Arc::new(QuestionSet::new()),
            )
        },
        tls: None,
        cpus: Vec::new(),
        driver: driver::kernel::DriverChoice::Auto,
        asked: asked_of("127.0.0.1"),
        description: Description::default(),
        preflight: false,
        observer: None,
        observe: crate::observing::Sources::default(),
    }
}

#[test]
fn every_thread_is_in_one_process() {
    for (agents, threads) in [(1, 1), (3, 3), (3, 8), (7, 20)] {
        let division = Division {
            agents,
            threads,
            responders: 1,
        };
        let each = (0..agents).flat_map(|agent| division.threads_of(agent));
        assert_eq!(each.collect::<Vec<_>>(), (0..threads).collect::<Vec<_>>());
        assert!((0..agents).all(|agent| !division.threads_of(agent).is_empty()));
    }
}

#[test]
fn small_groups_and_small_loops_keep_few_workers() {
    let mut groups = [request(Transport::Udp, 100), request(Transport::Tcp, 2)];
    groups[0].cpus = vec![4, 5];
    let mut closed = request(Transport::Udp, 100);
    closed.plan.arrival = Arrival::Closed {
        outstanding: 3,
        rate_qps_max: None,
    };
    let mut groups = [groups[0].clone(), groups[1].clone(), closed];
    let division = Division::into(&mut groups, 5);
    let workers = groups.each_ref().map(|request| request.plan.workers);
    assert_eq!((division.threads, workers), (5, [5, 2, 3]));
    assert_eq!(groups[0].cpus, [4, 5, 4, 5, 4]);
    let sockets = (0..5).map(|agent| division.descriptors_of(agent, &groups));
    assert_eq!(sockets.collect::<Vec<_>>(), [55, 54, 53, 20, 20]);
}

#[test]
fn a_run_that_fits_is_not_divided_unless_asked_to() {
    let divided = |agents| {
        let mut groups = [request(Transport::Tcp, 10)];
        divide(&mut groups, agents).map(|division| division.map(|it| it.agents))
    };
    assert_eq!(divided(None).unwrap(), None);
    assert_eq!(divided(Some(1)).unwrap(), None);
    assert_eq!(divided(Some(4)).unwrap(), Some(4));
    assert!(divided(Some(11)).unwrap_err().what.contains("10 agents"));
}

#[test]
fn as_many_processes_as_the_limit_demands() {
    let limit = driver::cpu::open_files_max();
    let Ok(clients) = u32::try_from(limit * 5 / 2) else {
        // There is no limit to speak of.
        return;
    };
    let mut groups = [request(Transport::Udp, clients)];
    let division = divide(&mut groups, None).unwrap().unwrap();
    assert_eq!((division.agents, division.responders), (3, 1));
    groups[0].plan.transport = Transport::Tcp;
    groups[0].asked = Arc::default();
    let division = divide(&mut groups, None).unwrap().unwrap();
    assert_eq!((division.agents, division.responders), (3, 3));
    let refused = divide(&mut groups, Some(2)).unwrap_err();
    assert!(
        refused
            .what
            .ends_with(&format!("the limit here is {limit}"))
    );
}

fn all(plan: &Plan) -> u64 {
    plan.clients.into()
}

/// Agents on other hosts have ports for their share each, however many clients all have.
#[test]
fn clients_of_a_fleet_are_more_than_one_host_has_ports() {
    let mut groups = [request(Transport::Udp, 100_000)];
    groups[0].plan.target = "192.0.2.1:53".parse().unwrap();
    assert!(choose_local_addresses(&mut groups).is_err());
    let division = Division::into(&mut groups, 10);
    for agent in 0..10 {
        choose_own_addresses(&mut groups, &division.threads_of(agent)).unwrap();
    }
    let division = Division::into(&mut groups, 1);
    assert!(choose_own_addresses(&mut groups, &division.threads_of(0)).is_err());
}

#[test]
fn loopback_clients_get_addresses_for_their_ports() {
    let range = (1_000, 1_999);
    let chosen = |transport, clients| {
        let mut groups = [request(transport, clients), request(transport, 10)];
        let result = choose(&mut groups, range, all);
        result.map(|()| groups[0].plan.local_addresses.len())
    };
    assert_eq!(chosen(Transport::Udp, 860).unwrap(), 0);
    assert_eq!(chosen(Transport::Doq, 1_000).unwrap(), 2);
    // Every other port is slow to find.
    assert_eq!(chosen(Transport::Tcp, 424).unwrap(), 0);
    assert_eq!(chosen(Transport::Tcp, 860).unwrap(), 3);
}

#[test]
fn too_few_addresses_elsewhere_are_an_error_with_their_number() {
    let range = (1_000, 1_999);
    let mut groups = [request(Transport::Tcp, 2_500)];
    groups[0].plan.target = "192.0.2.1:53".parse().unwrap();
    let error = choose(&mut groups, range, all).unwrap_err();
    assert!(error.hint.unwrap().starts_with("give 3 addresses "));
    groups[0].plan.local_addresses = vec!["192.0.2.2".parse().unwrap(); 3];
    choose(&mut groups, range, all).unwrap();
    groups[0].plan.target = "[::1]:53".parse().unwrap();
    groups[0].plan.local_addresses = Vec::new();
    let error = choose(&mut groups, range, all).unwrap_err();
    assert!(error.hint.unwrap().starts_with("::1 is the only "));
}
