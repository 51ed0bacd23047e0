//! TLS of both sides against OpenSSL: `openssl s_server` and `openssl s_client`.

use testing::wait;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use proto::tls::rustls::pki_types::ServerName;
use proto::tls::rustls::{ClientConfig, ServerConfig};
use proto::tls::{
    CipherSuite, ClientSession, ClientTls, ClientTlsOptions, EarlyData, Group, HandshakeKind,
    Roots, ServerTls, ServerTlsOptions, Tickets, TlsVersions, client_config, server_config_with,
};
use testing::folder::Folder;
use testing::program::Running;

/// Longer than anything here takes on a busy machine.
const WAIT: Duration = Duration::from_secs(60);

/// Certificates for `localhost`, one with an ECDSA and one with an RSA key, in a folder.
struct Certificates {
    folder: Folder,
}

impl Certificates {
    fn new(label: &str) -> Certificates {
        let folder = Folder::new(&format!("openssl-{label}"));
        for (name, key) in [
            ("ec", "ec -pkeyopt ec_paramgen_curve:P-256"),
            ("rsa", "rsa:2048"),
        ] {
            let extensions = "-addext subjectAltName=DNS:localhost -addext \
                              basicConstraints=critical,CA:false";
            let flags = format!(
                "req -x509 -newkey {key} -nodes -days 2 -subj /CN=localhost {extensions} -keyout \
                 {name}-key.pem -out {name}.pem"
            );
            let made = openssl(&flags)
                .current_dir(folder.folder())
                .output()
                .unwrap();
            assert!(made.status.success(), "{made:?}");
        }
        Certificates { folder }
    }

    fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.folder.path(name)).unwrap()
    }

    /// Both certificates, as authorities.
    fn roots(&self) -> Roots {
        Roots::Pem([self.read("ec.pem"), self.read("rsa.pem")].concat())
    }

    /// A configuration of a server with the ECDSA certificate.
    fn server(&self, options: &ServerTlsOptions) -> Arc<ServerConfig> {
        let (chain, key) = (self.read("ec.pem"), self.read("ec-key.pem"));
        server_config_with(&chain, &key, options).unwrap()
    }
}

fn openssl(flags: &str) -> Command {
    let mut command = Command::new("openssl");
    command.args(flags.split_whitespace());
    command
}

/// `openssl s_server` with both certificates; killed when dropped.
struct Server {
    _child: Running,
    address: SocketAddr,
    /// Open, or it would end.
    _stdin: ChildStdin,
    printed: Arc<Mutex<String>>,
    _reader: JoinHandle<()>,
}

impl Server {
    fn start(certificates: &Certificates, flags: &str) -> Server {
        let flags = format!(
            "s_server -accept 127.0.0.1:0 -cert ec.pem -key ec-key.pem -dcert rsa.pem -dkey \
             rsa-key.pem {flags}"
        );
        let mut command = openssl(&flags);
        command.current_dir(certificates.folder.folder());
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = Running(command.stderr(Stdio::null()).spawn().unwrap());
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let address = loop {
            let mut line = String::new();
            assert_ne!(stdout.read_line(&mut line).unwrap(), 0, "s_server {flags}");
            if let Some(address) = line.strip_prefix("ACCEPT ") {
                break address.trim().parse().unwrap();
            }
        };
        let printed = Arc::new(Mutex::new(String::new()));
        let sink = printed.clone();
        let reader = thread::spawn(move || {
            let mut octets = [0; 4096];
            while let Ok(count @ 1..) = stdout.read(&mut octets) {
                let text = String::from_utf8_lossy(&octets[..count]).into_owned();
                sink.lock().unwrap().push_str(&text);
            }
        });
        Server {
            _stdin: child.stdin.take().unwrap(),
            _child: child,
            address,
            printed,
            _reader: reader,
        }
    }

    fn printed(&self) -> String {
        self.printed.lock().unwrap().clone()
    }
}

/// A client of ours on a socket.
struct Client {
    stream: TcpStream,
    tls: ClientTls,
    received: Vec<u8>,
}

impl Client {
    fn connect(
        address: SocketAddr,
        config: &Arc<ClientConfig>,
        memory: ClientSession,
        early: &[u8],
    ) -> Client {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(WAIT)).unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let mut tls = ClientTls::remembering(config.clone(), name, memory, true).unwrap();
        tls.write(early);
        let mut client = Client {
            stream,
            tls,
            received: Vec::new(),
        };
        client.until(|client| !client.tls.is_handshaking());
        client
    }

    /// Moves octets until something is so.
    fn until(&mut self, is_so: impl Fn(&Client) -> bool) {
        let mut octets = [0; 4096];
        loop {
            let mut transmit = Vec::new();
            self.tls.poll_transmit(&mut transmit);
            self.stream.write_all(&transmit).unwrap();
            if is_so(self) {
                return;
            }
            let count = self.stream.read(&mut octets).unwrap();
            assert_ne!(count, 0, "the server is gone");
            self.tls
                .handle_bytes(&octets[..count], &mut self.received)
                .unwrap();
        }
    }

    /// Asks a server that sends each line back reversed.
    fn check_echo(&mut self) {
        self.received.clear();
        self.tls.write(b"stressed\n");
        self.until(|client| client.received.ends_with(b"\n"));
        assert_eq!(self.received, b"desserts\n");
    }

    fn close(mut self) -> ClientSession {
        let memory = self.tls.take_memory();
        self.tls.close();
        self.until(|_| true);
        memory
    }
}

