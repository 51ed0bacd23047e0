//! Client and server endpoints: datagrams of a stranger, and a real connection whose datagrams are
//! changed, lost, repeated and held back.

#![no_main]

use libfuzzer_sys::fuzz_target;
use proto::Instant;
use proto::doh::{DohRequest, Method};
use proto::doq::MessageIds;
use proto::exchange::ExchangeEnd;
use proto::quic::{
    Admission, ClientProtocol, Clock, ConnectionKey, QuicClient, QuicClientOptions, QuicEvent,
    QuicServer, QuicServerOptions, ServerEvent, ServerProtocol,
};
use proto::tls::rustls::{ClientConfig, ServerConfig};
use proto::tls::{
    ClientTlsOptions, ServerTlsOptions, client_config, server_config_with,
};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

static CLIENT: LazyLock<Arc<ClientConfig>> = LazyLock::new(|| {
    let options = ClientTlsOptions {
        verify: false,
        ..ClientTlsOptions::default()
    };
    client_config(&options).expect("the options go together")
});

static SERVER: LazyLock<Arc<ServerConfig>> = LazyLock::new(|| {
    let identity = rcgen::generate_simple_self_signed(["dns.example".to_owned()])
        .expect("the name is valid");
    let (certificate, key) = (identity.cert.pem(), identity.signing_key.serialize_pem());
    let options = ServerTlsOptions {
        quic: true,
        ..ServerTlsOptions::default()
    };
    server_config_with(certificate.as_bytes(), key.as_bytes(), &options)
        .expect("both belong together")
});

static CLOCK: LazyLock<Clock> = LazyLock::new(|| Clock::new(std::time::Instant::now()));

static REQUEST: LazyLock<Arc<DohRequest>> = LazyLock::new(|| {
    let request = DohRequest::new(Method::Post, "https://dns.example/dns-query", &[]);
    Arc::new(request.expect("the URI is valid"))
});

const QUERIES: u32 = 5;

struct Pair {
    client: QuicClient,
    server: QuicServer,
    key: ConnectionKey,
    now: Instant,
    from: SocketAddr,
    up: VecDeque<Vec<u8>>,
    down: VecDeque<Vec<u8>>,
    asked: u32,
    ended: Vec<u32>,
    is_lost: bool,
}

impl Pair {
    fn new(is_http3: bool) -> Pair {
        let (client, server) = match is_http3 {
            false => (ClientProtocol::Doq, ServerProtocol::Doq),
            true => {
                let path = "/dns-query".into();
                (ClientProtocol::Http3(REQUEST.clone()), ServerProtocol::Http3 { path })
            }
        };
        let mut client = QuicClient::new(QuicClientOptions {
            protocol: client,
            idle_timeout: Some(Duration::from_secs(5)),
            keep_alive: None,
            seed: [1; 32],
            clock: *CLOCK,
        });
        let options = QuicServerOptions {
            protocol: server,
            streams_max: 10,
            stops_streams: false,
            streams_are_final: false,
            message_ids: MessageIds::Zero,
            unsent_octets_max: 1 << 20,
            unvalidated_max: usize::MAX,
            handshake_timeout: None,
            token_key: [5; 32],
            idle_timeout: Some(Duration::from_secs(5)),
            seed: [2; 32],
            clock: *CLOCK,
        };
        let now = Instant::from_nanos(1);
        let key = client
            .connect(now, &CLIENT, "dns.example")
            .expect("the name is valid");
        Pair {
            client,
            server: QuicServer::new(&SERVER, options).expect("it is made for QUIC"),
            key,
            now,
            from: SocketAddr::from(([127, 0, 0, 1], 1_000)),
            up: VecDeque::new(),
            down: VecDeque::new(),
            asked: 0,
            ended: Vec::new(),
            is_lost: false,
        }
    }

