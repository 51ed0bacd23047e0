//! What rustls asks about a server's certificate: [`JudgeChain`] says whether the chain is that of
//! whom it should be, and the signatures are checked here, alike for all who judge.

use super::accepted_chain::AcceptedChains;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, SignatureScheme};
use std::fmt;
use std::sync::Arc;

/// What a server shows of itself.
#[derive(Clone, Copy)]
pub(super) struct Presented<'a> {
    pub(super) end_entity: &'a CertificateDer<'a>,
    pub(super) intermediates: &'a [CertificateDer<'a>],
    pub(super) name: &'a ServerName<'a>,
    pub(super) ocsp: &'a [u8],
}

/// Says whether a chain is accepted.
pub(super) trait JudgeChain: fmt::Debug + Send + Sync {
    /// # Errors
    /// Why it is not.
    fn judge(&self, presented: &Presented<'_>, now: UnixTime) -> Result<(), Error>;

    /// Whether a certificate will do that cannot be read, so that its signatures cannot be checked.
    fn takes_unreadable(&self) -> bool {
        false
    }
}

impl JudgeChain for WebPkiServerVerifier {
    fn judge(&self, presented: &Presented<'_>, now: UnixTime) -> Result<(), Error> {
        let Presented {
            end_entity,
            intermediates,
            name,
            ocsp,
        } = *presented;
        let verified = self.verify_server_cert(end_entity, intermediates, name, ocsp, now);
        match verified {
            // An authority of the issuer's name is trusted, but its key has not signed this.
            Err(Error::InvalidCertificate(CertificateError::BadSignature)) => {
                Err(CertificateError::UnknownIssuer.into())
            }
            other => other.map(drop),
        }
    }
}

/// What webpki calls a certificate of an authority that a server shows as its own.
pub(super) const CA_AS_SERVER: &str = "CaUsedAsEndEntity";

/// Takes what the user's authorities have signed, and a certificate that is among them itself: what
/// `openssl req -x509` makes for a server says that it is an authority's, and has no names unless
/// they are asked for.
#[derive(Debug)]
pub(super) struct OwnAuthorities {
    pub(super) authorities: Arc<WebPkiServerVerifier>,
    pub(super) given: Vec<CertificateDer<'static>>,
}

impl JudgeChain for OwnAuthorities {
    fn judge(&self, presented: &Presented<'_>, now: UnixTime) -> Result<(), Error> {
        let judged = self.authorities.judge(presented, now);
        if !self.given.contains(presented.end_entity) {
            return judged;
        }
        let judged = match judged {
            // Its time was checked before that, its name was not.
            Err(Error::InvalidCertificate(CertificateError::Other(other)))
                if other.to_string() == CA_AS_SERVER =>
            {
                verify_server_name(
                    &ParsedCertificate::try_from(presented.end_entity)?,
                    presented.name,
                )
            }
            judged => judged,
        };
        match judged {
            // The name is checked last. The file has this very certificate, and no name to compare.
            Err(Error::InvalidCertificate(CertificateError::NotValidForNameContext {
                presented,
                ..
            })) if presented.is_empty() => Ok(()),
            judged => judged,
        }
    }
}

/// Takes any certificate. The server still has to prove that it holds the key to it, unless it
/// cannot be read, as X.509 version 1 certificates cannot: BIND's `tls ephemeral` makes one.
#[derive(Debug)]
pub(super) struct AnyChain;

impl JudgeChain for AnyChain {
    fn judge(&self, _: &Presented<'_>, _: UnixTime) -> Result<(), Error> {
        Ok(())
    }

    fn takes_unreadable(&self) -> bool {
        true
    }
}

/// The verifier of a configuration. A chain that was accepted a moment ago is not judged again.
#[derive(Debug)]
pub(super) struct ChainVerifier {
    judge: Arc<dyn JudgeChain>,
    provider: Arc<CryptoProvider>,
    accepted: AcceptedChains,
}

impl ChainVerifier {
    pub(super) fn new(judge: Arc<dyn JudgeChain>, provider: Arc<CryptoProvider>) -> Self {
        ChainVerifier {
            judge,
            provider,
            accepted: AcceptedChains::new(),
        }
    }

    /// A signature that was checked and is wrong stays an error.
    fn tolerate(
        &self,
        checked: Result<HandshakeSignatureValid, Error>,
    ) -> Result<HandshakeSignatureValid, Error> {
        match checked {
            Err(Error::InvalidCertificate(reason))
                if reason != CertificateError::BadSignature && self.judge.takes_unreadable() =>
            {
                Ok(HandshakeSignatureValid::assertion())
            }
            other => other,
        }
    }
}

impl ServerCertVerifier for ChainVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let presented = Presented {
            end_entity,
            intermediates,
            name: server_name,
            ocsp: ocsp_response,
        };
        if !self.accepted.cover(&presented, now) {
            self.judge.judge(&presented, now)?;
            self.accepted.remember(&presented, now);
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        self.tolerate(verify_tls12_signature(
            message,
            certificate,
            signed,
            algorithms,
        ))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        self.tolerate(verify_tls13_signature(
            message,
            certificate,
            signed,
            algorithms,
        ))
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let algorithms = &self.provider.signature_verification_algorithms;
        algorithms.supported_schemes()
    }
}
