//! What all targets have once they run: a process, its addresses, its certificate.

use std::path::{Path, PathBuf};

use super::Endpoints;
use super::process::ServerProcess;
use super::running_list::Listed;

/// A server that runs and answers, gone when dropped.
#[derive(Debug)]
pub struct RunningServer {
    pub(super) process: ServerProcess,
    pub(super) endpoints: Endpoints,
    pub(super) extra_ports: Vec<u16>,
    pub(super) ca_pem: Option<String>,
    /// What the list of running servers says of it.
    pub(super) listed: Listed,
    /// What a proxy asks. Dropped after the proxy, because fields go in this order.
    pub(super) behind: Option<Box<RunningServer>>,
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

    /// The server behind a proxy.
    pub fn behind(&self) -> Option<&RunningServer> {
        self.behind.as_deref()
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
        Ok(self.listed.clone())
    }
}
