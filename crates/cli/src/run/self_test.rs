//! Runs against the built-in responder: on loopback beside the generator, or simulated.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use driver::sim::{Jitter, Link, WorldConfig};
use lab::agents::Connection;
use lab::live::Live;
use lab::run::{ResponderShare, RunRequest, Serving, Simulation, SocketUse};
use measure::RunRecord;
use proto::Transport;
use proto::tls::{ServerTlsOptions, Tickets};
use responder::certificate::{Identity, SelfSigned, self_signed};
use responder::{Limits, ResponderConfig};
use settings::{DriverChoice, Run};

use super::group::share_rounds;
use super::prepared::Prepared;
use super::{request, tls};
use crate::agent::AgentIndex;
use crate::args::doh::Server;
use crate::failure::Failure;
use crate::responder::config_of_share;
use crate::run::group::Group;
use crate::secrets;
use crate::signals::Interrupt;

/// Where the simulated target is (RFC 5737).
const SIMULATED_TARGET: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 53);

/// A self-test's clients are the run's: the responder has memory for all of them.
const SELF_TEST_LIMITS: Limits = Limits {
    pending_octets_max: usize::MAX,
    memory_octets_max: usize::MAX,
    quic_unvalidated_max: usize::MAX,
    ..Limits::DEFAULT
};

/// The simulated target has room for whatever a population asks: its limits are those of the model.
const SIMULATED_LIMITS: Limits = Limits {
    delayed_responses_max: 1 << 28,
    delayed_octets_max: 1 << 36,
    connections_max: u32::MAX,
    // A modelled server may be busy for longer than 10 s.
    handshake_timeout: std::time::Duration::from_secs(3_600),
    ..SELF_TEST_LIMITS
};

/// What the built-in responder is called in its certificate and in requests.
const SELF_TEST_NAME: &str = "localhost";

/// The responder of a self-test, decided and not started.
pub(super) struct Responder {
    config: ResponderConfig,
    /// Those that the workers do not use.
    cpus: Vec<usize>,
    sockets: SocketUse,
    /// With TLS.
    pub(super) identity: Option<Identity>,
}

impl Responder {
    /// Serves on threads of this process.
    pub(super) fn serve(&self) -> Result<Serving, Failure> {
        lab::run::serve(&self.config, &self.cpus, self.sockets).map_err(|error| {
            let hint = lab::run::serve_hint(&error);
            Failure::usage(
                format!("cannot start the built-in responder: {error}"),
                hint,
            )
        })
    }

    /// Serves as one of several processes, until the lead ends it.
    pub(super) fn serve_share(
        &self,
        connection: &mut Connection,
        place: AgentIndex,
        addresses: Option<Vec<(Transport, SocketAddr)>>,
    ) -> Result<(), Failure> {
        let share = ResponderShare {
            index: place.index,
            count: place.count,
            addresses,
        };
        let config = config_of_share(self.config.clone(), place);
        lab::agents::serve_share(connection, &config, (&self.cpus, self.sockets), &share)?;
        Ok(())
    }
}

/// Makes the request of each group, and the responder that they ask: on the CPUs that the workers
/// do not use.
pub(super) fn prepare(groups: &[Group], identity: Option<Identity>) -> Result<Prepared, Failure> {
    let mut requests = Vec::new();
    for group in groups {
        let server = Server::parse(SELF_TEST_NAME);
        let asked = request::questions(group).map_err(|failure| group.blame(failure))?;
        let targets = [probe_target()];
        let target = (&targets[..], &server);
        let request = request::build(&group.run, target, asked);
        requests.push(request.map_err(|failure| group.blame(failure))?);
    }
    let workers = requests.iter().map(|request| request.plan.workers).max();
    let (generator_cpus, cpus) = split_cpus(&groups[0].run.generator.cpus, workers.unwrap_or(1));
    let identity = complete(groups, &requests, (identity, false))?;
    let free_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let config = ResponderConfig {
        listen: (transports(groups).into_iter())
            .map(|transport| (transport, free_port))
            .collect(),
        ..responder(&groups[0], identity.as_ref())
    };
    for (request, group) in requests.iter_mut().zip(groups) {
        request.cpus.clone_from(&generator_cpus);
        finish(request, group, identity.as_ref())?;
    }
    let responder = Responder {
        config,
        cpus,
        sockets: SocketUse {
            driver: DriverChoice::of(groups[0].run.generator.driver, None).unwrap_or_default(),
            offload: groups[0].run.generator.sockets.offload,
        },
        identity,
    };
    Ok(Prepared {
        requests,
        responder: Some(responder),
    })
}

/// The transports that the groups need, each once.
fn transports(groups: &[Group]) -> Vec<Transport> {
    let mut transports = Vec::new();
    for group in groups {
        let run = &group.run;
        let fallback = run.tcp_fallback.then_some(Transport::Tcp);
        for transport in [Some(run.transport), fallback].into_iter().flatten() {
            if !transports.contains(&transport) {
                transports.push(transport);
            }
        }
    }
    transports
}

/// The responder as the run wants it.
fn responder(group: &Group, identity: Option<&Identity>) -> ResponderConfig {
    ResponderConfig {
        behaviour: group.run.responder.clone(),
        tls: identity.map(|identity| Arc::clone(&identity.server_config)),
        seed: group.run.generator.seed,
        limits: SELF_TEST_LIMITS,
        ..ResponderConfig::default()
    }
}

