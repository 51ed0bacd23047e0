//! The server's end of a connection (RFC 9113), for DoH (RFC 8484).

use super::collected::{Collected, SharedOctets};
use super::endpoint::{Endpoint, Event, ReceiveWindow};
use super::fields::{ContentLength, DnsVariable, RequestFields, RequestMethod};
use super::frame::{
    CLIENT_PREFACE, ErrorCode, FRAME_HEADER_OCTETS, Frame, FrameReader, Http2Error, WINDOW_MAX,
    flag, setting, write_goaway, write_reset, write_settings,
};
use super::streams::Streams;
use super::{Continuation, Http2Options, finish_headers};
use crate::doh::{DNS, MESSAGE_OCTETS_MAX, MediaType, Method};
use crate::hpack::{FieldRef, NumberField};
use std::sync::Arc;

/// `content-type: application/dns-message`, field 0 of all responses, its value as a Huffman code.
const CONTENT_TYPE: FieldRef<'static> = FieldRef {
    inserting: b"\x5f\x90\x1d\x75\xd0\x62\x0d\x26\x3d\x4c\x49\x52\x16\xa4\xa8\x40\xe6\x2f",
    plain: b"\x0f\x10\x90\x1d\x75\xd0\x62\x0d\x26\x3d\x4c\x49\x52\x16\xa4\xa8\x40\xe6\x2f",
    table_octets: 12 + 23 + 32,
};

/// Index of `:status: 200` in the static table, and of the names `allow` and `content-type`.
const STATUS_200: u8 = 8;
const ALLOW: u8 = 22;
const CONTENT_TYPE_NAME: u8 = 31;

/// A buffer larger than this is freed after use.
const BUFFER_OCTETS_KEPT: usize = 512;

/// Memory of a connection without streams, its header tables included, and of an open stream.
const HELD_OCTETS: usize = 12 * 1024;
const HELD_PER_STREAM_OCTETS: usize = 192;

/// How a server's connections behave; shared by all of them.
#[derive(Clone, Debug)]
pub struct Http2ServerOptions {
    /// The path of the resource, without query: `/dns-query` by default.
    pub path: String,
    /// SETTINGS_MAX_CONCURRENT_STREAMS: 1,000 by default. Streams beyond are refused.
    pub streams_max: u32,
    /// Octets of responses that may wait on one connection for the peer's flow control: 1 MiB by
    /// default.
    pub queued_octets_max: usize,
    /// Octets of requests that are not whole yet, which one connection may have: 4 MiB by default.
    /// A stream that goes beyond is reset with ENHANCE_YOUR_CALM.
    pub collected_octets_max: usize,
    /// The same for all connections together: 64 MiB by default.
    pub collected: SharedOctets,
    /// Settings sent to the peer.
    pub http2: Http2Options,
}

impl Default for Http2ServerOptions {
    fn default() -> Self {
        Http2ServerOptions {
            path: "/dns-query".to_owned(),
            streams_max: 1_000,
            queued_octets_max: 1 << 20,
            collected_octets_max: 4 << 20,
            collected: SharedOctets::new(64 << 20),
            http2: Http2Options {
                table_octets: 4_096,
                ..Http2Options::default()
            },
        }
    }
}

/// A request with a message, not parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DohQuery<'a> {
    /// How it came.
    pub method: Method,
    /// 1 to 65,535 octets.
    pub message: &'a [u8],
}

/// Why a response could not be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RespondError {
    /// The stream is not open: the client has reset it, or it was answered.
    Closed,
    /// The client does not take what waits for it already; the stream is still open.
    QueueFull,
}

/// A server's counters of one connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerCounts {
    /// Streams that the client reset.
    pub resets_received: u64,
    /// Requests refused because too many streams were open, because too much had come of requests
    /// that were not whole, or after our GOAWAY.
    pub refused: u64,
    /// Streams that we reset because their request was malformed.
    pub malformed: u64,
}

/// An open stream.
#[derive(Debug, Default)]
struct Stream {
    phase: Phase,
    content_length: Option<u32>,
    body_octets: u32,
    receive_window: ReceiveWindow,
    send_window: i64,
    buffer: Option<Box<Buffer>>,
}

