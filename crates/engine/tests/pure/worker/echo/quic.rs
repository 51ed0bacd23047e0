//! The connections over QUIC: DoQ, or DoH over HTTP/3.

use driver::sim::SimDriver;
use driver::{Driver, Outgoing, OutgoingDatagram, Received, SocketId};
use proto::doq::MessageIds;
use proto::quic::{
    Admission, Clock, QuicServer, QuicServerOptions, ServerEvent, ServerProtocol, ServerTransmit,
};
use proto::tls::rustls::ServerConfig;
use proto::{Instant, Transport};

use super::response_to;

/// All connections of the one socket.
pub(super) struct EchoQuic {
    server: QuicServer,
    socket: Option<SocketId>,
    pub(super) queries: u64,
}

impl EchoQuic {
    pub(super) fn new(transport: Transport, tls: &ServerConfig, driver: &SimDriver) -> EchoQuic {
        let protocol = match transport {
            Transport::Doh3 => ServerProtocol::Http3 {
                path: "/dns-query".into(),
            },
            _ => ServerProtocol::Doq,
        };
        let options = QuicServerOptions {
            protocol,
            streams_max: 100,
            streams_are_final: false,
            message_ids: MessageIds::Zero,
            stops_streams: false,
            unsent_octets_max: 1 << 20,
            unvalidated_max: usize::MAX,
            handshake_timeout: None,
            token_key: [5; 32],
            idle_timeout: None,
            seed: [1; 32],
            clock: Clock::new(driver.epoch()),
        };
        EchoQuic {
            server: QuicServer::new(tls, options).unwrap(),
            socket: None,
            queries: 0,
        }
    }

    pub(super) fn handle_datagrams(&mut self, received: &Received) {
        self.socket = Some(received.socket);
        for datagram in &received.datagrams {
            let octets = received.datagram(*datagram);
            let (at, from) = (received.at, datagram.from);
            self.server
                .handle_datagram(at, from, octets, Admission::Accept);
        }
    }

    /// Answers, sends what is to be sent, and says when the next turn is due.
    pub(super) fn finish(&mut self, driver: &mut SimDriver) -> Instant {
        let now = driver.now();
        self.server.handle_timeout(now);
        let mut responses = Vec::new();
        while let Some(event) = self.server.poll_event() {
            if let ServerEvent::Query {
                key,
                stream,
                message,
                ..
            } = event
            {
                responses.push((key, stream, response_to(message)));
            }
        }
        self.queries += responses.len() as u64;
        for (key, stream, response) in &responses {
            assert!(self.server.respond(*key, *stream, response, None));
        }
        let mut outgoing = Outgoing::default();
        while let Some(ServerTransmit { to, burst }) =
            self.server.poll_transmit(now, &mut outgoing.octets, 1)
        {
            let length = burst.octets as u32;
            let to = Some(to);
            outgoing.datagrams.push(OutgoingDatagram { length, to });
        }
        if let Some(socket) = self.socket {
            driver.send_datagrams(socket, &outgoing);
        }
        self.server.timeout().unwrap_or(Instant::FAR_FUTURE)
    }
}
