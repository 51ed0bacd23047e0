//! The client's end of a connection (RFC 9113), for DoH requests (RFC 8484).

use super::endpoint::{Endpoint, Event, ReceiveWindow};
use super::fields::ResponseFields;
use super::frame::{
    CLIENT_PREFACE, ErrorCode, FRAME_HEADER_OCTETS, Frame, Http2Error, WINDOW_MAX, flag, setting,
    write_goaway, write_reset, write_settings,
};
use super::known_fields;
use super::response::{Step, Stream, Surplus};
use super::streams::Streams;
use super::{Continuation, Http2Options, finish_headers};
use crate::doh::{DohRequest, MediaType, Method, Scheme};
use crate::exchange::ExchangeEnd;
use crate::hpack::NumberField;
use ordinary::KnownBlock;
use std::collections::VecDeque;
use std::sync::Arc;

mod ordinary;

/// Streams that may be open before the peer's SETTINGS are known: the least that a server should
/// allow (section 6.5.2).
const STREAMS_MAX_ASSUMED: u32 = 100;

/// Cancelled exchanges that are remembered, to distinguish a late response from an invalid one.
const CANCELLED_MAX: usize = 128;

/// A buffer larger than this is not kept for the next stream that needs one.
const BUFFER_OCTETS_KEPT: usize = 512;

/// Indices of the static table (RFC 7541, appendix A).
const METHOD_GET: u8 = 2;
const METHOD_POST: u8 = 3;
const PATH: u8 = 4;
const SCHEME_HTTP: u8 = 6;
const SCHEME_HTTPS: u8 = 7;

/// Why no request can be sent now. Nothing was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocked {
    /// As many streams are open as the peer allows: wait for an exchange to end.
    Streams,
    /// The peer's flow control allows no further content now: wait for more octets from it.
    Window,
    /// This connection accepts no more requests: use another one.
    Ending,
}

/// A client's connection; holds no socket and no TLS session.
///
/// Appends output to `out`, and passes the end of every exchange to a callback. Idle it holds under
/// 1 KiB.
#[derive(Debug)]
pub struct Http2Client {
    request: Arc<DohRequest>,
    endpoint: Endpoint,
    streams: Streams<Stream>,
    /// Exchanges that were cancelled, oldest first.
    cancelled: VecDeque<(u32, Stream)>,
    forgotten: u64,
    next_id: u32,
    /// The peer's GOAWAY.
    going_away: Option<ErrorCode>,
    /// We have said GOAWAY.
    closing: bool,
    /// Streams with octets that flow control holds back.
    held_back: u32,
    spare: Option<Box<Surplus>>,
    stream_window: u32,
    takes_dns_media_type: bool,
    known_block: KnownBlock,
}

impl Http2Client {
    /// Starts a connection on which every exchange is a `request`: the preface and SETTINGS are
    /// appended to `out`, requests may follow at once.
    pub fn new(request: Arc<DohRequest>, options: &Http2Options, out: &mut Vec<u8>) -> Self {
        let endpoint = Endpoint::new(
            STREAMS_MAX_ASSUMED,
            0,
            options.table_octets,
            options.connection_window_octets,
        );
        out.extend_from_slice(CLIENT_PREFACE);
        write_settings(
            &[
                (setting::HEADER_TABLE_SIZE, options.table_octets),
                (setting::ENABLE_PUSH, 0),
                (setting::INITIAL_WINDOW_SIZE, options.stream_window()),
            ],
            out,
        );
        endpoint.write_first_window(out);
        Http2Client {
            request,
            endpoint,
            streams: Streams::default(),
            cancelled: VecDeque::new(),
            forgotten: 0,
            next_id: 1,
            going_away: None,
            closing: false,
            held_back: 0,
            spare: None,
            stream_window: options.stream_window(),
            takes_dns_media_type: options.takes_dns_media_type,
            known_block: KnownBlock::default(),
        }
    }

