//! From records to queries: packets are put together, and responses find their queries.

use std::net::SocketAddr;

use etherparse::{TcpSlice, UdpSlice};
use proto::Transport;

use crate::fragments::Fragments;
use crate::link;
use crate::message::{self, Message};
use crate::network::{self, Carried};
use crate::observed::{Observed, Response};
use crate::packets::Packet;
use crate::pairing::{Key, Pairing, Seen};
use crate::skipped::{Skip, Skipped};
use crate::tcp::{Segment, StreamMessage, Streams};

const PROTOCOL_TCP: u8 = 6;
const PROTOCOL_UDP: u8 = 17;

/// Ports of DNS within TLS, HTTPS and QUIC.
const PORTS_ENCRYPTED: [u16; 2] = [853, 443];

/// Where records become queries.
pub(crate) struct Assembly {
    ports: Vec<u16>,
    pub(crate) pairing: Pairing,
    pub(crate) skipped: Skipped,
    /// The latest time seen, in nanoseconds since 1970.
    pub(crate) now_ns: u64,
    /// Whose buffer is used again.
    pub(crate) packet: Packet,
    fragments: Fragments,
    streams: Streams,
    messages: Vec<StreamMessage>,
}

/// Who talks to whom, for a message whose direction its header says.
struct Ends {
    source: SocketAddr,
    destination: SocketAddr,
    transport: Transport,
    connection: Option<u64>,
}

impl Assembly {
    pub(crate) fn new(ports: Vec<u16>, timeout_ns: u64) -> Self {
        Assembly {
            ports,
            pairing: Pairing::new(timeout_ns),
            skipped: Skipped::default(),
            now_ns: 0,
            packet: Packet::default(),
            fragments: Fragments::default(),
            streams: Streams::default(),
            messages: Vec::new(),
        }
    }

    /// Nothing more comes: what is not whole is skipped.
    pub(crate) fn finish(&mut self) {
        self.fragments.finish(&mut self.skipped);
        self.streams.finish(&mut self.skipped);
    }

    /// The time of a record, or of the one before; counts those without.
    pub(crate) fn at_ns(&mut self, at_ns: Option<u64>) -> u64 {
        match at_ns {
            Some(at_ns) => {
                self.now_ns = self.now_ns.max(at_ns);
                at_ns
            }
            None => {
                self.skipped.count(Skip::WithoutTime);
                self.now_ns
            }
        }
    }

    pub(crate) fn packet(&mut self, packet: &Packet) -> Result<(), Skip> {
        let at_ns = self.at_ns(packet.at_ns);
        let ip = link::strip(packet.link_type, &packet.data)?;
        let carried = network::unwrap(ip, at_ns, &mut self.fragments, &mut self.skipped)?;
        match carried {
            Some(carried) if carried.protocol == PROTOCOL_UDP => self.datagram(&carried, at_ns),
            Some(carried) if carried.protocol == PROTOCOL_TCP => self.segment(&carried, at_ns),
            Some(_) => Err(Skip::NotUdpNorTcp),
            None => Ok(()),
        }
    }

    fn datagram(&mut self, carried: &Carried<'_>, at_ns: u64) -> Result<(), Skip> {
        let udp = UdpSlice::from_slice_lax(&carried.payload);
        let udp = udp.map_err(|_| headers_cut(carried))?;
        let ends = Ends {
            source: (carried.source, udp.source_port()).into(),
            destination: (carried.destination, udp.destination_port()).into(),
            transport: Transport::Udp,
            connection: None,
        };
        self.check_ports(udp.source_port(), udp.destination_port())?;
        let message =
            message::read(udp.payload()).map_err(|reason| match carried.missing_octets {
                0 => reason,
                _ => Skip::CutBySnapshotLength,
            })?;
        self.message(message, &ends, at_ns)
    }

