//! Common to both endpoints of a connection: settings, pings, the connection's windows, field
//! blocks in several frames, and limits on useless work that a peer can cause.

use super::frame::{
    ErrorCode, Frame, FrameReader, Http2Error, PAYLOAD_OCTETS_MAX, WINDOW_INITIAL, WINDOW_MAX,
    flag, kind, setting, write_header, write_window_update,
};
use crate::hpack::{Decoder, Encoder};
use std::borrow::Cow;

/// Octets of a field block in several frames. One frame may hold as many.
const BLOCK_OCTETS_MAX: usize = PAYLOAD_OCTETS_MAX;

/// CONTINUATION frames of one field block; empty ones cost their sender next to nothing.
const CONTINUATIONS_MAX: u8 = 64;

/// Frames that do nothing for any exchange, in a row, before we hang up (section 10.5). Ended
/// exchanges and calls of `handle_bytes` make up for some.
const TRIFLES_MAX: u32 = 10_000;

/// Credit of a call of `handle_bytes`: single pings never exceed the limit.
const TRIFLES_A_CALL: u32 = 8;

/// Credit of an ended exchange.
const TRIFLES_AN_EXCHANGE: u32 = 16;

/// The peer's settings (section 6.5.2).
#[derive(Clone, Copy, Debug)]
pub(super) struct PeerSettings {
    pub(super) streams_max: u32,
    pub(super) initial_window: u32,
    /// Octets of payload in the frames that we send: never more than 16,384.
    pub(super) frame_octets_max: usize,
}

/// A field block in several frames.
#[derive(Debug)]
struct PartialBlock {
    stream: u32,
    end_stream: bool,
    octets: Vec<u8>,
    continuations: u8,
}

/// A frame that is the business of one side or of one stream.
pub(super) enum Event<'a> {
    /// Nothing is left to do.
    Handled,
    /// A whole field block of HEADERS.
    Block {
        stream: u32,
        end_stream: bool,
        block: Cow<'a, [u8]>,
    },
    /// DATA without padding; `flow_octets` count for the windows, the connection's is done.
    Data {
        stream: u32,
        end_stream: bool,
        data: &'a [u8],
        flow_octets: u32,
    },
    /// RST_STREAM.
    Reset { stream: u32, code: ErrorCode },
    /// GOAWAY.
    GoAway { last_stream: u32, code: ErrorCode },
    /// WINDOW_UPDATE of a stream.
    StreamWindow { stream: u32, octets: u32 },
    /// The connection's window has grown.
    ConnectionWindow,
    /// Our settings are in force.
    Acknowledged,
    /// SETTINGS_INITIAL_WINDOW_SIZE has changed all streams' windows by so much.
    InitialWindow { change: i64 },
}

/// One end of a connection, without its streams.
#[derive(Debug)]
pub(super) struct Endpoint {
    reader: FrameReader,
    pub(super) decoder: Decoder,
    pub(super) encoder: Encoder,
    pub(super) peer: PeerSettings,
    /// Octets of DATA that we may send.
    pub(super) send_window: u32,
    /// Octets of DATA that the peer may send, and the size to which the window is raised when half
    /// is used.
    receive_window: u32,
    receive_window_max: u32,
    /// SETTINGS_HEADER_TABLE_SIZE as we sent it, in force from the acknowledgement on.
    table_octets: u32,
    /// The largest SETTINGS_ENABLE_PUSH that the peer may send: a server sends 0.
    enable_push_max: u32,
    pub(super) settings_received: bool,
    pub(super) settings_acknowledged: bool,
    block: Option<Box<PartialBlock>>,
    trifles: u32,
    failed: Option<Http2Error>,
}

