//! What testers choose of TLS, in whole runs.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};

use testing::folder::Folder;
use testing::program::execute;

use crate::process::{Responder, THRONG, measured, throng};

#[test]
fn versions_suites_and_groups_are_what_is_negotiated() {
    for (flags, version, suite) in [
        (
            "--tls-version 1.2 --tls-ciphers TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
            "TLS 1.2",
            "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
        ),
        (
            "--tls-version 1.3 --tls-ciphers TLS_CHACHA20_POLY1305_SHA256,TLS_AES_128_GCM_SHA256",
            "TLS 1.3",
            "TLS_CHACHA20_POLY1305_SHA256",
        ),
        (
            "--tls-groups X25519MLKEM768,x25519 --tls-ciphers TLS_AES_128_GCM_SHA256",
            "TLS 1.3",
            "TLS_AES_128_GCM_SHA256",
        ),
    ] {
        let record = measured(&format!("-t dot --queries 50 {flags}"));
        assert_eq!(record.total.counts.responses, 50, "{flags}");
        let tls = record.scenario.tls.unwrap();
        assert_eq!(tls.version.as_deref(), Some(version), "{flags}");
        assert_eq!(tls.cipher_suite.as_deref(), Some(suite), "{flags}");
    }
}

#[test]
fn queries_at_a_rate_travel_as_early_data_once_their_clients_have_tickets() {
    for transport in ["dot", "doh2", "doq", "doh3"] {
        // Few clients that ask seldom: each query has a connection of its own.
        let flags = "--clients 4 --rate 40 --duration 3s --connection-idle-timeout 10ms";
        let record = measured(&format!(
            "-t {transport} {flags} --tls-resume always --tls-early-data"
        ));
        assert_eq!(record.total.counts.responses, 120, "{transport}");
        let connections = record.connections();
        let early = connections.early_data;
        assert!(early.accepted > 0, "{transport}: {connections:?}");
        assert_eq!(early.accepted, early.tried, "{transport}");
        // Whatever keeps this machine busy: who resumes with a query waiting sends it early.
        let resumed = connections.handshakes.resumed;
        assert_eq!(early.tried, resumed, "{transport}: {connections:?}");
    }
}

#[test]
fn stock_records_are_asked_for_and_said_by_the_record() {
    for transport in ["dot", "doh2"] {
        for (flag, is_stock) in [("", false), ("--tls-stock", true)] {
            for version in ["1.2", "1.3"] {
                let flags = format!("-t {transport} --queries 500 --tls-version {version} {flag}");
                let record = measured(&flags);
                assert_eq!(record.total.counts.responses, 500, "{flags}");
                let tls = record.scenario.tls.unwrap();
                assert_eq!(tls.settings.stock_records, is_stock, "{flags}");
            }
        }
    }
    throng("run -t doq --queries 1 --tls-stock").refused_with("--tls-stock has no effect", "dot");
}

/// A responder with the certificate that `openssl` has made, and its address.
fn certified(folder: &Folder, script: &str) -> (Responder, String, String) {
    let (certificate, key) = (folder.path("own.pem"), folder.path("own-key.pem"));
    let script = folder.write(
        "make.sh",
        format!("set -e\nCERTIFICATE={certificate} KEY={key}\n{script}\n"),
    );
    execute(&format!("sh {script}")).succeeded();
    let flags = format!("--tls-certificate {certificate} --tls-key {key}");
    let responder = Responder::start("dot:127.0.0.1:0,doq:127.0.0.1:0", &flags);
    let names = folder.write("names.txt", "a.example A\n");
    (responder, certificate, names)
}

#[test]
fn a_servers_own_certificate_is_known_though_it_is_an_authoritys() {
    let folder = Folder::new("ca-true");
    let script = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 \
                  -subj /CN=dns.test -addext subjectAltName=DNS:dns.test -keyout $KEY \
                  -out $CERTIFICATE";
    let (responder, certificate, names) = certified(&folder, script);
    for (transport, address) in &responder.addresses {
        let run = format!(
            "run --quiet -t {transport} --server {address} --names {names} --queries 20 --tls-ca \
             {certificate}"
        );
        throng(&format!("{run} --tls-name dns.test")).succeeded();
        throng(&format!("{run} --tls-name other.test")).refused_with("other.test", "--tls-pin");
    }
}

