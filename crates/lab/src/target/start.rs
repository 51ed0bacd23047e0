//! How every target starts: free ports, a folder, a configuration, a process that answers.

use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use super::cell::Cell;
use super::certificate::Certificate;
use super::folder::TempFolder;
use super::place::{Place, Server};
use super::pods::{InImage, Pods};
use super::process::{Environment, Launch, ServerProcess};
use super::ready::{Readiness, StartFailure, wait_until_ready};
use super::resources::{ControlGroup, Resources};
use super::running::RunningServer;
use super::running_list::Listed;
use super::user::ServerUser;
use super::{Endpoints, Families, Network, Service, Topology, Zone, ports};

/// Attempts of a start when another process has taken a port.
const ATTEMPTS_MAX: usize = 5;

/// The settings of one target's start.
pub(super) struct Start<'a> {
    pub(super) server: &'a Server,
    pub(super) zone: &'a Zone,
    pub(super) families: Families,
    /// What it offers beside UDP and TCP.
    pub(super) services: &'a [Service],
    /// False for a proxy of TCP only.
    pub(super) has_udp: bool,
    /// What it may use.
    pub(super) resources: Resources,
    /// The image of its container, if it is to be in Kubernetes.
    pub(super) image: Option<&'a str>,
    /// Where its program is, if not where it is installed.
    pub(super) path: Option<&'a Path>,
    /// The user that it runs as, if not the default.
    pub(super) user: Option<&'a str>,
    /// The name under which it keeps running after the thread that started it.
    pub(super) lasting: Option<String>,
    /// The name of the proxy in front of it.
    pub(super) front: Option<String>,
    /// Its name in a closed Internet, if it is a server of one.
    pub(super) internet: Option<&'static str>,
    /// The address on which it has to listen; any if none.
    pub(super) at: Option<SocketAddr>,
    /// Its network, if it differs from the generator's.
    pub(super) network: Option<Arc<Network>>,
    /// Number of ports on 127.0.0.1 for other purposes.
    pub(super) extra_ports: usize,
    /// REFUSED is a valid response: the zone answers signed queries only.
    pub(super) refused_is_ready: bool,
}

