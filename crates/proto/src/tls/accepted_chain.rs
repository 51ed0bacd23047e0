//! Certificate chains that were accepted a moment ago.
//!
//! All connections of a run see the same chain, and verifying its signatures takes longer than all
//! the rest that a client does for a handshake but the key exchange. So each thread remembers the
//! chain that it accepted last, for a second: a certificate that expires in mid-run is still
//! noticed. That the server holds the certificate's key is verified in every full handshake.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, Error, SignatureScheme};
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How long an accepted chain is accepted again, in seconds of the verifier's time.
const SECONDS: u64 = 1;

/// Numbers the verifiers, so that none believes what another has accepted.
static VERIFIERS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static ACCEPTED: RefCell<Option<Accepted>> = const { RefCell::new(None) };
}

/// What was accepted last on this thread.
struct Accepted {
    verifier: u64,
    /// End entity first.
    chain: Vec<CertificateDer<'static>>,
    name: ServerName<'static>,
    ocsp: Vec<u8>,
    at: UnixTime,
}

impl Accepted {
    fn covers(&self, verifier: u64, presented: &Presented<'_>, now: UnixTime) -> bool {
        let age = now.as_secs().checked_sub(self.at.as_secs());
        self.verifier == verifier
            && age.is_some_and(|age| age < SECONDS)
            && self.chain.first() == Some(presented.end_entity)
            && self.chain.get(1..) == Some(presented.intermediates)
            && self.name == *presented.name
            && self.ocsp == presented.ocsp
    }
}

/// What a server shows of itself.
struct Presented<'a> {
    end_entity: &'a CertificateDer<'a>,
    intermediates: &'a [CertificateDer<'a>],
    name: &'a ServerName<'a>,
    ocsp: &'a [u8],
}

/// Asks another verifier, unless it has just accepted the same.
#[derive(Debug)]
pub(super) struct RememberingVerifier {
    verifier: Arc<dyn ServerCertVerifier>,
    number: u64,
}

impl RememberingVerifier {
    pub(super) fn new(verifier: Arc<dyn ServerCertVerifier>) -> Self {
        let number = VERIFIERS.fetch_add(1, Ordering::Relaxed);
        RememberingVerifier { verifier, number }
    }
}

impl ServerCertVerifier for RememberingVerifier {
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
        let is_known = ACCEPTED.with_borrow(|accepted| {
            let accepted = accepted.as_ref();
            accepted.is_some_and(|accepted| accepted.covers(self.number, &presented, now))
        });
        if is_known {
            return Ok(ServerCertVerified::assertion());
        }
        let verified = self.verifier.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        )?;
        let chain = std::iter::once(end_entity).chain(intermediates);
        let accepted = Accepted {
            verifier: self.number,
            chain: chain.map(|one| one.clone().into_owned()).collect(),
            name: server_name.to_owned(),
            ocsp: ocsp_response.to_vec(),
            at: now,
        };
        ACCEPTED.set(Some(accepted));
        Ok(verified)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier.supported_verify_schemes()
    }

    fn requires_raw_public_keys(&self) -> bool {
        self.verifier.requires_raw_public_keys()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::CertificateError;
    use std::sync::atomic::AtomicU32;
    use std::time::Duration;

    /// Accepts a chain unless its end entity begins with 0, and counts how often it is asked.
    #[derive(Debug, Default)]
    struct Counting(AtomicU32);

    impl ServerCertVerifier for Counting {
        fn verify_server_cert(
            &self,
            end_entity: &CertificateDer<'_>,
            _: &[CertificateDer<'_>],
            _: &ServerName<'_>,
            _: &[u8],
            _: UnixTime,
        ) -> Result<ServerCertVerified, Error> {
            self.0.fetch_add(1, Ordering::Relaxed);
            match end_entity.first() {
                Some(0) => Err(CertificateError::Expired.into()),
                _ => Ok(ServerCertVerified::assertion()),
            }
        }

        fn verify_tls12_signature(
            &self,
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            Ok(HandshakeSignatureValid::assertion())
        }

        fn verify_tls13_signature(
            &self,
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            Ok(HandshakeSignatureValid::assertion())
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            Vec::new()
        }
    }

    #[test]
    fn only_the_very_same_chain_for_the_same_name_at_the_same_time_is_accepted_unasked() {
        let counting = Arc::new(Counting::default());
        let verifier = RememberingVerifier::new(counting.clone());
        let show = |verifier: &RememberingVerifier, first: u8, second: u8, name: &str, at: u64| {
            let end_entity = CertificateDer::from(vec![first]);
            let intermediates = [CertificateDer::from(vec![second])];
            let name = ServerName::try_from(name.to_owned()).unwrap();
            let now = UnixTime::since_unix_epoch(Duration::from_secs(at));
            let shown = verifier.verify_server_cert(&end_entity, &intermediates, &name, &[], now);
            (shown.is_ok(), counting.0.load(Ordering::Relaxed))
        };
        assert_eq!(show(&verifier, 1, 2, "a.test", 9), (true, 1));
        assert_eq!(show(&verifier, 1, 2, "a.test", 9), (true, 1));
        assert_eq!(show(&verifier, 1, 3, "a.test", 9), (true, 2));
        assert_eq!(show(&verifier, 1, 3, "b.test", 9), (true, 3));
        assert_eq!(show(&verifier, 4, 3, "b.test", 9), (true, 4));
        assert_eq!(show(&verifier, 4, 3, "b.test", 10), (true, 5));
        // A clock that is set back is not believed.
        assert_eq!(show(&verifier, 4, 3, "b.test", 9), (true, 6));
        // What is refused is asked about each time, and what was accepted stays so.
        assert_eq!(show(&verifier, 0, 3, "b.test", 9), (false, 7));
        assert_eq!(show(&verifier, 0, 3, "b.test", 9), (false, 8));
        assert_eq!(show(&verifier, 4, 3, "b.test", 9), (true, 8));
        let other = RememberingVerifier::new(counting.clone());
        assert_eq!(show(&other, 4, 3, "b.test", 9), (true, 9));
    }
}