fn options(certificates: &Certificates) -> ClientTlsOptions {
    ClientTlsOptions {
        roots: certificates.roots(),
        resumption: true,
        ..ClientTlsOptions::default()
    }
}

#[test]
fn every_cipher_suite_and_group_is_negotiated_with_an_openssl_server() {
    let certificates = Certificates::new("suites");
    let server = Server::start(&certificates, "-rev");
    let classic = [Group::X25519, Group::Secp256r1, Group::Secp384r1];
    for suite in CipherSuite::all() {
        for group in classic {
            let mut groups = vec![group];
            if !suite.is_tls13() && group != Group::Secp256r1 {
                // The curve of the certificate (RFC 8422, section 4).
                groups.push(Group::Secp256r1);
            }
            let config = client_config(&ClientTlsOptions {
                cipher_suites: vec![suite],
                groups,
                ..options(&certificates)
            });
            let memory = ClientSession::default();
            let mut client = Client::connect(server.address, &config.unwrap(), memory, b"");
            let negotiated = client.tls.negotiated().unwrap();
            assert_eq!(negotiated.cipher_suite, suite.name());
            assert_eq!(negotiated.key_exchange_group, group.name(), "{suite}");
            client.check_echo();
            client.close();
        }
    }
}

#[test]
fn sessions_are_resumed_with_an_openssl_server() {
    let certificates = Certificates::new("resumption");
    let server = Server::start(&certificates, "-rev");
    for versions in [TlsVersions::Tls12, TlsVersions::Tls13] {
        let config = client_config(&ClientTlsOptions {
            versions,
            ..options(&certificates)
        })
        .unwrap();
        let mut memory = ClientSession::default();
        let mut octets = Vec::new();
        for kind in [
            HandshakeKind::Full,
            HandshakeKind::Resumed,
            HandshakeKind::Resumed,
        ] {
            let mut client = Client::connect(server.address, &config, memory, b"");
            client.check_echo();
            let handshake = client.tls.handshake().unwrap();
            assert_eq!(handshake.kind, kind, "{versions:?}");
            octets.push(handshake.octets_received);
            memory = client.close();
            assert!(memory.has_ticket());
        }
        assert!(octets[1] < octets[0] / 2, "{octets:?}");
        assert_eq!(octets[1], octets[2]);
    }
}

#[test]
fn hello_retry_request_of_an_openssl_server_is_followed() {
    let certificates = Certificates::new("retry");
    let server = Server::start(&certificates, "-rev -groups P-384");
    let config = client_config(&options(&certificates)).unwrap();
    let mut client = Client::connect(server.address, &config, ClientSession::default(), b"");
    let kind = client.tls.handshake().unwrap().kind;
    assert_eq!(kind, HandshakeKind::FullWithHelloRetryRequest);
    client.check_echo();
}

#[test]
fn early_data_is_read_once_by_an_openssl_server_that_takes_it_and_by_one_that_does_not() {
    let certificates = Certificates::new("early");
    let config = client_config(&ClientTlsOptions {
        early_data: true,
        ..options(&certificates)
    })
    .unwrap();
    // Two servers that know nothing of each other's sessions.
    let flags = "-early_data -max_early_data 4096";
    let servers = [
        Server::start(&certificates, flags),
        Server::start(&certificates, flags),
    ];
    for (at, expected) in [(0, EarlyData::Accepted), (1, EarlyData::Rejected)] {
        let mut first = Client::connect(servers[0].address, &config, ClientSession::default(), b"");
        // Tickets come after the handshake and before anything else.
        first.tls.write(b"first\n");
        first.until(|client| client.tls.has_ticket());
        let memory = first.close();
        let text = format!("early query {at}\n");
        let mut client = Client::connect(servers[at].address, &config, memory, text.as_bytes());
        assert_eq!(client.tls.early_data(), expected);
        client.tls.write(b"late query\n");
        client.until(|_| true);
        let printed = || servers[at].printed();
        wait::until("what openssl prints", || printed().contains("late query"));
        assert_eq!(printed().matches(text.trim()).count(), 1, "{}", printed());
        let (early, late) = (printed().find("early query"), printed().find("late query"));
        assert!(early < late, "{}", printed());
    }
}