impl<'a> Start<'a> {
    /// UDP and TCP on IPv4, on any core.
    pub(super) fn new(server: &'a Server, zone: &'a Zone) -> Start<'a> {
        Start {
            server,
            zone,
            families: Families::V4,
            services: &[],
            has_udp: true,
            resources: Resources::default(),
            image: None,
            path: None,
            user: None,
            lasting: None,
            front: None,
            internet: None,
            at: None,
            network: None,
            extra_ports: 0,
            refused_is_ready: false,
        }
    }

    /// As a cell says.
    pub(super) fn of(cell: &'a Cell) -> Start<'a> {
        Start {
            families: cell.families,
            services: &cell.services,
            resources: cell.resources.clone(),
            image: (cell.image.as_deref()).filter(|_| cell.topology == Topology::Kubernetes),
            path: cell.path.as_deref(),
            user: cell.user.as_deref(),
            lasting: cell.lasting.clone(),
            front: cell.front.clone(),
            network: cell.network.clone(),
            ..Start::new(cell.product.server, &cell.zone)
        }
    }

    /// Starts the server and waits until it answers for the zone on all its ports, at most a
    /// minute an attempt.
    ///
    /// `configure` writes the configuration and returns the arguments.
    pub(super) fn run(
        &self,
        mut configure: impl FnMut(&Place<'_>) -> anyhow::Result<Vec<OsString>>,
    ) -> anyhow::Result<RunningServer> {
        let is_offered = |service: &&Service| !self.server.services.contains(service);
        if let Some(service) = self.services.iter().find(is_offered) {
            let program = self.server.program.name();
            anyhow::bail!("`{program}` has no {}", service.name());
        }
        let mut last = anyhow::anyhow!("no attempt was made");
        for _ in 0..ATTEMPTS_MAX {
            let attempt = match self.image {
                Some(image) => self.attempt_in_pod(image, &mut configure),
                None => self.attempt(&mut configure),
            };
            match attempt {
                Ok(server) => return Ok(server),
                Err(StartFailure::Final(error)) => return Err(error),
                Err(StartFailure::PortTaken(error)) => last = error,
            }
        }
        Err(last.context(format!(
            "no start in {ATTEMPTS_MAX} attempts with different ports\nhint: what else its \
             configuration names may be in use: `ss -lnp` has every port and its process"
        )))
    }

    fn attempt(
        &self,
        configure: &mut impl FnMut(&Place<'_>) -> anyhow::Result<Vec<OsString>>,
    ) -> Result<RunningServer, StartFailure> {
        let (endpoints, extra_ports) = self.ports()?;
        let program = self.server.program;
        let mut folder = TempFolder::new(program.name())?;
        folder.check_path()?;
        let mut listed = Listed::new(program.name(), [&self.lasting, &self.front], &folder);
        listed.internet = self.internet.map(str::to_owned);
        listed.write()?;
        if let Some(user) = ServerUser::find(self.user)? {
            folder.share(user)?;
        }
        let ca_pem = self.write_files(&folder, &endpoints.addresses)?;
        let place = Place {
            folder: &folder,
            endpoints: &endpoints,
            extra_ports: &extra_ports,
            other_address: Ipv4Addr::LOCALHOST,
        };
        let arguments = configure(&place)?;
        let group = ControlGroup::new(&folder.name(), &self.resources)?;
        listed.groups = group
            .as_ref()
            .map_or(Vec::new(), |it| it.folders().to_vec());
        listed.write()?;
        let launch = Launch {
            program,
            path: self.path,
            arguments,
            resources: &self.resources,
            group,
            within: self.network.as_ref().map(|it| it.far_words()),
            lasts: self.lasting.is_some(),
            has_low_port: endpoints.has_low_port(),
            environment: Environment::Clean,
        };
        let mut process = ServerProcess::spawn(launch, folder)?;
        listed.process = process.identity();
        listed.addresses = endpoints.addresses_by_transport();
        listed.write()?;
        let readiness = self.readiness(&endpoints);
        self.there(|| wait_until_ready(&mut process, &readiness))??;
        process.keep_on_cpus(&self.resources)?;
        Ok(RunningServer {
            process,
            endpoints,
            extra_ports,
            ca_pem,
            listed,
            behind: None,
            network: self.network.clone(),
            pods: None,
        })
    }

    /// In Kubernetes a pod has all ports to itself, and its address is that of a Service.
    fn attempt_in_pod(
        &self,
        image: &str,
        configure: &mut impl FnMut(&Place<'_>) -> anyhow::Result<Vec<OsString>>,
    ) -> Result<RunningServer, StartFailure> {
        let program = self.server.program;
        let folder = TempFolder::new(program.name())?;
        let mut listed = Listed::new(program.name(), [&self.lasting, &self.front], &folder);
        let mut pods = Pods::new(&folder)?;
        listed.kubernetes = Some(pods.held());
        listed.write()?;
        let all = Ipv4Addr::UNSPECIFIED;
        let ports = Pods::ports(1 + self.services.len() + self.extra_ports);
        let (mut endpoints, extra_ports) = self.endpoints(vec![all.into()], ports);
        pods.make_namespace()?;
        // The UID of our namespace is known now.
        listed.kubernetes = Some(pods.held());
        listed.write()?;
        endpoints.addresses = vec![pods.make_service(&endpoints)?];
        let ca_pem = self.write_files(&folder, &endpoints.addresses)?;
        let inside = Endpoints {
            addresses: vec![all.into()],
            ..endpoints.clone()
        };
        let arguments = configure(&Place {
            folder: &folder,
            endpoints: &inside,
            extra_ports: &extra_ports,
            other_address: all,
        })?;
        let words = arguments.iter().map(|it| it.to_string_lossy().into_owned());
        let in_image = InImage {
            image,
            path: self.path,
            arguments: words.collect(),
        };
        pods.start(folder.path(), &in_image, &self.resources)?;
        // The local process copies the pod's log, and ends with the pod.
        let launch = Launch {
            program,
            path: Some(Path::new("kubectl")),
            arguments: pods.log_words().into_iter().map(OsString::from).collect(),
            resources: &Resources::default(),
            group: None,
            within: None,
            lasts: self.lasting.is_some(),
            has_low_port: false,
            environment: Environment::OfCaller,
        };
        let mut process = ServerProcess::spawn(launch, folder)?;
        listed.kubernetes = Some(pods.held());
        listed.process = process.identity();
        listed.addresses = endpoints.addresses_by_transport();
        listed.write()?;
        wait_until_ready(&mut process, &self.readiness(&endpoints))?;
        Ok(RunningServer {
            process,
            endpoints,
            extra_ports,
            ca_pem,
            listed,
            behind: None,
            network: None,
            pods: Some(pods),
        })
    }

    fn readiness<'b>(&'b self, endpoints: &'b Endpoints) -> Readiness<'b> {
        Readiness {
            endpoints,
            origin: &self.zone.origin,
            is_elsewhere: self.image.is_some(),
            refused_is_ready: self.refused_is_ready,
            ready_line: self.server.ready_line,
            fatal_lines: self.server.fatal_lines,
        }
    }

    /// Runs `act` in the server's network.
    fn there<T: Send>(&self, act: impl FnOnce() -> T + Send) -> anyhow::Result<T> {
        match &self.network {
            Some(network) => network.far(act),
            None => Ok(act()),
        }
    }

    /// Ports that are free on all addresses; those for other purposes are also free on 127.0.0.1.
    fn ports(&self) -> anyhow::Result<(Endpoints, Vec<u16>)> {
        if let Some(at) = self.at {
            let endpoints = Endpoints {
                addresses: vec![at.ip()],
                do53_port: at.port(),
                has_udp: self.has_udp,
                services: Vec::new(),
            };
            return Ok((endpoints, Vec::new()));
        }
        let addresses = match &self.network {
            Some(network) => network.far_addresses().to_vec(),
            None => self.families.addresses(),
        };
        let mut free_on = addresses.clone();
        let v4 = IpAddr::V4(Ipv4Addr::LOCALHOST);
        if !free_on.contains(&v4) {
            free_on.push(v4);
        }
        let count = 1 + self.services.len() + self.extra_ports;
        let free = self.there(|| ports::free_ports(&free_on, count))??;
        Ok(self.endpoints(addresses, free))
    }

    /// Ports at these addresses: of UDP and TCP, of each service, and the others.
    fn endpoints(&self, addresses: Vec<IpAddr>, mut ports: Vec<u16>) -> (Endpoints, Vec<u16>) {
        let extra_ports = ports.split_off(1 + self.services.len());
        let of_services = self.services.iter().copied().zip(ports.split_off(1));
        let endpoints = Endpoints {
            addresses,
            do53_port: ports[0],
            has_udp: self.has_udp,
            services: of_services.collect(),
        };
        (endpoints, extra_ports)
    }

    /// Returns the authority's certificate if there is one.
    fn write_files(
        &self,
        folder: &TempFolder,
        addresses: &[IpAddr],
    ) -> anyhow::Result<Option<String>> {
        folder.write("zone.db", &self.zone.text)?;
        if !self.services.iter().any(|service| service.has_tls()) {
            return Ok(None);
        }
        let Certificate {
            ca_pem,
            server_pem,
            key_pem,
        } = Certificate::generate(addresses)?;
        folder.write("server.pem", &server_pem)?;
        folder.write("server.key", &key_pem)?;
        folder.write("server.both.pem", &format!("{server_pem}{key_pem}"))?;
        folder.write("authority.pem", &ca_pem)?;
        Ok(Some(ca_pem))
    }
}