impl Endpoint {
    /// An endpoint that has sent its settings, and a WINDOW_UPDATE up to `receive_window_max` for
    /// the connection. `streams_max` is assumed until the peer sets another limit; the peer may
    /// send a SETTINGS_ENABLE_PUSH up to `enable_push_max`.
    pub(super) fn new(
        streams_max: u32,
        enable_push_max: u32,
        table_octets: u32,
        receive_window_max: u32,
    ) -> Self {
        let receive_window = receive_window_max.clamp(WINDOW_INITIAL, WINDOW_MAX);
        Endpoint {
            reader: FrameReader::default(),
            decoder: Decoder::default(),
            encoder: Encoder::default(),
            peer: PeerSettings {
                streams_max,
                initial_window: WINDOW_INITIAL,
                frame_octets_max: PAYLOAD_OCTETS_MAX,
            },
            send_window: WINDOW_INITIAL,
            receive_window,
            receive_window_max: receive_window,
            table_octets,
            enable_push_max,
            settings_received: false,
            settings_acknowledged: false,
            block: None,
            trifles: 0,
            failed: None,
        }
    }

    /// Appends the WINDOW_UPDATE that goes with the settings, if the window is not the default.
    pub(super) fn write_first_window(&self, out: &mut Vec<u8>) {
        let more = self.receive_window_max - WINDOW_INITIAL;
        if more > 0 {
            write_window_update(0, more, out);
        }
    }

    /// The error that has ended the connection.
    pub(super) fn failure(&self) -> Option<Http2Error> {
        self.failed
    }

    /// Records a connection error; true for the first, which has to be sent to the peer.
    pub(super) fn fail(&mut self, error: Http2Error) -> bool {
        let is_first = self.failed.is_none();
        self.failed.get_or_insert(error);
        is_first
    }

    /// The reader, for the time of one call; to be given back with [`Endpoint::end_call`].
    pub(super) fn begin_call(&mut self) -> FrameReader {
        self.trifles = self.trifles.saturating_sub(TRIFLES_A_CALL);
        std::mem::take(&mut self.reader)
    }

    pub(super) fn end_call(&mut self, reader: FrameReader) {
        self.reader = reader;
    }

    /// Counts a frame that does nothing for any exchange.
    pub(super) fn count_trifle(&mut self) -> Result<(), Http2Error> {
        self.trifles += 1;
        match self.trifles > TRIFLES_MAX {
            false => Ok(()),
            true => Err(Http2Error::new(
                ErrorCode::ENHANCE_YOUR_CALM,
                "too many frames that do nothing",
            )),
        }
    }

    pub(super) fn count_exchange(&mut self) {
        self.trifles = self.trifles.saturating_sub(TRIFLES_AN_EXCHANGE);
    }

    /// True if HEADERS may come now, and this number of octets of DATA without a window update.
    #[inline]
    pub(super) fn takes_silently(&self, flow_octets: u32) -> bool {
        let left = self.receive_window.checked_sub(flow_octets);
        let is_silent = left.is_some_and(|left| left > self.receive_window_max / 2);
        is_silent && self.settings_received && self.block.is_none()
    }

    /// Takes DATA that [`Endpoint::takes_silently`].
    #[inline]
    pub(super) fn take_silently(&mut self, flow_octets: u32) {
        self.receive_window -= flow_octets;
    }

    /// Decodes a field block.
    pub(super) fn decode(
        &mut self,
        block: &[u8],
        on_field: impl FnMut(&[u8], &[u8]),
    ) -> Result<(), Http2Error> {
        let decoded = self.decoder.decode(block, on_field);
        decoded.map_err(|error| Http2Error::new(ErrorCode::COMPRESSION_ERROR, error.what()))
    }