#[test]
fn a_certificate_of_version_1_is_said_to_be_one() {
    let folder = Folder::new("version-1");
    let (certificate, key) = (folder.path("own.pem"), folder.path("own-key.pem"));
    let request = folder.path("request.pem");
    execute(&format!(
        "openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=dns.test -keyout \
         {key} -out {request}"
    ))
    .succeeded();
    // Without extensions it has version 1.
    execute(&format!(
        "openssl x509 -req -in {request} -signkey {key} -days 2 -out {certificate}"
    ))
    .succeeded();
    let names = folder.write("names.txt", "a.example A\n");
    let server = Server::start(&certificate, &key);
    let flags = format!("--names {names} --tls-ca {certificate}");
    throng(&format!("run -t dot --server {} {flags}", server.address))
        .refused_with("X.509 version 1", "--tls-pin");
    let own = format!("--tls-certificate {certificate} --tls-key {key}");
    throng(&format!("responder --listen dot:127.0.0.1:0 {own}"))
        .refused_with("X.509 version 1", "");
}

/// `openssl s_server`, which shows any certificate; killed when dropped.
struct Server {
    child: Child,
    _stdout: BufReader<ChildStdout>,
    address: String,
}

impl Server {
    fn start(certificate: &str, key: &str) -> Server {
        let mut child = Command::new("openssl")
            .args(["s_server", "-accept", "127.0.0.1:0"])
            .args(["-cert", certificate, "-key", key])
            // At the end of its input it ends.
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        while !line.starts_with("ACCEPT ") {
            line.clear();
            assert!(stdout.read_line(&mut line).unwrap() > 0);
        }
        Server {
            child,
            _stdout: stdout,
            address: line["ACCEPT ".len()..].trim().to_owned(),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_responder_can_be_pinned_by_what_openssl_says() {
    let folder = Folder::new("pinned");
    let names = folder.write("names.txt", "a.example A\n");
    let certificate = folder.path("certificate.pem");
    let flags = format!("--write-certificate {certificate}");
    let responder = Responder::start("dot:127.0.0.1:0", &flags);
    let script = folder.write(
        "pin.sh",
        format!(
            "openssl x509 -in {certificate} -pubkey -noout | openssl pkey -pubin -outform der \
             | openssl dgst -sha256 -binary | base64\n"
        ),
    );
    let pin = execute(&format!("sh {script}")).succeeded();
    let address = responder.address();
    let server = format!("-t dot --server {address} --names {names} --queries 20");
    let record = measured(&format!("{server} --tls-pin {}", pin.trim()));
    assert_eq!(record.total.counts.responses, 20);
    assert!(record.scenario.tls.unwrap().verified);
}

#[test]
fn a_server_that_needs_certificates_gets_one() {
    let folder = Folder::new("client-certificate");
    let names = folder.write("names.txt", "a.example A\n");
    let make = |name: &str, more: &str| {
        let (certificate, key) = (
            folder.path(&format!("{name}.pem")),
            folder.path(&format!("{name}-key.pem")),
        );
        let line = format!(
            "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj \
             /CN={name} {more} -keyout {key} -out {certificate}"
        );
        execute(&line).succeeded();
        (certificate, key)
    };
    let (authority, authority_key) = make("authority", "");
    let (certificate, key) = make(
        "client",
        &format!(
            "-CA {authority} -CAkey {authority_key} -addext basicConstraints=critical,CA:false \
             -addext extendedKeyUsage=clientAuth"
        ),
    );
    let flags = format!("--tls-client-ca {authority}");
    let responder = Responder::start("dot:127.0.0.1:0", &flags);
    let address = responder.address();
    let server = format!("-t dot --server {address} --names {names} --tls-insecure --queries 20");
    let record = measured(&format!(
        "{server} --tls-cert {certificate} --tls-key {key}"
    ));
    assert_eq!(record.total.counts.responses, 20);
    // TLS 1.2 refuses within the handshake, before a run begins.
    throng(&format!("run {server} --tls-version 1.2"))
        .refused_with("certificate_required", "--tls-cert");
}

#[test]
fn key_logs_have_a_line_for_each_secret_and_grow_by_runs() {
    let folder = Folder::new("key-log");
    let log = folder.path("keys.txt");
    let run = "-t dot --queries 20 --clients 2 --workers 1";
    measured(&format!("{run} --tls-keylog {log}"));
    let lines = |log: &str| {
        let text = std::fs::read_to_string(log).unwrap();
        for line in text.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            assert_eq!(words.len(), 3, "{line}");
            assert_eq!(words[1].len(), 64, "{line}");
        }
        let label = "CLIENT_TRAFFIC_SECRET_0 ";
        text.lines().filter(|line| line.starts_with(label)).count()
    };
    assert!(lines(&log) >= 2, "a connection for each client");
    let before = lines(&log);
    let line = format!("env SSLKEYLOGFILE={log} {THRONG} run --quiet {run}");
    execute(&line).succeeded();
    assert!(lines(&log) > before);
}
