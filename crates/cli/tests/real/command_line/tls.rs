//! What testers choose of TLS, in whole runs.

use std::io::{BufRead, BufReader};
use std::process::{ChildStdout, Command, Stdio};

use testing::folder::Folder;
use testing::program::{Running, execute};

use crate::process::{Responder, measured, throng};

/// A responder with the certificate that `openssl` has made, and its address.
fn certified(folder: &Folder, script: &str) -> (Responder, String, String) {
    let (certificate, key) = (folder.path("own.pem"), folder.path("own-key.pem"));
    let script = folder.write(
        "make.sh",
        format!("set -e\nCERTIFICATE={certificate} KEY={key}\n{script}\n"),
    );
    execute(&format!("sh {script}")).succeeded();
    let flags = format!("--tls-cert {certificate} --tls-key {key}");
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
fn a_servers_own_certificate_needs_no_names() {
    let make = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 \
                -subj /CN=dns.test -keyout $KEY -out $CERTIFICATE";
    for (name, more) in [("ca", ""), ("no-ca", "-addext basicConstraints=CA:FALSE")] {
        let folder = |of: &str| Folder::new(&format!("no-names-{name}-{of}"));
        let (own, others) = (folder("own"), folder("others"));
        let (responder, certificate, names) = certified(&own, &format!("{make} {more}"));
        let (_, other, _) = certified(&others, make);
        for (transport, address) in &responder.addresses {
            let run = format!("run --quiet -t {transport} --server {address} --names {names}");
            throng(&format!("{run} --queries 20 --tls-ca {certificate}")).succeeded();
            // Another certificate of the same subject.
            throng(&format!("{run} --tls-ca {other}")).refused_with("certificate", "--tls-ca");
        }
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
    let own = format!("--tls-cert {certificate} --tls-key {key}");
    throng(&format!("responder --listen dot:127.0.0.1:0 {own}"))
        .refused_with("X.509 version 1", "");
}

/// `openssl s_server`, which shows any certificate; killed when dropped.
struct Server {
    _child: Running,
    _stdout: BufReader<ChildStdout>,
    address: String,
}

impl Server {
    fn start(certificate: &str, key: &str) -> Server {
        let child = Command::new("openssl")
            .args(["s_server", "-accept", "127.0.0.1:0"])
            .args(["-cert", certificate, "-key", key])
            // At the end of its input it ends.
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let mut child = Running(child.unwrap());
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        while !line.starts_with("ACCEPT ") {
            line.clear();
            assert!(stdout.read_line(&mut line).unwrap() > 0);
        }
        Server {
            _child: child,
            _stdout: stdout,
            address: line["ACCEPT ".len()..].trim().to_owned(),
        }
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
fn a_server_whose_key_is_not_pinned_is_refused_before_the_run() {
    let folder = Folder::new("other-pin");
    let names = folder.write("names.txt", "a.example A\n");
    let responder = Responder::start("dot:127.0.0.1:0", "");
    let address = responder.address();
    let pin = "FHkyLhvI0n70E47cJlRTamTrnYVcsYdjUGbr79CfAVI=";
    let run = format!("run -t dot --server {address} --names {names}");
    throng(&format!("{run} --tls-pin {pin}"))
        .refused_with("the peer is not the one pinned", "--tls-pin");
    throng(&format!("{run} --tls-insecure --tls-alpn h2")).refused_with("ALPN: ", "--tls-alpn");
}