    /// How many requests could be sent now, 0 if [`Http2Client::request`] would be blocked.
    pub fn streams_free(&self) -> u32 {
        match self.blocked() {
            Some(_) => 0,
            None => self.endpoint.peer.streams_max - self.streams.len() as u32,
        }
    }

    #[cfg(test)]
    pub(super) fn shared_request(&self) -> &Arc<DohRequest> {
        &self.request
    }

    /// How many concurrent streams the peer's SETTINGS allow; `None` if they do not say.
    pub fn streams_max(&self) -> Option<u32> {
        let streams_max = self.endpoint.peer.streams_max;
        (self.endpoint.settings_received && streams_max != u32::MAX).then_some(streams_max)
    }

    /// How many exchanges have not ended.
    pub fn open_streams(&self) -> usize {
        self.streams.len()
    }

    /// The tokens of the exchanges that have not ended, oldest first. Allocates.
    pub fn open_tokens(&mut self) -> Vec<u32> {
        let ids = self.streams.ids(|_, _| true);
        let token = |id| Some(self.streams.get_mut(id)?.token);
        ids.into_iter().filter_map(token).collect()
    }

    /// True if the connection accepts no more requests: a GOAWAY was sent or received, it failed,
    /// or its stream identifiers are used up (section 5.1.1).
    pub fn is_going_away(&self) -> bool {
        let is_used_up = self.next_id > WINDOW_MAX;
        let failed = self.endpoint.failure().is_some();
        // Without a branch for each: this is called for every query.
        self.going_away.is_some() | self.closing | is_used_up | failed
    }

    /// The error code of the peer's GOAWAY, if it sent one.
    pub fn goaway_code(&self) -> Option<ErrorCode> {
        self.going_away
    }

