//! What the record says about how queries were carried: HTTP and TLS.

use engine::WorkerOutcome;
use measure::scenario::{HttpRequest, TlsFacts, TlsSettings};
use proto::doh::{DohRequest, is_harmless};

use super::TlsRequest;

/// Fields that every request has by RFC 8484, section 4.1.
const FIELDS_OF_DOH: [&str; 3] = ["accept", "content-type", "content-length"];

/// The requests of DoH.
pub(super) fn http(request: &DohRequest) -> HttpRequest {
    let further = request.regular_fields().iter();
    let further = further.filter(|field| !FIELDS_OF_DOH.contains(&&*field.name));
    HttpRequest {
        method: request.method(),
        scheme: request.scheme(),
        authority: request.authority().to_owned(),
        // A query component may have a key.
        path: request
            .path()
            .split('?')
            .next()
            .unwrap_or_default()
            .to_owned(),
        headers: further
            .map(|field| match is_harmless(&field.name) {
                true => format!("{}: {}", field.name, field.value),
                false => format!("{}: (not recorded)", field.name),
            })
            .collect(),
    }
}

/// TLS as requested and negotiated first.
pub(super) fn tls<'a>(
    request: &TlsRequest,
    workers: impl Iterator<Item = &'a WorkerOutcome>,
) -> TlsFacts {
    let summaries = workers.map(|worker| &worker.summary);
    let negotiated = summaries.filter_map(|it| it.tls.negotiated).next();
    // A resumed session of TLS 1.2 exchanges no keys.
    let group = negotiated.map(|tls| tls.key_exchange_group);
    let group = group.filter(|name| *name != "none");
    let asked = &request.asked;
    TlsFacts {
        verified: request.verified,
        name: Some(request.name.clone()),
        settings: TlsSettings {
            versions: asked.versions.clone(),
            cipher_suites: asked.cipher_suites.clone(),
            groups: asked.groups.clone(),
            alpn: asked.alpn.clone(),
            sni: asked.sni.clone(),
            resume_share: asked.resume.share(),
            early_data: asked.early_data,
            client_certificate: asked.client_certificate,
            spki_pins: asked.pins.len() as u64,
            key_log: asked.key_log,
            stock_records: asked.stock_records,
        },
        version: negotiated.map(|tls| tls.version.to_owned()),
        cipher_suite: negotiated.map(|tls| tls.cipher_suite.to_owned()),
        group: group.map(str::to_owned),
        alpn: negotiated.and_then(|tls| tls.alpn.map(|name| name.to_string())),
    }
}
