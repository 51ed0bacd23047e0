//! What all targets have once they run: a process, its addresses, its certificate.

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
    /// What the list of running servers says of it.
    pub(super) listed: Listed,
    /// What a proxy asks. Dropped after the proxy, because fields go in this order.
    pub(super) behind: Option<Box<RunningServer>>,
    /// Where it runs, if not with its generator.
    pub(super) network: Option<Arc<Network>>,
}

impl RunningServer {
    /// Where it listens.
    pub fn endpoints(&self) -> &Endpoints {
        &self.endpoints
    }

    /// The certificate of the authority to trust for what is encrypted, PEM.
    pub fn ca_pem(&self) -> Option<&str> {
        self.ca_pem.as_deref()
    }

    /// A file with that certificate, for clients that want one.
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

    /// Ports of 127.0.0.1 that are for something else than DNS: BIND's statistics channel, the
    /// exposition of CoreDNS.
    pub fn other_ports(&self) -> &[u16] {
        &self.extra_ports
    }

    /// Puts a server behind all that stand there.
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

    /// Where it is in Kubernetes, if it is.
    pub fn pods(&self) -> Option<&Pods> {
        self.pods.as_ref()
    }

    /// Refuses a server that has ended by itself, or whose server behind has.
    ///
    /// # Errors
    /// It has; with the end of its log.
    pub fn check_alive(&mut self) -> anyhow::Result<()> {
        if let Some(pods) = &self.pods {
            // The process here only follows its log.
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

    /// The same, for a thread that does something there while this server is changed.
    pub fn shared_network(&self) -> Option<Arc<Network>> {
        self.network.clone()
    }

    /// Runs something at the generator's end of that network, with all that it starts.
    ///
    /// # Errors
    /// That end is gone.
    pub fn near<T: Send>(&self, act: impl FnOnce() -> T + Send) -> anyhow::Result<T> {
        match self.network() {
            Some(network) => network.near(act),
            None => Ok(act()),
        }
    }

    /// What the line of that network did since this was last asked; none if there is no line.
    pub fn account(&self) -> Option<measure::line::Line> {
        self.network()?.account()
    }

    /// Leaves it running when this process has ended; the list of running servers has it.
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
