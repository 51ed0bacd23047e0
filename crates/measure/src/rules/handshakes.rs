//! Handshakes of TLS or QUIC that were refused, by us or by the target.

use crate::counts::ConnectionFailures;
use crate::doctor::{Cure, Diagnosis, State};
use crate::limit::Limit;
use crate::notation::{count, counted};

use super::figures::list;
use super::{Figures, Finding, enough, unserved};

/// From this share of the queries on, what was lost for lack of a connection matters.
const LOST_MAX: f64 = 0.001;

/// Some failed, and that explains what was lost.
pub(super) fn decides(figures: &Figures<'_>) -> bool {
    refused(&figures.record.connections().failed).total() > 0 && are_cause(figures)
}

fn are_cause(figures: &Figures<'_>) -> bool {
    let counts = figures.counts;
    // Without a connection queries wait until they time out.
    let lost = counts.not_sent.timed_out_waiting + counts.not_sent.run_ended;
    2 * lost >= counts.lost() && enough::is_above(lost, counts.offered, LOST_MAX)
}

pub(super) fn found(figures: &Figures<'_>) -> Option<Finding> {
    let connections = figures.record.connections();
    let refused = refused(&connections.failed);
    if refused.total() == 0 {
        return None;
    }
    let causes = refused.by_cause(figures.record.scenario.transport);
    let causes = causes.into_iter().map(|(cause, number)| (number, cause));
    let mut seen = format!(
        "{} failed: {}",
        counted(refused.total(), "handshake"),
        list(causes.collect())
    );
    let completed = connections.handshakes.total();
    if completed > 0 {
        seen.push_str(&format!("; {} succeeded", count(completed)));
    }
    let matters = "clients without a connection send nothing; where some handshakes succeed and \
        others do not, the certificate or settings changed, or servers behind one address differ";
    let diagnosis = Diagnosis::new("handshakes", State::Problem, seen, matters);
    let mut cures = Vec::new();
    if refused.tls_certificate > 0 {
        cures.push(Cure::throng(
            "--tls-ca FILE  (with the new certificate too)",
        ));
    }
    if refused.tls_pin > 0 {
        cures.push(Cure::throng("--tls-pin PIN  (of the new key too)"));
    }
    let target = &figures.record.scenario.target;
    cures.push(Cure::shell(format!(
        "openssl s_client -connect {target} -showcerts </dev/null"
    )));
    let found = Finding::met(diagnosis.cures(cures)).beside();
    Some(
        found
            .limits(unserved::stage(figures), Limit::Server)
            .only_if(are_cause(figures)),
    )
}

/// The failures that one side decided on in the handshake.
fn refused(failed: &ConnectionFailures) -> ConnectionFailures {
    ConnectionFailures {
        tls_alert: failed.tls_alert.clone(),
        tls_certificate: failed.tls_certificate,
        tls_pin: failed.tls_pin,
        tls_alpn: failed.tls_alpn,
        tls_protocol: failed.tls_protocol,
        quic_version: failed.quic_version,
        quic_transport: failed.quic_transport.clone(),
        ..ConnectionFailures::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::situations::*;

    /// Three handshakes failed, and five succeeded.
    fn refusing() -> RunRecord {
        let mut record = in_time(10_000.0);
        record.scenario.transport = Transport::Dot.into();
        change_last(&mut record, |interval| {
            let connections = &mut interval.counts.connections;
            connections.handshakes.full = 5;
            connections.failed.tls_certificate = 2;
            connections.failed.tls_alert.record("handshake_failure");
        });
        record
    }

    #[test]
    fn handshakes_that_were_refused_are_told_by_their_causes() {
        let found = found(&Figures::of(&refusing())).expect("is found");
        for part in ["3 handshakes failed", "handshake_failure", "5 succeeded"] {
            assert!(found.evidence().contains(part), "{found:#?}");
        }
        assert_eq!(found.limit(), None);
        found.diagnosis.problem("", "--tls-ca FILE");
    }

    #[test]
    fn they_decide_where_most_of_what_is_missing_waited_for_a_connection() {
        let mut record = refusing();
        change_last(&mut record, |interval| {
            interval.counts.offered += 1_000;
            interval.counts.not_sent.timed_out_waiting += 1_000;
        });
        judged(&record, Limit::Server, "3 handshakes failed", "--tls-ca");
        lose(&mut record, 3_000);
        let found = found(&Figures::of(&record)).expect("is found");
        assert_eq!(found.limit(), None);
    }
}