    /// Handles a frame as far as both sides do it alike.
    pub(super) fn handle_frame<'a>(
        &mut self,
        frame: Frame<'a>,
        out: &mut Vec<u8>,
    ) -> Result<Event<'a>, Http2Error> {
        if self.block.is_some() {
            return self.handle_continuation(frame);
        }
        if !self.settings_received && (frame.kind != kind::SETTINGS || frame.has(flag::ACK)) {
            return Err(Http2Error::protocol("the first frame is not SETTINGS"));
        }
        match frame.kind {
            kind::DATA => self.handle_data(frame, out),
            kind::HEADERS => self.handle_headers(frame),
            kind::SETTINGS => self.handle_settings(frame, out),
            kind::PING => self.handle_ping(frame, out),
            kind::WINDOW_UPDATE => self.handle_window_update(frame),
            kind::RST_STREAM => on_stream(frame)?.number().map(|code| Event::Reset {
                stream: frame.stream,
                code: ErrorCode(code),
            }),
            kind::GOAWAY => goaway(on_connection(frame)?),
            kind::PRIORITY => self.handle_priority(frame),
            kind::PUSH_PROMISE => Err(Http2Error::protocol("PUSH_PROMISE, although refused")),
            kind::CONTINUATION => Err(Http2Error::protocol("CONTINUATION without HEADERS")),
            _ => self.count_trifle().map(|()| Event::Handled),
        }
    }

    fn handle_data<'a>(
        &mut self,
        frame: Frame<'a>,
        out: &mut Vec<u8>,
    ) -> Result<Event<'a>, Http2Error> {
        let data = on_stream(frame)?.unpadded()?;
        // Padding counts, too (section 6.9.1).
        let flow_octets = frame.payload.len() as u32;
        self.receive_window =
            self.receive_window
                .checked_sub(flow_octets)
                .ok_or(Http2Error::flow_control(
                    "more DATA than the connection's window allows",
                ))?;
        if self.receive_window <= self.receive_window_max / 2 {
            write_window_update(0, self.receive_window_max - self.receive_window, out);
            self.receive_window = self.receive_window_max;
        }
        let end_stream = frame.has(flag::END_STREAM);
        if data.is_empty() && !end_stream {
            self.count_trifle()?;
        }
        Ok(Event::Data {
            stream: frame.stream,
            end_stream,
            data,
            flow_octets,
        })
    }

    fn handle_headers<'a>(&mut self, frame: Frame<'a>) -> Result<Event<'a>, Http2Error> {
        let fragment = on_stream(frame)?.fragment()?;
        let end_stream = frame.has(flag::END_STREAM);
        if frame.has(flag::END_HEADERS) {
            return Ok(Event::Block {
                stream: frame.stream,
                end_stream,
                block: Cow::Borrowed(fragment),
            });
        }
        self.block = Some(Box::new(PartialBlock {
            stream: frame.stream,
            end_stream,
            octets: fragment.to_vec(),
            continuations: 0,
        }));
        Ok(Event::Handled)
    }

    /// Between HEADERS and its last CONTINUATION nothing else may come (section 6.10).
    fn handle_continuation<'a>(&mut self, frame: Frame<'a>) -> Result<Event<'a>, Http2Error> {
        let Some(mut block) = self.block.take() else {
            return Ok(Event::Handled);
        };
        if frame.kind != kind::CONTINUATION || frame.stream != block.stream {
            return Err(Http2Error::protocol("a field block is interrupted"));
        }
        block.continuations += 1;
        let octets = block.octets.len() + frame.payload.len();
        if block.continuations > CONTINUATIONS_MAX || octets > BLOCK_OCTETS_MAX {
            let what = "a field block of too many frames or bytes";
            return Err(Http2Error::new(ErrorCode::ENHANCE_YOUR_CALM, what));
        }
        block.octets.extend_from_slice(frame.payload);
        if frame.has(flag::END_HEADERS) {
            return Ok(Event::Block {
                stream: block.stream,
                end_stream: block.end_stream,
                block: Cow::Owned(block.octets),
            });
        }
        self.block = Some(block);
        Ok(Event::Handled)
    }

    fn handle_settings<'a>(
        &mut self,
        frame: Frame<'a>,
        out: &mut Vec<u8>,
    ) -> Result<Event<'a>, Http2Error> {
        on_connection(frame)?;
        if frame.has(flag::ACK) {
            return self.handle_settings_ack(frame);
        }
        if self.settings_received {
            self.count_trifle()?;
        } else {
            // Without that setting there is no limit (section 6.5.2).
            self.peer.streams_max = u32::MAX;
        }
        self.settings_received = true;
        let before = self.peer.initial_window;
        let (settings, rest) = frame.payload.as_chunks::<6>();
        if !rest.is_empty() {
            return Err(Http2Error::frame_size(
                "SETTINGS of a length that is not 6 times N",
            ));
        }
        for [id_high, id_low, value @ ..] in settings {
            let id = u16::from_be_bytes([*id_high, *id_low]);
            self.apply_setting(id, u32::from_be_bytes(*value))?;
        }
        write_header(0, kind::SETTINGS, flag::ACK, 0, out);
        match i64::from(self.peer.initial_window) - i64::from(before) {
            0 => Ok(Event::Handled),
            change => Ok(Event::InitialWindow { change }),
        }
    }

    fn handle_settings_ack<'a>(&mut self, frame: Frame<'a>) -> Result<Event<'a>, Http2Error> {
        if !frame.payload.is_empty() {
            return Err(Http2Error::frame_size(
                "an acknowledgement of SETTINGS is not empty",
            ));
        }
        if self.settings_acknowledged {
            return self.count_trifle().map(|()| Event::Handled);
        }
        self.settings_acknowledged = true;
        self.decoder.set_table_limit(self.table_octets);
        Ok(Event::Acknowledged)
    }

    /// Section 6.5.2; unknown settings are ignored.
    fn apply_setting(&mut self, id: u16, value: u32) -> Result<(), Http2Error> {
        match id {
            setting::HEADER_TABLE_SIZE => self.encoder.set_table_limit(value),
            setting::ENABLE_PUSH if value > self.enable_push_max => {
                return Err(Http2Error::protocol("SETTINGS_ENABLE_PUSH is not allowed"));
            }
            setting::MAX_CONCURRENT_STREAMS => self.peer.streams_max = value,
            setting::INITIAL_WINDOW_SIZE if value > WINDOW_MAX => {
                return Err(Http2Error::flow_control(
                    "SETTINGS_INITIAL_WINDOW_SIZE too large",
                ));
            }
            setting::INITIAL_WINDOW_SIZE => self.peer.initial_window = value,
            setting::MAX_FRAME_SIZE if !(16_384..1 << 24).contains(&value) => {
                return Err(Http2Error::protocol(
                    "SETTINGS_MAX_FRAME_SIZE out of its range",
                ));
            }
            _ => {}
        }
        Ok(())
    }

    fn handle_ping<'a>(
        &mut self,
        frame: Frame<'a>,
        out: &mut Vec<u8>,
    ) -> Result<Event<'a>, Http2Error> {
        on_connection(frame)?;
        if frame.payload.len() != 8 {
            return Err(Http2Error::frame_size("PING has not eight bytes"));
        }
        self.count_trifle()?;
        if !frame.has(flag::ACK) {
            write_header(8, kind::PING, flag::ACK, 0, out);
            out.extend_from_slice(frame.payload);
        }
        Ok(Event::Handled)
    }

    fn handle_window_update<'a>(&mut self, frame: Frame<'a>) -> Result<Event<'a>, Http2Error> {
        let octets = frame.number()? & WINDOW_MAX;
        if frame.stream != 0 {
            return Ok(Event::StreamWindow {
                stream: frame.stream,
                octets,
            });
        }
        if octets == 0 {
            return Err(Http2Error::protocol("WINDOW_UPDATE by nothing"));
        }
        self.count_trifle()?;
        let window = self.send_window + octets;
        if window > WINDOW_MAX {
            return Err(Http2Error::flow_control(
                "the connection's window is too large",
            ));
        }
        self.send_window = window;
        Ok(Event::ConnectionWindow)
    }

    /// Section 6.3; priorities are ignored.
    fn handle_priority<'a>(&mut self, frame: Frame<'a>) -> Result<Event<'a>, Http2Error> {
        if on_stream(frame)?.payload.len() != 5 {
            return Err(Http2Error::frame_size("PRIORITY has not five bytes"));
        }
        self.count_trifle().map(|()| Event::Handled)
    }

    /// Appends as much of `data` as the windows allow, in DATA frames; the last of them ends the
    /// stream. Returns how many octets that were.
    pub(super) fn write_data(
        &mut self,
        stream: u32,
        data: &[u8],
        stream_window: i64,
        out: &mut Vec<u8>,
    ) -> usize {
        let window = i64::from(self.send_window).min(stream_window).max(0);
        let allowed = data.len().min(window as usize);
        self.send_window -= allowed as u32;
        let mut rest = &data[..allowed];
        while !rest.is_empty() {
            let (payload, after) = rest.split_at(rest.len().min(self.peer.frame_octets_max));
            rest = after;
            let is_last = rest.is_empty() && allowed == data.len();
            let flags = if is_last { flag::END_STREAM } else { 0 };
            write_header(payload.len(), kind::DATA, flags, stream, out);
            out.extend_from_slice(payload);
        }
        allowed
    }
}