/// Starts a server of ours that reads a line from each of `clients` clients, answers and closes;
/// returns its address, and the thread that yields the lines.
fn serve(config: Arc<ServerConfig>, clients: usize) -> (SocketAddr, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serving = thread::spawn(move || {
        let mut lines = Vec::new();
        for _ in 0..clients {
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_read_timeout(Some(WAIT)).unwrap();
            let mut tls = ServerTls::new(config.clone()).unwrap();
            let (mut line, mut octets) = (Vec::new(), [0; 4096]);
            while !line.ends_with(b"\n") || tls.is_handshaking() {
                let count = stream.read(&mut octets).unwrap();
                assert_ne!(count, 0, "the client is gone");
                tls.handle_bytes(&octets[..count], &mut line).unwrap();
                send(&mut tls, &mut stream);
            }
            tls.write(b"answer\n");
            tls.close();
            send(&mut tls, &mut stream);
            lines.push(String::from_utf8(line).unwrap());
        }
        lines
    });
    (address, serving)
}

fn send(tls: &mut ServerTls, stream: &mut TcpStream) {
    let mut transmit = Vec::new();
    tls.poll_transmit(&mut transmit);
    stream.write_all(&transmit).unwrap();
}

/// What `openssl s_client` prints that says a line and waits for the end.
fn s_client(certificates: &Certificates, address: SocketAddr, flags: &str, line: &str) -> String {
    let flags = format!("s_client -connect {address} -CAfile ec.pem -ign_eof {flags}");
    let mut command = openssl(&flags);
    command.current_dir(certificates.folder.folder());
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(line.as_bytes()).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn an_openssl_client_negotiates_every_cipher_suite_and_group() {
    let certificates = Certificates::new("client-suites");
    let tls13 = ["TLS_AES_128_GCM_SHA256", "TLS_CHACHA20_POLY1305_SHA256"];
    let tls12 = [
        "ECDHE-ECDSA-AES256-GCM-SHA384",
        "ECDHE-ECDSA-CHACHA20-POLY1305",
    ];
    let config = certificates.server(&ServerTlsOptions {
        alpn: vec![b"dot".to_vec()],
        ..ServerTlsOptions::default()
    });
    let groups = ["X25519", "P-256", "P-384"];
    let (address, serving) = serve(config, 4 * groups.len());
    for group in groups {
        let temporary_key = match group {
            "X25519" => "X25519",
            "P-256" => "ECDH, prime256v1",
            _ => "ECDH, secp384r1",
        };
        // In TLS 1.2 the list is that of the curves of certificates, too (RFC 8422, section 4).
        let with_p256 = match group {
            "P-256" => group.to_owned(),
            _ => format!("{group}:P-256"),
        };
        for (flag, suites, groups) in [
            ("-tls1_3 -ciphersuites", tls13, group),
            ("-tls1_2 -cipher", tls12, &with_p256),
        ] {
            for suite in suites {
                let flags = format!("{flag} {suite} -groups {groups} -alpn dot");
                let printed = s_client(&certificates, address, &flags, "query\n");
                for part in [
                    format!("Cipher is {suite}"),
                    "ALPN protocol: dot".to_owned(),
                    "Verify return code: 0 (ok)".to_owned(),
                    "answer".to_owned(),
                    format!("Server Temp Key: {temporary_key}"),
                ] {
                    assert!(printed.contains(&part), "{flags}: no `{part}`\n{printed}");
                }
            }
        }
    }
    assert!(serving.join().unwrap().iter().all(|line| line == "query\n"));
}

#[test]
fn an_openssl_client_resumes_and_sends_early_data() {
    let certificates = Certificates::new("client-early");
    certificates.folder.write("early.txt", "early ");
    let config = certificates.server(&ServerTlsOptions {
        tickets: Tickets::Stored {
            count: 2,
            sessions_max: 100,
        },
        early_data_octets_max: 1 << 20,
        ..ServerTlsOptions::default()
    });
    let (address, serving) = serve(config, 3);
    let first = s_client(
        &certificates,
        address,
        "-tls1_3 -sess_out session.pem",
        "one\n",
    );
    assert!(first.contains("New, TLSv1.3"), "{first}");
    let flags = "-tls1_3 -sess_in session.pem -early_data early.txt";
    let second = s_client(&certificates, address, flags, "two\n");
    assert!(second.contains("Reused, TLSv1.3"), "{second}");
    assert!(second.contains("Early data was accepted"), "{second}");
    // The same ticket again: no early data twice (RFC 8446, section 8.1).
    let third = s_client(&certificates, address, flags, "three\n");
    assert!(third.contains("Early data was rejected"), "{third}");
    let lines = serving.join().unwrap();
    assert_eq!(lines, ["one\n", "early two\n", "three\n"]);
}