/// The next expected input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// The content of a POST.
    #[default]
    Post,
    /// The end of a GET, whose message is in the buffer.
    Get,
    /// The end of a request that has been handed out as a bad one.
    Rejected,
    /// The response to a whole request.
    Response,
    /// The windows.
    Sending,
}

/// Octets of a request in parts, or of a response that waits for the windows.
#[derive(Debug, Default)]
struct Buffer {
    octets: Vec<u8>,
    start: usize,
    next: Option<Box<Buffer>>,
}

/// A server's connection; holds no socket and no TLS session.
#[derive(Debug)]
pub struct Http2Server {
    options: Arc<Http2ServerOptions>,
    endpoint: Endpoint,
    streams: Streams<Stream>,
    /// Octets of the client's preface that have come.
    preface_octets: usize,
    /// The highest identifier of a stream that the client has opened.
    last_id: u32,
    /// The last stream that is answered after our GOAWAY.
    goaway_last: Option<u32>,
    /// The client has said GOAWAY.
    client_leaves: bool,
    queued_octets: usize,
    collected: Collected,
    /// The message of the GET at hand.
    message: Vec<u8>,
    spare: Option<Box<Buffer>>,
    counts: ServerCounts,
}

impl Http2Server {
    /// Starts a connection: SETTINGS are appended to `out`.
    pub fn new(options: Arc<Http2ServerOptions>, out: &mut Vec<u8>) -> Self {
        let http2 = &options.http2;
        let endpoint = Endpoint::new(
            u32::MAX,
            1,
            http2.table_octets,
            http2.connection_window_octets,
        );
        write_settings(
            &[
                (setting::HEADER_TABLE_SIZE, http2.table_octets),
                (setting::MAX_CONCURRENT_STREAMS, options.streams_max),
                (setting::INITIAL_WINDOW_SIZE, http2.stream_window()),
            ],
            out,
        );
        endpoint.write_first_window(out);
        let collected = Collected::new(options.collected_octets_max, options.collected.clone());
        Http2Server {
            collected,
            options,
            endpoint,
            streams: Streams::default(),
            preface_octets: 0,
            last_id: 0,
            goaway_last: None,
            client_leaves: false,
            queued_octets: 0,
            message: Vec::new(),
            spare: None,
            counts: ServerCounts::default(),
        }
    }

    /// How many streams are open.
    pub fn open_streams(&self) -> usize {
        self.streams.len()
    }

    /// Octets of responses that wait for the client's flow control.
    pub fn queued_octets(&self) -> usize {
        self.queued_octets
    }

    /// Octets that the connection holds, by an account that rounds up: its own, open streams, parts
    /// of requests, and responses that wait.
    pub fn held_octets(&self) -> usize {
        let streams = self.streams.len() * HELD_PER_STREAM_OCTETS;
        HELD_OCTETS + streams + self.queued_octets + self.collected.octets()
    }

    /// The counters of this connection.
    pub fn counts(&self) -> ServerCounts {
        self.counts
    }