/// Runs in virtual time.
pub(super) fn simulate(
    groups: &[Group],
    interrupt: &Interrupt,
    live: &Live,
) -> Result<RunRecord, Failure> {
    let (requests, simulation) = prepare_simulation(groups)?;
    super::shares::show_shares(&requests, groups[0].output.quiet);
    let control = lab::run::control(&requests);
    interrupt.stops(&control);
    Ok(lab::run::simulate_until_interrupted(
        &requests,
        &simulation,
        &control,
        live,
    )?)
}

/// Checks all that can be checked before a simulation.
pub(super) fn check_simulation(groups: &[Group]) -> Result<(), Failure> {
    prepare_simulation(groups).map(drop)
}

fn prepare_simulation(groups: &[Group]) -> Result<(Vec<RunRequest>, Simulation), Failure> {
    let mut requests = Vec::new();
    for group in groups {
        let run = &group.run;
        if let Some(server) = run.servers.first() {
            let server = secrets::uri(server);
            return Err(Failure::usage(
                format!("--driver sim simulates the target too; it cannot reach {server}"),
                "leave out --server, or use --driver epoll",
            ));
        }
        let server = Server::parse(SELF_TEST_NAME);
        let asked = request::questions(group).map_err(|failure| group.blame(failure))?;
        let target = SocketAddr::from((SIMULATED_TARGET, run.transport.default_port()));
        let target = (&[target][..], &server);
        let request = request::build(run, target, asked);
        requests.push(request.map_err(|failure| group.blame(failure))?);
    }
    let identity = complete(groups, &requests, (None, true))?;
    for (request, group) in requests.iter_mut().zip(groups) {
        finish(request, group, identity.as_ref())?;
        // A simulated target is always there.
        request.preflight = false;
    }
    share_rounds(groups, &mut requests)?;
    let simulation = Simulation {
        world: world(&groups[0].run),
        responder: ResponderConfig {
            service: groups[0].run.simulation.server.clone(),
            limits: SIMULATED_LIMITS,
            ..responder(&groups[0], identity.as_ref())
        },
        ..Simulation::default()
    };
    Ok((requests, simulation))
}

fn world(run: &Run) -> WorldConfig {
    let asked = &run.simulation;
    let jitter = match asked.jitter.is_zero() {
        true => Jitter::None,
        false => Jitter::Uniform { max: asked.jitter },
    };
    let link = Link {
        delay: asked.delay,
        jitter,
        loss_share: asked.loss_share,
        duplicate_share: asked.duplicate_share,
        reorder_share: asked.reorder_share,
        reorder_delay: asked.delay,
    };
    WorldConfig {
        seed: run.generator.seed,
        link,
        ..WorldConfig::default()
    }
}

/// The responder's certificate, for transports with TLS: the one `given`, or a new one. In the
/// simulator its octets have the same lengths in every run.
fn complete(
    groups: &[Group],
    requests: &[RunRequest],
    (given, deterministic_lengths): (Option<Identity>, bool),
) -> Result<Option<Identity>, Failure> {
    let mut each = groups.iter().map(|group| &group.run);
    let mut with_tls = each.clone().filter(|run| run.tls.is_some());
    let Some(first) = with_tls.next() else {
        return Ok(None);
    };
    let options = SelfSigned {
        deterministic_lengths,
        ..SelfSigned::default()
    };
    let mut identity = match given {
        Some(identity) => identity,
        None => self_signed(&options).map_err(Failure::in_operation)?,
    };
    if each.any(|run| run.tls.as_ref().is_some_and(|tls| tls.early_data)) {
        let clients = requests.iter().map(|request| request.plan.clients);
        let options = early_data(clients.fold(0, u32::saturating_add));
        identity.server_config = identity
            .config(first.transport, &options)
            .map_err(Failure::in_operation)?;
    }
    Ok(Some(identity))
}

/// A responder that takes early data, and remembers enough tickets for `clients`.
fn early_data(clients: u32) -> ServerTlsOptions {
    // A client has used or forgotten all but the last of its tickets; as many connections again
    // may be about to.
    let sessions_max = (clients as usize).saturating_mul(8).max(1_024);
    ServerTlsOptions {
        tickets: Tickets::Stored {
            count: 2,
            sessions_max,
        },
        early_data_octets_max: tls::EARLY_DATA_OCTETS_MAX,
        ..ServerTlsOptions::default()
    }
}

/// Completes the request: TLS that trusts the responder, and the words of the record.
fn finish(
    request: &mut RunRequest,
    group: &Group,
    identity: Option<&Identity>,
) -> Result<(), Failure> {
    request.group.clone_from(&group.name);
    if let (Some(identity), Some(asked)) = (identity, &group.run.tls) {
        let authority = &identity.certificate_pem;
        request.tls = Some(tls::self_test(asked, group.run.transport, authority)?);
    }
    Ok(())
}

/// Stands for the responder's address until it has one; only its family and scope matter.
fn probe_target() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 53))
}

/// The workers' CPUs and the responder's: no CPU has both, if there is more than one.
fn split_cpus(given: &[usize], workers: u32) -> (Vec<usize>, Vec<usize>) {
    let all = driver::cpu::allowed();
    if !given.is_empty() {
        let rest = all.iter().copied().filter(|cpu| !given.contains(cpu));
        return (given.to_vec(), rest.collect());
    }
    let workers = workers as usize;
    if all.len() <= workers {
        return (Vec::new(), Vec::new());
    }
    let (generator, responder) = all.split_at(workers);
    (generator.to_vec(), responder.to_vec())
}
