//! Inputs of a run's workers.

use std::sync::Arc;

use load::{Plan, Resume};

use crate::observer::Observer;

/// Inputs shared by all workers of one group.
#[derive(Clone)]
pub struct RunInputs {
    /// The run as decided.
    pub plan: Arc<Plan>,
    /// For transports with TLS.
    pub tls: Option<TlsSettings>,
    /// Receives every query and connection; none costs nothing.
    pub observer: Option<Observer>,
}

/// How TLS sessions are made.
#[derive(Clone)]
pub struct TlsSettings {
    /// Versions, roots, verification.
    pub config: Arc<proto::tls::rustls::ClientConfig>,
    /// The target's name, for SNI and verification.
    pub name: proto::tls::rustls::pki_types::ServerName<'static>,
    /// Which connections resume their client's last session, if they can.
    pub resume: Resume,
}