    /// Everything that both sides can do without the network.
    fn turn(&mut self) {
        while let Some(event) = self.client.poll_event(self.key) {
            assert!(!self.is_lost, "the last event");
            match event {
                QuicEvent::Exchange { token, end } => {
                    assert!(!matches!(end, ExchangeEnd::Late), "nothing was abandoned");
                    assert!(!self.ended.contains(&token), "twice");
                    self.ended.push(token);
                }
                QuicEvent::Lost(_) => self.is_lost = true,
                _ => {}
            }
        }
        let query = b"\0\0\x01\0\0\x01\0\0\0\0\0\0\x01a\0\0\x01\0\x01";
        while self.asked < QUERIES
            && self
                .client
                .request(self.now, self.key, query, self.asked)
                .is_ok()
        {
            self.asked += 1;
        }
        let mut queries = Vec::new();
        while let Some(event) = self.server.poll_event() {
            if let ServerEvent::Query { key, stream, .. } = event {
                queries.push((key, stream));
            }
        }
        for (key, stream) in queries {
            self.server.respond(key, stream, &[0; 40], Some(1));
        }
        let mut octets = Vec::new();
        while let Some(burst) = self.client.poll_transmit(self.now, self.key, &mut octets, 4) {
            let datagrams = octets.chunks(burst.datagram_octets);
            self.up.extend(datagrams.map(<[u8]>::to_vec));
            octets.clear();
        }
        while let Some(transmit) = self.server.poll_transmit(self.now, &mut octets, 4) {
            let datagrams = octets.chunks(transmit.burst.datagram_octets);
            self.down.extend(datagrams.map(<[u8]>::to_vec));
            octets.clear();
        }
    }

    fn deliver(&mut self, to_server: bool, datagram: &[u8]) {
        match to_server {
            true => {
                let admission = Admission::Accept;
                self.server
                    .handle_datagram(self.now, self.from, datagram, admission);
            }
            false => {
                self.client.handle_datagram(self.now, self.key, datagram);
            }
        }
    }

    /// What happens to the next datagram, as three octets say.
    fn step(&mut self, [action, place, value]: [u8; 3]) {
        self.turn();
        let to_server = action & 1 == 0;
        let queue = match to_server {
            true => &mut self.up,
            false => &mut self.down,
        };
        let Some(mut datagram) = queue.pop_front() else {
            self.advance();
            return;
        };
        let at = usize::from(place) * 5 % datagram.len();
        match action >> 1 {
            0..=40 => {}
            41..=60 => return,
            61..=80 => queue.push_back(datagram.clone()),
            81..=90 => {
                queue.push_back(datagram);
                return;
            }
            91..=110 => datagram[at] ^= value,
            111..=120 => datagram.truncate(at),
            _ => datagram.extend(std::iter::repeat_n(value, usize::from(place))),
        }
        self.deliver(to_server, &datagram);
    }

    /// Moves to the next timer.
    fn advance(&mut self) {
        let client = self.client.timeout(self.key);
        let Some(due) = [client, self.server.timeout()].into_iter().flatten().min() else {
            return;
        };
        self.now = due.max(self.now);
        self.client.handle_timeout(self.now, self.key);
        self.server.handle_timeout(self.now);
    }
}

fuzz_target!(|input: &[u8]| {
    let Some((&kind, octets)) = input.split_first() else {
        return;
    };
    let mut pair = Pair::new(kind & 1 != 0);
    if kind & 2 != 0 {
        // A stranger's datagrams, each with its length in front.
        let mut rest = octets;
        while let Some((&length, after)) = rest.split_first() {
            let (datagram, after) = after.split_at(usize::from(length).min(after.len()));
            rest = after;
            for to_server in [true, false] {
                pair.deliver(to_server, datagram);
                let mut padded = datagram.to_vec();
                padded.resize(1_200, 0);
                pair.deliver(to_server, &padded);
            }
            pair.turn();
        }
    }
    for step in octets.chunks_exact(3).take(200) {
        pair.step([step[0], step[1], step[2]]);
    }
    // From here on the network is a good one: all is answered, or the connection is lost.
    for _ in 0..400 {
        pair.turn();
        if pair.is_lost || pair.ended.len() == QUERIES as usize {
            break;
        }
        if pair.up.is_empty() && pair.down.is_empty() {
            pair.advance();
        }
        while let Some(datagram) = pair.up.pop_front() {
            pair.deliver(true, &datagram);
        }
        while let Some(datagram) = pair.down.pop_front() {
            pair.deliver(false, &datagram);
        }
    }
    assert!(pair.is_lost || pair.ended.len() == QUERIES as usize, "it hangs");
});