/// What the peer may still send on one stream.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ReceiveWindow(i64);

impl ReceiveWindow {
    /// The window of a new stream. Until the peer has acknowledged our settings, it may count on
    /// the default.
    pub(super) fn new(octets: u32, acknowledged: bool) -> Self {
        let octets = match acknowledged {
            true => octets,
            false => octets.max(WINDOW_INITIAL),
        };
        ReceiveWindow(i64::from(octets))
    }

    /// True if this number of octets is allowed.
    #[inline]
    pub(super) fn allows(&self, octets: u32) -> bool {
        self.0 >= i64::from(octets)
    }

    /// The peer has acknowledged our settings, and counts on no more than `max` from now on.
    pub(super) fn acknowledge(&mut self, stream: u32, max: u32, out: &mut Vec<u8>) {
        self.0 -= i64::from(WINDOW_INITIAL.saturating_sub(max));
        self.update(stream, max, out);
    }

    /// Takes octets of a stream; if it continues and half of `max` is used, the window is raised.
    pub(super) fn take(
        &mut self,
        octets: u32,
        max: u32,
        goes_on: Option<u32>,
        out: &mut Vec<u8>,
    ) -> Result<(), Http2Error> {
        self.0 -= i64::from(octets);
        if self.0 < 0 {
            let what = "more DATA than the stream's window allows";
            return Err(Http2Error::flow_control(what));
        }
        if let Some(stream) = goes_on {
            self.update(stream, max, out);
        }
        Ok(())
    }