    fn segment(&mut self, carried: &Carried<'_>, at_ns: u64) -> Result<(), Skip> {
        let tcp = TcpSlice::from_slice(&carried.payload).map_err(|_| headers_cut(carried))?;
        let source: SocketAddr = (carried.source, tcp.source_port()).into();
        let destination: SocketAddr = (carried.destination, tcp.destination_port()).into();
        self.check_ports(source.port(), destination.port())?;
        // Between two ports of DNS, the first segment goes to the server unless it accepts.
        let is_to_server = match self.ports.contains(&source.port()) {
            true if self.ports.contains(&destination.port()) => {
                self.is_to_server(source, destination, tcp.syn() && tcp.ack())
            }
            is_from_server => !is_from_server,
        };
        let (client, server) = match is_to_server {
            true => (source, destination),
            false => (destination, source),
        };
        let segment = Segment {
            at_ns,
            client,
            server,
            is_from_client: is_to_server,
            sequence: tcp.sequence_number(),
            acknowledgment: tcp.ack().then(|| tcp.acknowledgment_number()),
            syn: tcp.syn(),
            fin: tcp.fin(),
            rst: tcp.rst(),
            payload: tcp.payload(),
            missing_octets: carried.missing_octets,
        };
        let mut messages = std::mem::take(&mut self.messages);
        self.streams
            .handle(&segment, &mut messages, &mut self.skipped);
        for stream_message in messages.drain(..) {
            let result = message::read(&stream_message.octets);
            // An acknowledgment can set free what the other side sent, so the header decides.
            let result = result.and_then(|message| {
                let (source, destination) = match message.is_response {
                    true => (server, client),
                    false => (client, server),
                };
                let ends = Ends {
                    source,
                    destination,
                    transport: Transport::Tcp,
                    connection: Some(stream_message.connection),
                };
                self.message(message, &ends, at_ns)
            });
            if let Err(reason) = result {
                self.skipped.count(reason);
            }
        }
        self.messages = messages;
        Ok(())
    }

    fn is_to_server(&self, source: SocketAddr, destination: SocketAddr, accepts: bool) -> bool {
        match self.streams.is_known(source, destination) {
            true => true,
            false => !accepts && !self.streams.is_known(destination, source),
        }
    }

    fn check_ports(&self, source: u16, destination: u16) -> Result<(), Skip> {
        let either = |ports: &[u16]| ports.contains(&source) || ports.contains(&destination);
        match either(&self.ports) {
            true => Ok(()),
            false if either(&PORTS_ENCRYPTED) => Err(Skip::Encrypted),
            false => Err(Skip::OtherPort),
        }
    }

    fn message(&mut self, message: Message, ends: &Ends, at_ns: u64) -> Result<(), Skip> {
        let (client, server) = match message.is_response {
            true => (ends.destination, ends.source),
            false => (ends.source, ends.destination),
        };
        let key = Key {
            client,
            server: Some(server),
            transport: ends.transport,
            connection: ends.connection,
            id: message.id,
            question: None,
        };
        if message.is_response {
            let seen = Seen {
                at_ns,
                question: message.question.as_ref(),
                response: Response {
                    rcode: message.rcode,
                    ttl_s_min: message.ttl_s_min,
                    latency_ns: None,
                },
            };
            return match self.pairing.response(&key, &seen) {
                true => Ok(()),
                false => Err(Skip::ResponseWithoutQuery),
            };
        }
        let observed = Observed {
            at_ns,
            client,
            server: Some(server),
            transport: ends.transport,
            connection: ends.connection,
            question: message.question.ok_or(Skip::NotOneQuestion)?,
            flags: message.flags,
            response: None,
        };
        self.pairing.query(key, observed, &mut self.skipped);
        Ok(())
    }
}

/// Why a header that is not whole is not.
fn headers_cut(carried: &Carried<'_>) -> Skip {
    match carried.missing_octets {
        0 => Skip::MalformedPacket,
        _ => Skip::CutBySnapshotLength,
    }
}