    /// Cancelled exchanges whose late responses could no longer be recognised, because more than
    /// 128 of them were waited for.
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }

    fn blocked(&self) -> Option<Blocked> {
        let is_post = self.request.method() == Method::Post;
        if self.is_going_away() {
            Some(Blocked::Ending)
        } else if self.streams.len() as u64 >= u64::from(self.endpoint.peer.streams_max) {
            Some(Blocked::Streams)
        } else if is_post && (self.endpoint.send_window == 0 || self.held_back > 0) {
            Some(Blocked::Window)
        } else {
            None
        }
    }

    /// Appends one request with `message` to `out`; `token` comes back with its end.
    ///
    /// `message` is a whole DNS message of 1 to 65,535 octets; its ID should be 0 (RFC 8484,
    /// section 4.1). From a connection's second request on this is about 20 octets and the
    /// message, or its path. Content that flow control does not allow yet is copied and sent
    /// when [`Http2Client::handle_bytes`] learns that it may be. Allocates only if more streams
    /// are open than ever before, or if content is held back.
    ///
    /// # Errors
    /// Nothing was sent, see [`Blocked`].
    pub fn request(
        &mut self,
        message: &[u8],
        token: u32,
        out: &mut Vec<u8>,
    ) -> Result<(), Blocked> {
        if let Some(blocked) = self.blocked() {
            return Err(blocked);
        }
        let id = self.next_id;
        self.next_id += 2;
        let acknowledged = self.endpoint.settings_acknowledged;
        let window = ReceiveWindow::new(self.stream_window, acknowledged);
        let mut stream = Stream::new(token, window);
        if !self.write_ordinary(id, message, out) {
            self.write_request(id, message, &mut stream, out);
        }
        self.streams.insert(id, stream);
        Ok(())
    }

    /// Appends any request.
    fn write_request(&mut self, id: u32, message: &[u8], stream: &mut Stream, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&[0; FRAME_HEADER_OCTETS]);
        self.write_block(message, out);
        let is_get = self.request.method() == Method::Get;
        let flags = if is_get { flag::END_STREAM } else { 0 };
        let payload_max = self.endpoint.peer.frame_octets_max;
        finish_headers(start, id, flags, payload_max, out);
        if !is_get {
            self.write_content(id, message, stream, out);
        }
    }

    /// Appends the field block of a request.
    fn write_block(&mut self, message: &[u8], out: &mut Vec<u8>) {
        let (request, encoder) = (&*self.request, &mut self.endpoint.encoder);
        let (start, table_changes) = (out.len(), encoder.table_changes());
        encoder.start_block(out);
        let method = match request.method() {
            Method::Get => METHOD_GET,
            Method::Post => METHOD_POST,
        };
        let scheme = match request.scheme() {
            Scheme::Https => SCHEME_HTTPS,
            Scheme::Http => SCHEME_HTTP,
        };
        encoder.static_entry(method, out);
        encoder.static_entry(scheme, out);
        let mut ordinal = 0;
        for field in request.pseudo_fields() {
            encoder.field(ordinal, field.hpack.borrowed(), out);
            ordinal += 1;
        }
        if request.method() == Method::Get {
            let octets = request.get_path_octets(message.len());
            encoder.literal(PATH, octets, out, |out| {
                request.write_get_path(message, out)
            });
        }
        for field in request.regular_fields() {
            encoder.field(ordinal, field.hpack.borrowed(), out);
            ordinal += 1;
        }
        if request.method() == Method::Post {
            let known = &mut self.known_block;
            known.remember(&out[start..], encoder, table_changes);
            encoder.number(NumberField::CONTENT_LENGTH, message.len() as u32, out);
        }
    }

    /// Appends the content of a POST as far as flow control allows, and keeps the rest.
    fn write_content(&mut self, id: u32, message: &[u8], stream: &mut Stream, out: &mut Vec<u8>) {
        let window = i64::from(self.endpoint.peer.initial_window);
        let sent = self.endpoint.write_data(id, message, window, out);
        if sent < message.len() {
            let mut surplus = self.spare_surplus();
            surplus.unsent.extend_from_slice(&message[sent..]);
            surplus.unsent_start = 0;
            surplus.send_window = window - sent as i64;
            stream.surplus = Some(surplus);
            self.held_back += 1;
        }
    }

    /// Cancels the exchange with this token and resets its stream; false if there is none.
    ///
    /// Its end is not reported. A message that comes nevertheless is, as [`ExchangeEnd::Late`].
    pub fn cancel(&mut self, token: u32, out: &mut Vec<u8>) -> bool {
        let found = self.streams.iter_mut().find(|(_, it)| it.token == token);
        let id = found.map(|(id, _)| id);
        let Some((id, mut stream)) = id.and_then(|id| Some((id, self.streams.remove(id)?))) else {
            return false;
        };
        write_reset(id, ErrorCode::CANCEL, out);
        self.release(&mut stream);
        if self.cancelled.len() == CANCELLED_MAX {
            self.cancelled.pop_front();
            self.forgotten += 1;
        }
        self.cancelled.push_back((id, stream));
        true
    }

    /// Announces that no more requests will come (GOAWAY with NO_ERROR); open exchanges continue.
    pub fn close(&mut self, out: &mut Vec<u8>) {
        if !self.closing && self.endpoint.failure().is_none() {
            self.closing = true;
            write_goaway(0, ErrorCode::NO_ERROR, "", out);
        }
    }

    /// Handles octets from the peer. Passes exchanges that end to `on_end` with their tokens;
    /// appends output to `out`.
    ///
    /// A message in one whole DATA frame is passed on in place.
    ///
    /// # Errors
    /// The peer violated the protocol. `out` has a GOAWAY with the error; send it, close the
    /// connection, and count open exchanges as lost with it. Further calls return the same error.
    // Left to the compiler, a change in any crate below decides it.
    #[inline(always)]
    pub fn handle_bytes(
        &mut self,
        bytes: &[u8],
        out: &mut Vec<u8>,
        mut on_end: impl FnMut(u32, ExchangeEnd<'_>),
    ) -> Result<Continuation, Http2Error> {
        if let Some(error) = self.endpoint.failure() {
            return Err(error);
        }
        let mut reader = self.endpoint.begin_call();
        let read = self.read(&mut reader, bytes, out, &mut on_end);
        self.endpoint.end_call(reader);
        if let Err(error) = read {
            if self.endpoint.fail(error) {
                write_goaway(0, error.code, error.what, out);
            }
            return Err(error);
        }
        let is_drained = self.is_going_away() && self.streams.len() == 0;
        Ok(Continuation::new(is_drained))
    }

    fn handle_frame(
        &mut self,
        frame: Frame<'_>,
        out: &mut Vec<u8>,
        on_end: &mut impl FnMut(u32, ExchangeEnd<'_>),
    ) -> Result<(), Http2Error> {
        match self.endpoint.handle_frame(frame, out)? {
            Event::Handled => Ok(()),
            Event::Block {
                stream,
                end_stream,
                block,
            } => {
                let mut fields = self.read_fields(&block)?;
                if self.takes_dns_media_type && fields.media_type == MediaType::Dns {
                    fields.media_type = MediaType::DnsMessage;
                }
                self.handle_fields((stream, end_stream), &fields, out, on_end)
            }
            Event::Data {
                stream,
                end_stream,
                data,
                flow_octets,
            } => self.handle_data((stream, end_stream), (data, flow_octets), out, on_end),
            Event::Reset { stream, code } => self.handle_reset(stream, code, on_end),
            Event::GoAway { last_stream, code } => {
                self.handle_goaway(last_stream, code, on_end);
                self.endpoint.count_trifle()
            }
            Event::StreamWindow { stream, octets } => {
                self.handle_stream_window(stream, octets, out, on_end)
            }
            Event::ConnectionWindow => {
                self.send_held_back(out);
                Ok(())
            }
            Event::Acknowledged => {
                for (id, stream) in self.streams.iter_mut() {
                    let window = &mut stream.receive_window;
                    window.acknowledge(id, self.stream_window, out);
                }
                Ok(())
            }
            Event::InitialWindow { change } => self.handle_initial_window(change, out),
        }
    }

    /// What a block of fields says.
    fn read_fields(&mut self, block: &[u8]) -> Result<ResponseFields, Http2Error> {
        if let Some(fields) = known_fields::find(block, |fields| *fields) {
            return Ok(fields);
        }
        let decoder = &self.endpoint.decoder;
        let (had_table, before) = (decoder.has_table(), decoder.table_changes());
        let mut fields = ResponseFields::default();
        self.endpoint
            .decode(block, |name, value| fields.add(name, value))?;
        if !had_table && self.endpoint.decoder.table_changes() == before {
            known_fields::remember(block, fields);
        }
        Ok(fields)
    }

    fn handle_fields(
        &mut self,
        (id, end_stream): (u32, bool),
        fields: &ResponseFields,
        out: &mut Vec<u8>,
        on_end: &mut impl FnMut(u32, ExchangeEnd<'_>),
    ) -> Result<(), Http2Error> {
        let Some(stream) = self.streams.get_mut(id) else {
            self.check_used(id)?;
            let step = |stream: &mut Stream| stream.handle_fields(fields, end_stream);
            return self.handle_cancelled(id, step, on_end);
        };
        let step = stream.handle_fields(fields, end_stream);
        if step == Step::GoesOn {
            // An interim response; one after the other is a way to keep us busy.
            return match fields.status {
                100..200 => self.endpoint.count_trifle(),
                _ => Ok(()),
            };
        }
        self.end_stream(id, step, &[], out, on_end);
        Ok(())
    }

    fn handle_data(
        &mut self,
        (id, end_stream): (u32, bool),
        (data, flow_octets): (&[u8], u32),
        out: &mut Vec<u8>,
        on_end: &mut impl FnMut(u32, ExchangeEnd<'_>),
    ) -> Result<(), Http2Error> {
        let Some(stream) = self.streams.get_mut(id) else {
            self.check_used(id)?;
            let step = |stream: &mut Stream| stream.handle_data(data.len(), end_stream);
            return self.handle_cancelled(id, step, on_end);
        };
        let step = stream.handle_data(data.len(), end_stream);
        let goes_on = (step == Step::GoesOn).then_some(id);
        let window = &mut stream.receive_window;
        window.take(flow_octets, self.stream_window, goes_on, out)?;
        let has_more = stream
            .surplus
            .as_ref()
            .is_some_and(|it| !it.body.is_empty());
        let is_cut = step == Step::GoesOn || has_more;
        if is_cut && stream.is_message() && step != Step::Broken {
            if stream.surplus.is_none() {
                stream.surplus = Some(take_spare(&mut self.spare));
            }
            if let Some(surplus) = &mut stream.surplus {
                surplus.body.extend_from_slice(data);
            }
        }
        if step != Step::GoesOn {
            self.end_stream(id, step, data, out, on_end);
        }
        Ok(())
    }

    /// Ends an exchange; `data` is the body unless the stream has collected one.
    fn end_stream(
        &mut self,
        id: u32,
        step: Step,
        data: &[u8],
        out: &mut Vec<u8>,
        on_end: &mut impl FnMut(u32, ExchangeEnd<'_>),
    ) {
        let Some(mut stream) = self.streams.remove(id) else {
            return;
        };
        self.endpoint.count_exchange();
        let surplus = stream.surplus.as_ref();
        let body = match surplus {
            Some(surplus) if !surplus.body.is_empty() => &surplus.body,
            _ => data,
        };
        let (end, reset) = match step {
            Step::Broken => (ExchangeEnd::Malformed, Some(ErrorCode::PROTOCOL_ERROR)),
            Step::TooLong => (stream.end_of_part(body), Some(ErrorCode::CANCEL)),
            // The rest of a request that is answered already is not needed (section 8.1).
            Step::Ended | Step::GoesOn if stream.has_unsent() => {
                (stream.end(body), Some(ErrorCode::CANCEL))
            }
            Step::Ended | Step::GoesOn => (stream.end(body), None),
        };
        on_end(stream.token, end);
        if let Some(code) = reset {
            write_reset(id, code, out);
        }
        self.release(&mut stream);
    }

    /// Takes what comes for a stream that is not open any more.
    fn handle_cancelled(
        &mut self,
        id: u32,
        handle: impl FnOnce(&mut Stream) -> Step,
        on_end: &mut impl FnMut(u32, ExchangeEnd<'_>),
    ) -> Result<(), Http2Error> {
        let found = self.cancelled.iter().position(|(known, _)| *known == id);
        let Some((place, (_, stream))) =
            found.and_then(|place| Some((place, self.cancelled.get_mut(place)?)))
        else {
            return self.endpoint.count_trifle();
        };
        let step = handle(stream);
        if step == Step::GoesOn {
            return Ok(());
        }
        if step == Step::Ended && matches!(stream.end(&[]), ExchangeEnd::Message(_)) {
            on_end(stream.token, ExchangeEnd::Late);
        }
        self.cancelled.remove(place);
        Ok(())
    }

    fn handle_reset(
        &mut self,
        id: u32,
        code: ErrorCode,
        on_end: &mut impl FnMut(u32, ExchangeEnd<'_>),
    ) -> Result<(), Http2Error> {
        let Some(mut stream) = self.streams.remove(id) else {
            self.check_used(id)?;
            return self.handle_cancelled(id, |_| Step::Broken, on_end);
        };
        self.endpoint.count_exchange();
        let end = match code {
            ErrorCode::REFUSED_STREAM => ExchangeEnd::NotProcessed,
            code => ExchangeEnd::Reset(u64::from(code.0)),
        };
        on_end(stream.token, end);
        self.release(&mut stream);
        Ok(())
    }

    /// Section 6.8: streams above the last one were not processed.
    fn handle_goaway(
        &mut self,
        last_stream: u32,
        code: ErrorCode,
        on_end: &mut impl FnMut(u32, ExchangeEnd<'_>),
    ) {
        self.going_away = Some(code);
        for id in self.streams.ids(|id, _| id > last_stream) {
            if let Some(mut stream) = self.streams.remove(id) {
                on_end(stream.token, ExchangeEnd::NotProcessed);
                self.release(&mut stream);
            }
        }
    }

    fn handle_stream_window(
        &mut self,
        id: u32,
        octets: u32,
        out: &mut Vec<u8>,
        on_end: &mut impl FnMut(u32, ExchangeEnd<'_>),
    ) -> Result<(), Http2Error> {
        let Some(stream) = self.streams.get_mut(id) else {
            self.check_used(id)?;
            return self.endpoint.count_trifle();
        };
        if octets == 0 {
            self.end_stream(id, Step::Broken, &[], out, on_end);
            return Ok(());
        }
        let is_held_back = stream.has_unsent();
        let Some(surplus) = stream.surplus.as_mut().filter(|_| is_held_back) else {
            // Nothing is to be sent on this stream any more.
            return self.endpoint.count_trifle();
        };
        surplus.send_window += i64::from(octets);
        if surplus.send_window > i64::from(WINDOW_MAX) {
            // A stream error (section 6.9.1).
            self.end_stream(id, Step::Broken, &[], out, on_end);
        } else {
            self.send_held_back(out);
        }
        Ok(())
    }

    /// Section 6.9.2.
    fn handle_initial_window(&mut self, change: i64, out: &mut Vec<u8>) -> Result<(), Http2Error> {
        for (_, stream) in self.streams.iter_mut() {
            let Some(surplus) = &mut stream.surplus else {
                continue;
            };
            surplus.send_window += change;
            if surplus.send_window > i64::from(WINDOW_MAX) {
                return Err(Http2Error::flow_control("a stream's window is too large"));
            }
        }
        self.send_held_back(out);
        Ok(())
    }

    /// Sends what the windows allow now, of the oldest stream first.
    fn send_held_back(&mut self, out: &mut Vec<u8>) {
        if self.held_back == 0 {
            return;
        }
        for id in self.streams.ids(|_, stream| stream.has_unsent()) {
            let Some(surplus) = self.streams.get_mut(id).and_then(|it| it.surplus.as_mut()) else {
                continue;
            };
            let rest = &surplus.unsent[surplus.unsent_start..];
            let sent = self.endpoint.write_data(id, rest, surplus.send_window, out);
            surplus.unsent_start += sent;
            surplus.send_window -= sent as i64;
            if surplus.unsent_start == surplus.unsent.len() {
                surplus.unsent.clear();
                self.held_back -= 1;
            }
        }
    }

    /// A stream that we have not opened cannot get anything (section 5.1).
    fn check_used(&self, id: u32) -> Result<(), Http2Error> {
        match id % 2 == 1 && id < self.next_id {
            true => Ok(()),
            false => Err(Http2Error::protocol("a frame for a stream that is idle")),
        }
    }

    fn spare_surplus(&mut self) -> Box<Surplus> {
        take_spare(&mut self.spare)
    }

    /// Takes back what a stream held.
    fn release(&mut self, stream: &mut Stream) {
        self.held_back -= u32::from(stream.has_unsent());
        let Some(mut surplus) = stream.surplus.take() else {
            return;
        };
        let octets = surplus.body.capacity() + surplus.unsent.capacity();
        let is_wanted = self.spare.is_none() || self.streams.len() > 0;
        if octets <= BUFFER_OCTETS_KEPT && is_wanted {
            surplus.body.clear();
            surplus.unsent.clear();
            surplus.next = self.spare.take();
            self.spare = Some(surplus);
        }
        if self.streams.len() == 0
            && let Some(first) = &mut self.spare
        {
            // An idle connection keeps one.
            first.next = None;
        }
    }
}

/// A buffer that was used before, or a new one.
fn take_spare(spare: &mut Option<Box<Surplus>>) -> Box<Surplus> {
    match spare.take() {
        None => Box::default(),
        Some(mut first) => {
            *spare = first.next.take();
            first
        }
    }
}