    fn update(&mut self, stream: u32, max: u32, out: &mut Vec<u8>) {
        let max = i64::from(max);
        if self.0 <= max / 2 {
            write_window_update(stream, (max - self.0) as u32, out);
            self.0 = max;
        }
    }
}

/// The frame, if it belongs to a stream as it must.
fn on_stream(frame: Frame<'_>) -> Result<Frame<'_>, Http2Error> {
    match frame.stream {
        0 => Err(Http2Error::protocol("a frame of a stream has none")),
        _ => Ok(frame),
    }
}

/// The frame, if it belongs to the connection as it must.
fn on_connection(frame: Frame<'_>) -> Result<Frame<'_>, Http2Error> {
    match frame.stream {
        0 => Ok(frame),
        _ => Err(Http2Error::protocol(
            "a frame of the connection has a stream",
        )),
    }
}

/// Section 6.8.
fn goaway(frame: Frame<'_>) -> Result<Event<'_>, Http2Error> {
    let number = |at: usize| frame.payload.get(at..)?.first_chunk().copied();
    let (Some(last_stream), Some(code)) = (number(0), number(4)) else {
        return Err(Http2Error::frame_size("GOAWAY is too short"));
    };
    Ok(Event::GoAway {
        last_stream: u32::from_be_bytes(last_stream) & WINDOW_MAX,
        code: ErrorCode(u32::from_be_bytes(code)),
    })
}
