//! One connection over TCP: DNS behind its lengths, or HTTP/2, with or without TLS.

use std::sync::Arc;

use proto::Transport;
use proto::framing::{Deframer, write_message};
use proto::http2::{Http2Server, Http2ServerOptions};
use proto::tls::ServerTls;
use proto::tls::rustls::ServerConfig;

use super::response_to;

enum Protocol {
    Framed(Deframer),
    Http2(Box<Http2Server>),
}

/// A connection that was accepted.
pub(super) struct EchoStream {
    protocol: Protocol,
    tls: Option<ServerTls>,
    /// Octets to send, before TLS.
    out: Vec<u8>,
}

impl EchoStream {
    pub(super) fn new(transport: Transport, tls: Option<Arc<ServerConfig>>) -> EchoStream {
        let mut out = Vec::new();
        let options = || Arc::new(Http2ServerOptions::default());
        EchoStream {
            protocol: match transport {
                Transport::Doh2 => Protocol::Http2(Box::new(Http2Server::new(options(), &mut out))),
                _ => Protocol::Framed(Deframer::default()),
            },
            tls: tls.map(|tls| ServerTls::new(tls).unwrap()),
            out,
        }
    }

    /// What is to be sent, and how many queries were in `bytes`.
    pub(super) fn answer(&mut self, bytes: &[u8]) -> (Vec<u8>, u64) {
        let mut plaintext = Vec::new();
        match &mut self.tls {
            Some(tls) => drop(tls.handle_bytes(bytes, &mut plaintext).unwrap()),
            None => plaintext.extend_from_slice(bytes),
        }
        let queries = match &mut self.protocol {
            Protocol::Framed(deframer) => answer_framed(deframer, &plaintext, &mut self.out),
            Protocol::Http2(server) => answer_http2(server, &plaintext, &mut self.out),
        };
        let responses = std::mem::take(&mut self.out);
        let Some(tls) = &mut self.tls else {
            return (responses, queries);
        };
        let mut octets = Vec::new();
        tls.write(&responses);
        tls.poll_transmit(&mut octets);
        (octets, queries)
    }
}

fn answer_framed(deframer: &mut Deframer, plaintext: &[u8], out: &mut Vec<u8>) -> u64 {
    let mut queries = 0;
    deframer.handle_bytes(plaintext, |query| {
        queries += 1;
        write_message(&response_to(query), out);
    });
    queries
}

fn answer_http2(server: &mut Http2Server, plaintext: &[u8], out: &mut Vec<u8>) -> u64 {
    let mut responses = Vec::new();
    server
        .handle_bytes(plaintext, out, |stream, query| {
            responses.push((stream, response_to(query.unwrap().message)));
        })
        .unwrap();
    for (stream, response) in &responses {
        server.respond(*stream, response, None, out).unwrap();
    }
    responses.len() as u64
}
