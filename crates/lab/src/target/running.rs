//! A running target: its process, addresses and certificate.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::process::ServerProcess;
use super::running_list::Listed;
use super::{Endpoints, Network, Pods};

/// A server that runs and answers, gone when dropped.
#[derive(Debug)]
pub struct RunningServer {
    /// Its pod, which ends first: its process here follows the pod's log.
    pub(super) pods: Option<Pods>,
    pub(super) process: ServerProcess,
    pub(super) endpoints: Endpoints,
    pub(super) extra_ports: Vec<u16>,
    pub(super) ca_pem: Option<String>,
    /// Its entry in the list of running servers.
    pub(super) listed: Listed,
    /// The server behind a proxy. Dropped after the proxy, because fields are dropped in this
    /// order.
    pub(super) behind: Option<Box<RunningServer>>,
    /// Its network, if it differs from the generator's.
    pub(super) network: Option<Arc<Network>>,
}

impl RunningServer {
    /// Where it listens.
    pub fn endpoints(&self) -> &Endpoints {
        &self.endpoints
    }

    /// The CA certificate to trust, PEM.
    pub fn ca_pem(&self) -> Option<&str> {
        self.ca_pem.as_deref()
    }

    /// A file with that certificate, for clients that need one.
    pub fn ca_file(&self) -> PathBuf {
        self.folder().join("authority.pem")
    }

    /// The process ID of the server.
    pub fn process_id(&self) -> u32 {
        self.process.id()
    }

    /// The folder with its configuration and log; removed on drop.
    pub fn folder(&self) -> &Path {
        self.process.folder()
    }

    /// Everything the server has logged so far.
    pub fn log(&self) -> String {
        self.process.log()
    }

    /// Ports of 127.0.0.1 for other purposes than DNS: BIND's statistics channel, the exposition of
    /// CoreDNS.
    pub fn other_ports(&self) -> &[u16] {
        &self.extra_ports
    }

    /// Appends a server to the chain behind this one.
    pub(super) fn put_behind(&mut self, server: RunningServer) {
        match &mut self.behind {
            Some(behind) => behind.put_behind(server),
            none => *none = Some(Box::new(server)),
        }
    }

    /// The server behind a proxy.
    pub fn behind(&self) -> Option<&RunningServer> {
        self.behind.as_deref()
    }

    /// Its pod, if it is in Kubernetes.
    pub fn pods(&self) -> Option<&Pods> {
        self.pods.as_ref()
    }

    /// Fails if the server, or the one behind it, has ended by itself.
    ///
    /// # Errors
    /// It has ended; with the end of its log.
    pub fn check_alive(&mut self) -> anyhow::Result<()> {
        if let Some(pods) = &self.pods {
            // The local process only follows the pod's log.
            pods.check_alive()?;
        } else if let Some(status) = self.process.ended()? {
            let how = format!("ended in mid-run ({})", self.process.describe_end(status));
            return Err(self.process.error(&how));
        }
        self.behind.as_mut().map_or(Ok(()), |it| it.check_alive())
    }

    /// The network between it and its generator; none on loopback.
    pub fn network(&self) -> Option<&Network> {
        self.network.as_deref()
    }

    /// The same, for a thread that uses it while this server is modified.
    pub fn shared_network(&self) -> Option<Arc<Network>> {
        self.network.clone()
    }

    /// Runs `act`, with all processes that it starts, at the generator's end of that network.
    ///
    /// # Errors
    /// That end is gone.
    pub fn near<T: Send>(&self, act: impl FnOnce() -> T + Send) -> anyhow::Result<T> {
        match self.network() {
            Some(network) => network.near(act),
            None => Ok(act()),
        }
    }

    /// The statistics of that network's line since the last call; none without a line.
    pub fn account(&self) -> Option<measure::line::Line> {
        self.network()?.account()
    }

    /// Keeps it running after the end of this process; it stays in the list of running servers.
    ///
    /// # Errors
    /// The list cannot be written.
    pub fn keep(mut self) -> anyhow::Result<Listed> {
        if let Some(behind) = self.behind.take() {
            behind.keep()?;
        }
        self.listed.owner = None;
        self.listed.write()?;
        self.process.keep();
        if let Some(pods) = &mut self.pods {
            pods.keep();
        }
        if let Some(network) = self
            .network
            .as_ref()
            .filter(|_| self.listed.front.is_none())
        {
            network.keep()?;
        }
        Ok(self.listed.clone())
    }
}
