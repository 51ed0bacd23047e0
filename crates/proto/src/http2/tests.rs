//! Client and server against each other, RFC clause by clause, and with random octets.

use super::frame::{self, kind, write_header, write_settings};
use super::*;
use crate::doh::{DohRequest, MediaType, Method};
use crate::exchange::ExchangeEnd;
use std::sync::Arc;

mod exchanges;
mod oracle;
mod random;
mod rfc8484;
mod rfc9113;
mod rfc9113_messages;

/// How an exchange ended, as a test compares it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum End {
    Message(Vec<u8>),
    HttpStatus(u16),
    MediaType(MediaType),
    Reset(u64),
    NotProcessed,
    Malformed,
    Late,
}

impl From<ExchangeEnd<'_>> for End {
    fn from(end: ExchangeEnd<'_>) -> Self {
        match end {
            ExchangeEnd::Message(octets) => End::Message(octets.to_vec()),
            ExchangeEnd::HttpStatus(status) => End::HttpStatus(status),
            ExchangeEnd::MediaType(other) => End::MediaType(other),
            ExchangeEnd::Reset(code) => End::Reset(code),
            ExchangeEnd::NotProcessed => End::NotProcessed,
            ExchangeEnd::Malformed => End::Malformed,
            ExchangeEnd::Late => End::Late,
        }
    }
}

fn doh_request(method: Method) -> Arc<DohRequest> {
    Arc::new(DohRequest::new(method, "https://dns.example/dns-query{?dns}", &[]).unwrap())
}

/// A client that is fed with frames, and what it said.
struct Client {
    http2: Http2Client,
    out: Vec<u8>,
    ends: Vec<(u32, End)>,
}

impl Client {
    fn new(method: Method) -> Self {
        Client::with(method, &Http2Options::default())
    }

    fn with(method: Method, options: &Http2Options) -> Self {
        let mut out = Vec::new();
        let http2 = Http2Client::new(doh_request(method), options, &mut out);
        Client {
            http2,
            out,
            ends: Vec::new(),
        }
    }

    /// A client that has got the server's settings; what it said so far is dropped.
    fn settled(settings: &[(u16, u32)]) -> Self {
        let mut client = Client::new(Method::Post);
        let mut frames = Vec::new();
        write_settings(settings, &mut frames);
        write_header(0, kind::SETTINGS, frame::flag::ACK, 0, &mut frames);
        client.receive(&frames).unwrap();
        client.out.clear();
        client
    }

    fn request(&mut self, message: &[u8], token: u32) -> Result<(), Blocked> {
        self.http2.request(message, token, &mut self.out)
    }

    fn receive(&mut self, bytes: &[u8]) -> Result<Continuation, Http2Error> {
        let ends = &mut self.ends;
        self.http2.handle_bytes(bytes, &mut self.out, |token, end| {
            ends.push((token, End::from(end)));
        })
    }

    /// The ends since the last time.
    fn take_ends(&mut self) -> Vec<(u32, End)> {
        std::mem::take(&mut self.ends)
    }

    fn take_frames(&mut self) -> Vec<OwnedFrame> {
        let out = std::mem::take(&mut self.out);
        frames(out.strip_prefix(CLIENT_PREFACE).unwrap_or(&out))
    }
}

/// A request as a server hands it out.
type Request = (u32, Result<(Method, Vec<u8>), u16>);

/// A server that is fed with frames, and what it said.
struct Server {
    http2: Http2Server,
    out: Vec<u8>,
    requests: Vec<Request>,
}

impl Server {
    fn new() -> Self {
        Server::with(Http2ServerOptions::default())
    }

    fn with(options: Http2ServerOptions) -> Self {
        let mut out = Vec::new();
        let http2 = Http2Server::new(Arc::new(options), &mut out);
        Server {
            http2,
            out,
            requests: Vec::new(),
        }
    }

    /// A server that has got preface and settings; what it said so far is dropped.
    fn settled(settings: &[(u16, u32)]) -> Self {
        let mut server = Server::new();
        let mut frames = CLIENT_PREFACE.to_vec();
        write_settings(settings, &mut frames);
        write_header(0, kind::SETTINGS, frame::flag::ACK, 0, &mut frames);
        server.receive(&frames).unwrap();
        server.out.clear();
        server
    }

    fn receive(&mut self, bytes: &[u8]) -> Result<Continuation, Http2Error> {
        let requests = &mut self.requests;
        self.http2
            .handle_bytes(bytes, &mut self.out, |id, request| {
                requests.push((
                    id,
                    request.map(|query| (query.method, query.message.to_vec())),
                ));
            })
    }

