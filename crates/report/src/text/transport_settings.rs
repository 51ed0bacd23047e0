//! What of the scenario says how queries were carried: HTTP, TLS, connections. Each is empty when
//! it was the default.

use std::time::Duration;

use measure::notation::{chosen, counted, latency, percent};
use measure::{HttpMethod, HttpScheme, ScenarioRecord, TlsFacts};

/// Method and URI of the requests.
pub(super) fn http(scenario: &ScenarioRecord) -> String {
    let Some(http) = &scenario.http else {
        return String::new();
    };
    let method = match http.method {
        HttpMethod::Get => "GET",
        HttpMethod::Post => "POST",
    };
    let scheme = match http.scheme {
        HttpScheme::Https => "https",
        HttpScheme::Http => "http",
    };
    let mut words = vec![format!(
        "{method} {scheme}://{}{}",
        http.authority, http.path
    )];
    words.extend(http.headers.iter().cloned());
    words.join("; ")
}

/// What TLS negotiated, and what was asked for beyond the defaults.
pub(super) fn tls(scenario: &ScenarioRecord) -> String {
    let Some(tls) = &scenario.tls else {
        return String::new();
    };
    let negotiated = [&tls.version, &tls.cipher_suite, &tls.group];
    let mut words: Vec<String> = Vec::new();
    let parts: Vec<&str> = negotiated
        .into_iter()
        .flatten()
        .map(String::as_str)
        .collect();
    if !parts.is_empty() {
        words.push(parts.join(" "));
    }
    words.extend(tls.alpn.as_ref().map(|name| format!("ALPN {name}")));
    words.push(trust(tls));
    let settings = &tls.settings;
    if settings.client_certificate {
        words.push("client certificate".into());
    }
    if settings.resume_share >= 1.0 {
        words.push("sessions resumed".into());
    } else if settings.resume_share > 0.0 {
        words.push(format!(
            "{} of the sessions resumed",
            percent(settings.resume_share)
        ));
    }
    if settings.early_data {
        words.push("early data".into());
    }
    if settings.key_log {
        words.push("secrets written to a file".into());
    }
    if settings.stock_records {
        words.push("stock records".into());
    }
    words.join("; ")
}

/// What the target had to prove.
fn trust(tls: &TlsFacts) -> String {
    let certificate = match tls.verified {
        true => "certificate verified",
        false => "certificate not verified",
    };
    match tls.settings.spki_pins {
        0 => certificate.into(),
        pins => format!("{certificate}, {}", counted(pins, "key pin")),
    }
}

/// How long connections live and what they carry.
pub(super) fn connections(scenario: &ScenarioRecord) -> String {
    let policy = &scenario.connections;
    let time = |time: Duration| latency(time.as_nanos() as f64);
    let mut words = Vec::new();
    match policy.queries_max {
        None => {}
        Some(0) => words.push("opened and closed without a query".into()),
        Some(queries) => words.push(format!("closed after {}", counted(queries.into(), "query"))),
    }
    words.extend(
        policy
            .duration
            .map(|age| format!("closed after {}", time(age))),
    );
    words.extend(
        policy
            .idle_timeout
            .map(|idle| format!("closed when idle for {}", time(idle))),
    );
    if !policy.reconnect_delay.is_zero() {
        words.push(format!("reopened after {}", time(policy.reconnect_delay)));
    }
    words.extend(
        policy
            .in_flight_max
            .map(|most| format!("{} at once", counted(most.into(), "query"))),
    );
    if policy.tcp_fast_open {
        words.push("TCP Fast Open".into());
    }
    if policy.stop_sending_allowed {
        words.push("STOP_SENDING tolerated".into());
    }
    words.extend(
        policy
            .rate_max
            .map(|rate| format!("at most {} opened a second", chosen(rate))),
    );
    words.join("; ")
}
