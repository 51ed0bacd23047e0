//! Certificate chains that were accepted a moment ago.
//!
//! All connections of a run see the same chain, and verifying its signatures takes longer than all
//! the rest that a client does for a handshake but the key exchange. So each thread remembers the
//! chain that it accepted last, for a second: a certificate that expires in mid-run is still
//! noticed. That the server holds the certificate's key is verified in every full handshake.

use super::verifier::Presented;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use std::cell::RefCell;
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

/// What one verifier has accepted.
#[derive(Debug)]
pub(super) struct AcceptedChains {
    verifier: u64,
}

impl AcceptedChains {
    /// Those of a verifier that has accepted nothing.
    pub(super) fn new() -> Self {
        AcceptedChains {
            verifier: VERIFIERS.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// True if the very same was accepted a moment ago.
    pub(super) fn cover(&self, presented: &Presented<'_>, now: UnixTime) -> bool {
        ACCEPTED.with_borrow(|accepted| {
            let accepted = accepted.as_ref();
            accepted.is_some_and(|accepted| accepted.covers(self.verifier, presented, now))
        })
    }

    /// Notes that it has been accepted.
    pub(super) fn remember(&self, presented: &Presented<'_>, now: UnixTime) {
        let chain = std::iter::once(presented.end_entity).chain(presented.intermediates);
        ACCEPTED.set(Some(Accepted {
            verifier: self.verifier,
            chain: chain.map(|one| one.clone().into_owned()).collect(),
            name: presented.name.to_owned(),
            ocsp: presented.ocsp.to_vec(),
            at: now,
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::super::verifier::{ChainVerifier, JudgeChain};
    use super::*;
    use rustls::client::danger::ServerCertVerifier;
    use rustls::crypto::aws_lc_rs;
    use rustls::{CertificateError, Error};
    use std::sync::Arc;
    use std::sync::atomic::AtomicU32;
    use std::time::Duration;

    /// Accepts a chain unless its end entity begins with 0, and counts how often it is asked.
    #[derive(Debug)]
    struct Counting(Arc<AtomicU32>);

    impl JudgeChain for Counting {
        fn judge(&self, presented: &Presented<'_>, _: UnixTime) -> Result<(), Error> {
            self.0.fetch_add(1, Ordering::Relaxed);
            match presented.end_entity.first() {
                Some(0) => Err(CertificateError::Expired.into()),
                _ => Ok(()),
            }
        }
    }

    #[test]
    fn only_the_very_same_chain_for_the_same_name_at_the_same_time_is_accepted_unasked() {
        let asked = Arc::new(AtomicU32::new(0));
        let verifier = || {
            let provider = Arc::new(aws_lc_rs::default_provider());
            ChainVerifier::new(Arc::new(Counting(asked.clone())), provider)
        };
        let show = |verifier: &ChainVerifier, first: u8, second: u8, name: &str, at: u64| {
            let end_entity = CertificateDer::from(vec![first]);
            let intermediates = [CertificateDer::from(vec![second])];
            let name = ServerName::try_from(name.to_owned()).unwrap();
            let now = UnixTime::since_unix_epoch(Duration::from_secs(at));
            let shown = verifier.verify_server_cert(&end_entity, &intermediates, &name, &[], now);
            (shown.is_ok(), asked.load(Ordering::Relaxed))
        };
        let one = verifier();
        assert_eq!(show(&one, 1, 2, "a.test", 9), (true, 1));
        assert_eq!(show(&one, 1, 2, "a.test", 9), (true, 1));
        assert_eq!(show(&one, 1, 3, "a.test", 9), (true, 2));
        assert_eq!(show(&one, 1, 3, "b.test", 9), (true, 3));
        assert_eq!(show(&one, 4, 3, "b.test", 9), (true, 4));
        assert_eq!(show(&one, 4, 3, "b.test", 10), (true, 5));
        // A clock that is set back is not believed.
        assert_eq!(show(&one, 4, 3, "b.test", 9), (true, 6));
        // What is refused is asked about each time, and what was accepted stays so.
        assert_eq!(show(&one, 0, 3, "b.test", 9), (false, 7));
        assert_eq!(show(&one, 0, 3, "b.test", 9), (false, 8));
        assert_eq!(show(&one, 4, 3, "b.test", 9), (true, 8));
        assert_eq!(show(&verifier(), 4, 3, "b.test", 9), (true, 9));
    }
}
