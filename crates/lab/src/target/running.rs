//! What all targets have once they run: a process, its addresses, its certificate.

use std::path::Path;

use super::certificate::Certificate;
use super::folder::TempFolder;
use super::process::{Launch, ServerProcess};
use super::ready::{Readiness, wait_until_ready};
use super::{Endpoints, StartFailure, Zone};

/// A server that runs and answers, gone when dropped.
#[derive(Debug)]
pub struct RunningServer {
    pub(super) process: ServerProcess,
    endpoints: Endpoints,
    ca_pem: Option<String>,
}

/// The folder of a server that is about to start.
pub(super) struct Prepared {
    pub(super) folder: TempFolder,
    certificate: Option<Certificate>,
}

impl Prepared {
    /// Makes the folder, with the zone in `zone.db` and, if DoT is wanted, a certificate in
    /// `server.pem` and `server.key`.
    pub(super) fn new(name: &str, zone: &Zone, dot: bool) -> anyhow::Result<Prepared> {
        let folder = TempFolder::new(name)?;
        let certificate = dot.then(Certificate::generate).transpose()?;
        if let Some(certificate) = &certificate {
            folder.write("server.pem", &certificate.server_pem)?;
            folder.write("server.key", &certificate.key_pem)?;
        }
        folder.write("zone.db", &zone.text)?;
        Ok(Prepared {
            folder,
            certificate,
        })
    }

    /// Starts the server and waits until it is ready.
    pub(super) fn launch(
        self,
        launch: Launch,
        readiness: &Readiness<'_>,
    ) -> Result<RunningServer, StartFailure> {
        let mut process = ServerProcess::spawn(launch, self.folder)?;
        wait_until_ready(&mut process, readiness)?;
        let ca_pem = self.certificate.map(|certificate| certificate.ca_pem);
        let endpoints = readiness.endpoints.clone();
        Ok(RunningServer {
            process,
            endpoints,
            ca_pem,
        })
    }
}

impl RunningServer {
    /// Where it listens.
    pub fn endpoints(&self) -> &Endpoints {
        &self.endpoints
    }

    /// The certificate of the authority to trust for DNS over TLS, PEM.
    pub fn ca_pem(&self) -> Option<&str> {
        self.ca_pem.as_deref()
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
}