    fn take_requests(&mut self) -> Vec<Request> {
        std::mem::take(&mut self.requests)
    }

    fn take_frames(&mut self) -> Vec<OwnedFrame> {
        frames(&std::mem::take(&mut self.out))
    }

    /// Answers every query with itself, the octets in reverse.
    fn answer_all(&mut self, max_age: Option<u32>) {
        for (id, request) in self.take_requests() {
            let answered = match request {
                Ok((_, message)) => {
                    let response = reversed(&message);
                    self.http2.respond(id, &response, max_age, &mut self.out)
                }
                Err(status) => self.http2.respond_status(id, status, &mut self.out),
            };
            answered.unwrap();
        }
    }
}

fn reversed(message: &[u8]) -> Vec<u8> {
    message.iter().rev().copied().collect()
}

/// A frame as a test compares it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct OwnedFrame {
    kind: u8,
    flags: u8,
    stream: u32,
    payload: Vec<u8>,
}

fn frames(octets: &[u8]) -> Vec<OwnedFrame> {
    let mut frames = Vec::new();
    let mut reader = frame::FrameReader::default();
    let read = reader.read(octets, |frame| {
        frames.push(OwnedFrame {
            kind: frame.kind,
            flags: frame.flags,
            stream: frame.stream,
            payload: frame.payload.to_vec(),
        });
        Ok(())
    });
    read.unwrap();
    frames
}

/// A frame from its parts.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    write_header(payload.len(), kind, flags, stream, &mut out);
    out.extend_from_slice(payload);
    out
}

/// A field block of literals.
fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in fields {
        out.push(0);
        for text in [name, value] {
            assert!(text.len() < 127);
            out.push(text.len() as u8);
            out.extend_from_slice(text.as_bytes());
        }
    }
    out
}

/// A HEADERS frame of a whole field block.
fn headers(stream: u32, ends: bool, fields: &[(&str, &str)]) -> Vec<u8> {
    let flags = frame::flag::END_HEADERS | u8::from(ends);
    frame(kind::HEADERS, flags, stream, &block(fields))
}

fn data(stream: u32, ends: bool, octets: &[u8]) -> Vec<u8> {
    frame(kind::DATA, u8::from(ends), stream, octets)
}

/// A response in one piece.
fn whole_response(stream: u32, fields: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    [headers(stream, false, fields), data(stream, true, body)].concat()
}

/// The fields of a good response.
const OK: [(&str, &str); 2] = [
    (":status", "200"),
    ("content-type", "application/dns-message"),
];

/// The fields of a good POST.
const POST: [(&str, &str); 4] = [
    (":method", "POST"),
    (":scheme", "https"),
    (":path", "/dns-query"),
    ("content-type", "application/dns-message"),
];

/// Moves octets between both until neither has any left, in pieces of `chunk_octets`.
fn exchange(client: &mut Client, server: &mut Server, chunk_octets: usize, max_age: Option<u32>) {
    while !client.out.is_empty() || !server.out.is_empty() {
        for chunk in std::mem::take(&mut client.out).chunks(chunk_octets) {
            server.receive(chunk).unwrap();
            server.answer_all(max_age);
        }
        for chunk in std::mem::take(&mut server.out).chunks(chunk_octets) {
            client.receive(chunk).unwrap();
        }
    }
}

/// A client with one open request, with token 9 on stream 1.
fn asking() -> Client {
    let mut client = Client::settled(&[]);
    client.request(&[1; 20], 9).unwrap();
    client.out.clear();
    client
}

fn window_update(stream: u32, octets: u32) -> Vec<u8> {
    frame(kind::WINDOW_UPDATE, 0, stream, &octets.to_be_bytes())
}

fn reset(stream: u32, code: ErrorCode) -> Vec<u8> {
    frame(kind::RST_STREAM, 0, stream, &code.0.to_be_bytes())
}

fn goaway(last_stream: u32, code: ErrorCode) -> Vec<u8> {
    let payload = [last_stream.to_be_bytes(), code.0.to_be_bytes()].concat();
    frame(kind::GOAWAY, 0, 0, &payload)
}

fn settings(settings: &[(u16, u32)]) -> Vec<u8> {
    let mut out = Vec::new();
    write_settings(settings, &mut out);
    out
}

fn resets(frames: &[OwnedFrame]) -> Vec<(u32, ErrorCode)> {
    let resets = frames.iter().filter(|frame| frame.kind == kind::RST_STREAM);
    resets
        .map(|frame| (frame.stream, code_of(&frame.payload)))
        .collect()
}

fn code_of(octets: &[u8]) -> ErrorCode {
    ErrorCode(u32::from_be_bytes(octets.try_into().unwrap()))
}