    /// Takes octets from the client, beginning with its preface. Each whole request is handed to
    /// `on_request` with its stream: a query, or the status (400, 404, 405, 413 or 415) with which
    /// it should be refused. All have to be answered with one of [`Http2Server::respond`],
    /// [`Http2Server::respond_status`] and [`Http2Server::reset_stream`], at any time.
    ///
    /// # Errors
    /// The client violated the protocol. `out` has a GOAWAY with the error; send it and close the
    /// connection. Further calls return the same error.
    pub fn handle_bytes(
        &mut self,
        bytes: &[u8],
        out: &mut Vec<u8>,
        mut on_request: impl FnMut(u32, Result<DohQuery<'_>, u16>),
    ) -> Result<Continuation, Http2Error> {
        if let Some(error) = self.endpoint.failure() {
            return Err(error);
        }
        let mut reader = self.endpoint.begin_call();
        let read = self.read(&mut reader, bytes, out, &mut on_request);
        self.endpoint.end_call(reader);
        if let Err(error) = read {
            if self.endpoint.fail(error) {
                write_goaway(self.last_id, error.code, error.what, out);
            }
            return Err(error);
        }
        Ok(Continuation::new(self.is_drained()))
    }

    /// True if one side has said GOAWAY and every stream is answered.
    pub fn is_drained(&self) -> bool {
        (self.goaway_last.is_some() || self.client_leaves) && self.streams.len() == 0
    }

    fn read(
        &mut self,
        reader: &mut FrameReader,
        bytes: &[u8],
        out: &mut Vec<u8>,
        on_request: &mut impl FnMut(u32, Result<DohQuery<'_>, u16>),
    ) -> Result<(), Http2Error> {
        let missing = &CLIENT_PREFACE[self.preface_octets..];
        let (preface, frames) = bytes.split_at(missing.len().min(bytes.len()));
        if !missing.starts_with(preface) {
            return Err(Http2Error::protocol(
                "no HTTP/2: the client's preface is another",
            ));
        }
        self.preface_octets += preface.len();
        reader.read(frames, |frame| self.handle_frame(frame, out, on_request))
    }

    fn handle_frame(
        &mut self,
        frame: Frame<'_>,
        out: &mut Vec<u8>,
        on_request: &mut impl FnMut(u32, Result<DohQuery<'_>, u16>),
    ) -> Result<(), Http2Error> {
        match self.endpoint.handle_frame(frame, out)? {
            Event::Handled => Ok(()),
            Event::Block {
                stream,
                end_stream,
                block,
            } => self.handle_block((stream, end_stream), &block, out, on_request),
            Event::Data {
                stream,
                end_stream,
                data,
                flow_octets,
            } => self.handle_data((stream, end_stream), (data, flow_octets), out, on_request),
            Event::Reset { stream, .. } => self.handle_reset(stream),
            Event::GoAway { .. } => {
                self.client_leaves = true;
                self.endpoint.count_trifle()
            }
            Event::StreamWindow { stream, octets } => {
                self.handle_stream_window(stream, octets, out)
            }
            Event::ConnectionWindow => {
                self.send_queued(out);
                Ok(())
            }
            Event::Acknowledged => {
                let max = self.options.http2.stream_window();
                for (id, stream) in self.streams.iter_mut() {
                    if stream.awaits_content() {
                        stream.receive_window.acknowledge(id, max, out);
                    }
                }
                Ok(())
            }
            Event::InitialWindow { change } => self.handle_initial_window(change, out),
        }
    }

    fn handle_block(
        &mut self,
        (id, end_stream): (u32, bool),
        block: &[u8],
        out: &mut Vec<u8>,
        on_request: &mut impl FnMut(u32, Result<DohQuery<'_>, u16>),
    ) -> Result<(), Http2Error> {
        let mut fields = RequestFields::new(std::mem::take(&mut self.message));
        let path = &self.options.path;
        self.endpoint
            .decode(block, |name, value| fields.add(name, value, path))?;
        let handled = if id % 2 == 0 {
            Err(Http2Error::protocol(
                "a client's stream with an even number",
            ))
        } else if id > self.last_id {
            self.last_id = id;
            self.open_stream((id, end_stream), &fields, out, on_request);
            Ok(())
        } else {
            self.handle_trailers((id, end_stream), &fields, out, on_request)
        };
        self.message = fields.message;
        if self.message.capacity() > BUFFER_OCTETS_KEPT {
            self.message = Vec::new();
        }
        handled
    }

    fn open_stream(
        &mut self,
        (id, end_stream): (u32, bool),
        fields: &RequestFields,
        out: &mut Vec<u8>,
        on_request: &mut impl FnMut(u32, Result<DohQuery<'_>, u16>),
    ) {
        let is_late = self.goaway_last.is_some_and(|last| id > last);
        let is_full = self.streams.len() as u64 >= u64::from(self.options.streams_max);
        if is_late || is_full {
            self.counts.refused += 1;
            write_reset(id, ErrorCode::REFUSED_STREAM, out);
            return;
        }
        let length = fields.content_length;
        let contradicts = end_stream && length.octets.is_some_and(|octets| octets != 0);
        if fields.is_malformed_request() || contradicts {
            self.counts.malformed += 1;
            write_reset(id, ErrorCode::PROTOCOL_ERROR, out);
            return;
        }
        let acknowledged = self.endpoint.settings_acknowledged;
        let mut stream = Stream {
            content_length: length.for_stream(),
            receive_window: ReceiveWindow::new(self.options.http2.stream_window(), acknowledged),
            send_window: i64::from(self.endpoint.peer.initial_window),
            ..Stream::default()
        };
        let request = classify(fields, length, end_stream);
        stream.phase = match (&request, end_stream) {
            (_, true) => Phase::Response,
            (Err(_), false) => Phase::Rejected,
            (Ok(Method::Get), false) => {
                if !self.collected.take(fields.message.len()) {
                    self.counts.refused += 1;
                    write_reset(id, ErrorCode::ENHANCE_YOUR_CALM, out);
                    return;
                }
                let mut buffer = take_spare(&mut self.spare);
                buffer.octets.extend_from_slice(&fields.message);
                stream.buffer = Some(buffer);
                Phase::Get
            }
            (Ok(Method::Post), false) => Phase::Post,
        };
        let phase = stream.phase;
        self.streams.insert(id, stream);
        match request {
            Err(status) => on_request(id, Err(status)),
            Ok(method) if phase == Phase::Response => {
                let message = &fields.message;
                on_request(id, Ok(DohQuery { method, message }));
            }
            Ok(_) => {}
        }
    }

    /// A second field section of a request that is not whole.
    fn handle_trailers(
        &mut self,
        (id, end_stream): (u32, bool),
        fields: &RequestFields,
        out: &mut Vec<u8>,
        on_request: &mut impl FnMut(u32, Result<DohQuery<'_>, u16>),
    ) -> Result<(), Http2Error> {
        let Some(stream) = self.streams.get_mut(id) else {
            // Closed already: this may have crossed our reset.
            write_reset(id, ErrorCode::STREAM_CLOSED, out);
            return self.endpoint.count_trifle();
        };
        if !stream.awaits_content() {
            self.reset(id, ErrorCode::STREAM_CLOSED, out);
        } else if !end_stream || fields.is_malformed_trailer() {
            self.counts.malformed += 1;
            self.reset(id, ErrorCode::PROTOCOL_ERROR, out);
        } else {
            self.end_request(id, &[], out, on_request);
        }
        Ok(())
    }

    fn handle_data(
        &mut self,
        (id, end_stream): (u32, bool),
        (data, flow_octets): (&[u8], u32),
        out: &mut Vec<u8>,
        on_request: &mut impl FnMut(u32, Result<DohQuery<'_>, u16>),
    ) -> Result<(), Http2Error> {
        let Some(stream) = self.streams.get_mut(id) else {
            self.check_used(id)?;
            return self.endpoint.count_trifle();
        };
        if !stream.awaits_content() {
            self.reset(id, ErrorCode::STREAM_CLOSED, out);
            return Ok(());
        }
        let goes_on = (!end_stream).then_some(id);
        let max = self.options.http2.stream_window();
        stream.receive_window.take(flow_octets, max, goes_on, out)?;
        // At most 65,535 and a frame: the rest of a rejected request is not counted.
        if stream.phase == Phase::Post {
            stream.body_octets += data.len() as u32;
            if stream.body_octets as usize > MESSAGE_OCTETS_MAX {
                stream.phase = if end_stream {
                    Phase::Response
                } else {
                    Phase::Rejected
                };
                self.drop_buffer(id);
                on_request(id, Err(413));
                return Ok(());
            }
        }
        if stream.phase == Phase::Post && (!end_stream || stream.buffer.is_some()) {
            if !self.collected.take(data.len()) {
                self.counts.refused += 1;
                self.reset(id, ErrorCode::ENHANCE_YOUR_CALM, out);
                return Ok(());
            }
            if stream.buffer.is_none() {
                stream.buffer = Some(take_spare(&mut self.spare));
            }
            if let Some(buffer) = &mut stream.buffer {
                buffer.octets.extend_from_slice(data);
            }
        }
        if end_stream {
            self.end_request(id, data, out, on_request);
        }
        Ok(())
    }

    /// The client has sent all of a request; `data` is its content unless that was collected.
    fn end_request(
        &mut self,
        id: u32,
        data: &[u8],
        out: &mut Vec<u8>,
        on_request: &mut impl FnMut(u32, Result<DohQuery<'_>, u16>),
    ) {
        let Some(stream) = self.streams.get_mut(id) else {
            return;
        };
        let is_post = stream.phase == Phase::Post;
        let length = stream.content_length;
        if is_post && length.is_some_and(|octets| octets != stream.body_octets) {
            self.counts.malformed += 1;
            self.reset(id, ErrorCode::PROTOCOL_ERROR, out);
            return;
        }
        let method = match std::mem::replace(&mut stream.phase, Phase::Response) {
            Phase::Post => Method::Post,
            Phase::Get => Method::Get,
            // Handed out already.
            Phase::Rejected | Phase::Response | Phase::Sending => return,
        };
        let buffer = stream.buffer.take();
        self.collected.give_back(octets_of(&buffer));
        let message = buffer.as_ref().map_or(data, |buffer| &buffer.octets);
        match message.is_empty() {
            true => on_request(id, Err(400)),
            false => on_request(id, Ok(DohQuery { method, message })),
        }
        self.keep(buffer);
    }

    fn handle_reset(&mut self, id: u32) -> Result<(), Http2Error> {
        self.check_used(id)?;
        if self.streams.contains(id) {
            self.counts.resets_received += 1;
            self.drop_stream(id);
        }
        self.endpoint.count_trifle()
    }

    fn handle_stream_window(
        &mut self,
        id: u32,
        octets: u32,
        out: &mut Vec<u8>,
    ) -> Result<(), Http2Error> {
        let Some(stream) = self.streams.get_mut(id) else {
            self.check_used(id)?;
            return self.endpoint.count_trifle();
        };
        stream.send_window += i64::from(octets);
        if octets == 0 {
            self.reset(id, ErrorCode::PROTOCOL_ERROR, out);
        } else if stream.send_window > i64::from(WINDOW_MAX) {
            self.reset(id, ErrorCode::FLOW_CONTROL_ERROR, out);
        } else if stream.phase == Phase::Sending {
            self.send_queued(out);
        } else {
            return self.endpoint.count_trifle();
        }
        Ok(())
    }

    /// Section 6.9.2.
    fn handle_initial_window(&mut self, change: i64, out: &mut Vec<u8>) -> Result<(), Http2Error> {
        for (_, stream) in self.streams.iter_mut() {
            stream.send_window += change;
            if stream.send_window > i64::from(WINDOW_MAX) {
                return Err(Http2Error::flow_control("a stream's window is too large"));
            }
        }
        self.send_queued(out);
        Ok(())
    }

    /// Answers a request with a message and, if `max_age` is given, its freshness lifetime in
    /// seconds (RFC 8484, section 5.1). Data that flow control does not allow yet is copied.
    ///
    /// # Errors
    /// Nothing was sent, see [`RespondError`].
    pub fn respond(
        &mut self,
        stream_id: u32,
        message: &[u8],
        max_age: Option<u32>,
        out: &mut Vec<u8>,
    ) -> Result<(), RespondError> {
        self.respond_typed((stream_id, MediaType::DnsMessage), message, max_age, out)
    }

    /// As [`Http2Server::respond`] with the media type [`DNS`](crate::doh::DNS), as servers that
    /// break the rule give it.
    ///
    /// # Errors
    /// Nothing was sent, see [`RespondError`].
    pub fn respond_mistyped(
        &mut self,
        stream_id: u32,
        message: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), RespondError> {
        self.respond_typed((stream_id, MediaType::Dns), message, None, out)
    }

    #[inline]
    fn respond_typed(
        &mut self,
        (stream_id, media_type): (u32, MediaType),
        message: &[u8],
        max_age: Option<u32>,
        out: &mut Vec<u8>,
    ) -> Result<(), RespondError> {
        let Some(stream) = self.answerable(stream_id) else {
            return Err(RespondError::Closed);
        };
        let window = stream.send_window;
        if self.queued_octets > 0
            && self.queued_octets + message.len() > self.options.queued_octets_max
        {
            return Err(RespondError::QueueFull);
        }
        let start = out.len();
        out.extend_from_slice(&[0; FRAME_HEADER_OCTETS]);
        let encoder = &mut self.endpoint.encoder;
        encoder.start_block(out);
        encoder.static_entry(STATUS_200, out);
        match media_type {
            MediaType::DnsMessage => encoder.field(0, CONTENT_TYPE, out),
            _ => encoder.literal(CONTENT_TYPE_NAME, DNS.len(), out, |out| {
                out.extend_from_slice(DNS.as_bytes());
            }),
        }
        encoder.number(NumberField::CONTENT_LENGTH, message.len() as u32, out);
        if let Some(seconds) = max_age {
            encoder.number(NumberField::MAX_AGE, seconds, out);
        }
        let flags = if message.is_empty() {
            flag::END_STREAM
        } else {
            0
        };
        let payload_max = self.endpoint.peer.frame_octets_max;
        finish_headers(start, stream_id, flags, payload_max, out);
        let sent = self.endpoint.write_data(stream_id, message, window, out);
        if sent == message.len() {
            self.finish(stream_id, out);
        } else {
            self.queue(stream_id, &message[sent..], sent);
        }
        Ok(())
    }

    /// Keeps what the windows do not allow.
    fn queue(&mut self, id: u32, rest: &[u8], sent: usize) {
        let mut buffer = take_spare(&mut self.spare);
        buffer.octets.extend_from_slice(rest);
        self.queued_octets += rest.len();
        if let Some(stream) = self.streams.get_mut(id) {
            stream.send_window -= sent as i64;
            stream.phase = Phase::Sending;
            let collected = stream.buffer.replace(buffer);
            self.collected.give_back(octets_of(&collected));
        }
    }

    /// Answers a request with a status and no content. A request that is not whole is stopped
    /// (section 8.1).
    ///
    /// # Errors
    /// [`RespondError::Closed`]: nothing was sent.
    pub fn respond_status(
        &mut self,
        stream_id: u32,
        status: u16,
        out: &mut Vec<u8>,
    ) -> Result<(), RespondError> {
        if self.answerable(stream_id).is_none() {
            return Err(RespondError::Closed);
        }
        let start = out.len();
        out.extend_from_slice(&[0; FRAME_HEADER_OCTETS]);
        let encoder = &mut self.endpoint.encoder;
        encoder.start_block(out);
        let digits = [status / 100 % 10, status / 10 % 10, status % 10];
        encoder.literal(STATUS_200, 3, out, |out| {
            out.extend(digits.map(|digit| b'0' + digit as u8));
        });
        if status == 405 {
            // RFC 9110, section 15.5.6.
            let methods = b"GET, POST";
            encoder.literal(ALLOW, methods.len(), out, |out| {
                out.extend_from_slice(methods);
            });
        }
        let payload_max = self.endpoint.peer.frame_octets_max;
        finish_headers(start, stream_id, flag::END_STREAM, payload_max, out);
        self.finish(stream_id, out);
        Ok(())
    }

    /// Resets a stream instead of answering it; false if it is not open.
    pub fn reset_stream(&mut self, stream_id: u32, code: ErrorCode, out: &mut Vec<u8>) -> bool {
        let is_open = self.streams.contains(stream_id);
        if is_open {
            self.reset(stream_id, code, out);
        }
        is_open
    }

    /// Says that requests after those received so far are not processed (GOAWAY). They are
    /// refused; open streams can still be answered.
    pub fn go_away(&mut self, code: ErrorCode, out: &mut Vec<u8>) {
        self.go_away_after(self.last_id, code, out);
    }

    /// As [`Http2Server::go_away`], with `last_stream` as the last one that is processed: those
    /// after it that were handed out already are closed without an answer.
    pub fn go_away_after(&mut self, last_stream: u32, code: ErrorCode, out: &mut Vec<u8>) {
        let last_stream = self
            .goaway_last
            .map_or(last_stream, |last| last.min(last_stream));
        self.goaway_last = Some(last_stream);
        write_goaway(last_stream, code, "", out);
        for id in self.streams.ids(|id, _| id > last_stream) {
            self.drop_stream(id);
        }
    }

    /// The open stream that has had no response.
    fn answerable(&mut self, id: u32) -> Option<&mut Stream> {
        if self.endpoint.failure().is_some() {
            return None;
        }
        let stream = self.streams.get_mut(id)?;
        (stream.phase != Phase::Sending).then_some(stream)
    }

    /// Closes a stream whose response is sent.
    fn finish(&mut self, id: u32, out: &mut Vec<u8>) {
        self.endpoint.count_exchange();
        let stream = self.streams.get_mut(id);
        if stream.is_some_and(|stream| stream.awaits_content()) {
            write_reset(id, ErrorCode::NO_ERROR, out);
        }
        self.drop_stream(id);
    }

    fn reset(&mut self, id: u32, code: ErrorCode, out: &mut Vec<u8>) {
        write_reset(id, code, out);
        self.drop_stream(id);
    }

    /// Sends what the windows allow now, of the oldest stream first.
    fn send_queued(&mut self, out: &mut Vec<u8>) {
        if self.queued_octets == 0 {
            return;
        }
        for id in self.streams.ids(|_, stream| stream.phase == Phase::Sending) {
            let Some(stream) = self.streams.get_mut(id) else {
                continue;
            };
            let Some(buffer) = &mut stream.buffer else {
                continue;
            };
            let rest = &buffer.octets[buffer.start..];
            let window = stream.send_window;
            let sent = self.endpoint.write_data(id, rest, window, out);
            buffer.start += sent;
            stream.send_window -= sent as i64;
            self.queued_octets -= sent;
            if buffer.start == buffer.octets.len() {
                self.finish(id, out);
            }
        }
    }

    fn drop_stream(&mut self, id: u32) {
        let Some(mut stream) = self.streams.remove(id) else {
            return;
        };
        let buffer = stream.buffer.take();
        match (&buffer, stream.phase) {
            (Some(buffer), Phase::Sending) => {
                self.queued_octets -= buffer.octets.len() - buffer.start;
            }
            _ => self.collected.give_back(octets_of(&buffer)),
        }
        self.keep(buffer);
    }

    fn drop_buffer(&mut self, id: u32) {
        let buffer = self.streams.get_mut(id).and_then(|it| it.buffer.take());
        self.collected.give_back(octets_of(&buffer));
        self.keep(buffer);
    }

    /// Takes a buffer back for the next stream that needs one.
    fn keep(&mut self, buffer: Option<Box<Buffer>>) {
        if let Some(mut buffer) = buffer
            && buffer.octets.capacity() <= BUFFER_OCTETS_KEPT
        {
            buffer.octets.clear();
            buffer.start = 0;
            buffer.next = self.spare.take();
            self.spare = Some(buffer);
        }
        if self.streams.len() == 0
            && let Some(first) = &mut self.spare
        {
            // An idle connection keeps one.
            first.next = None;
        }
    }

    /// A stream that the client has not opened cannot get anything (section 5.1).
    fn check_used(&self, id: u32) -> Result<(), Http2Error> {
        match id % 2 == 1 && id <= self.last_id {
            true => Ok(()),
            false => Err(Http2Error::protocol("a frame for a stream that is idle")),
        }
    }
}

impl Stream {
    /// True if the client has not sent all of its request.
    fn awaits_content(&self) -> bool {
        matches!(self.phase, Phase::Post | Phase::Get | Phase::Rejected)
    }
}

/// The content of a request, or the status with which to refuse it (RFC 8484, section 4.1; RFC
/// 9110).
pub(crate) fn classify(
    fields: &RequestFields,
    content_length: ContentLength,
    end_stream: bool,
) -> Result<Method, u16> {
    if fields.method == Some(RequestMethod::Other) {
        return Err(405);
    }
    if !fields.path_matches {
        return Err(404);
    }
    if fields.method == Some(RequestMethod::Get) {
        return match fields.dns {
            DnsVariable::Decoded => Ok(Method::Get),
            DnsVariable::Absent | DnsVariable::Invalid => Err(400),
        };
    }
    if !fields.is_dns_message {
        return Err(415);
    }
    let octets_max = MESSAGE_OCTETS_MAX as u64;
    if content_length
        .octets
        .is_some_and(|octets| octets > octets_max)
    {
        return Err(413);
    }
    match end_stream {
        true => Err(400),
        false => Ok(Method::Post),
    }
}

fn octets_of(buffer: &Option<Box<Buffer>>) -> usize {
    buffer.as_ref().map_or(0, |buffer| buffer.octets.len())
}

/// A buffer that was used before, or a new one.
fn take_spare(spare: &mut Option<Box<Buffer>>) -> Box<Buffer> {
    match spare.take() {
        None => Box::default(),
        Some(mut first) => {
            *spare = first.next.take();
            first
        }
    }
}
