//! RFC 7301: Application-Layer Protocol Negotiation.

use super::*;

fn offering(protocols: &[&str]) -> Vec<Vec<u8>> {
    protocols
        .iter()
        .map(|name| name.as_bytes().to_vec())
        .collect()
}

fn negotiate(client: &[&str], server: &[&str]) -> Pair {
    let certificates = certificates();
    let options = ClientTlsOptions {
        alpn: offering(client),
        ..trusting(&certificates.authority)
    };
    let server = ServerTlsOptions {
        alpn: offering(server),
        ..ServerTlsOptions::default()
    };
    let mut pair = Pair::with(&options, &server, &certificates);
    pair.exchange(usize::MAX);
    pair
}

#[test]
fn section_3_2_the_servers_preference_decides() {
    let pair = negotiate(&["http/1.1", "h2"], &["h2", "http/1.1"]);
    let negotiated = pair.client.negotiated().unwrap();
    assert_eq!(negotiated.alpn.unwrap().as_bytes(), b"h2");
    assert_eq!(negotiated.require_alpn("h2"), Ok(()));
    assert_eq!(pair.server.negotiated(), Some(negotiated));
}

#[test]
fn section_3_2_no_common_protocol_is_an_alert_that_both_sides_count_as_alpn() {
    let pair = negotiate(&["dot"], &["h2"]);
    for progress in [pair.client_progress, pair.server_progress] {
        let failure = progress.unwrap_err();
        assert!(matches!(failure, TlsFailure::Alpn(_)), "{failure}");
    }
}

#[test]
fn section_3_1_server_without_alpn_agrees_on_nothing() {
    let pair = negotiate(&["h2"], &[]);
    let negotiated = pair.client.negotiated().unwrap();
    assert_eq!(negotiated.alpn, None);
    let failure = negotiated.require_alpn("h2").unwrap_err();
    assert_eq!(
        failure.to_string(),
        "ALPN: the peer agreed on no protocol, `h2` is needed"
    );
}

#[test]
fn section_3_1_client_without_alpn_is_served_all_the_same() {
    let pair = negotiate(&[], &["dot"]);
    assert_eq!(pair.client.negotiated().unwrap().alpn, None);
}

#[test]
fn protocol_agreed_on_may_be_the_wrong_one() {
    let pair = negotiate(&["h2", "dot"], &["dot"]);
    let failure = pair.client.negotiated().unwrap().require_alpn("h2");
    let words = failure.unwrap_err().to_string();
    assert_eq!(words, "ALPN: `dot` was agreed on, not `h2`");
}
