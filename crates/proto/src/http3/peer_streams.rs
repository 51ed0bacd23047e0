//! The peer's unidirectional streams: control, QPACK's two, and whatever else it opens (RFC 9114,
//! section 6.2).

use super::error::{ErrorCode, Http3Error};
use super::frame::{self, is_reserved};
use super::varint;
use crate::qpack::{DecoderInstructions, check_encoder_instructions};

/// Types of streams (RFC 9114, section 11.2.4; RFC 9204, section 4.2).
pub(super) const CONTROL: u64 = 0x00;
const PUSH: u64 = 0x01;
const QPACK_ENCODER: u64 = 0x02;
const QPACK_DECODER: u64 = 0x03;

/// Most octets of a parsed frame on the control stream; those seen in practice have fewer than 100.
const CONTROL_FRAME_OCTETS_MAX: u64 = 4_096;

/// Settings of one frame; those seen in practice are fewer than 10.
const SETTINGS_MAX: usize = 64;

/// SETTINGS_MAX_FIELD_SECTION_SIZE (RFC 9114, section 7.2.4.1).
const MAX_FIELD_SECTION_SIZE: u64 = 0x06;

/// Which end we are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The peer is a server.
    Client,
    /// The peer is a client.
    Server,
}

/// How far a stream is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamEnd {
    /// More may come.
    Open,
    /// The peer has finished or reset it.
    Closed,
}

/// How to proceed with a stream after its octets have been handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UniStep {
    /// Nothing.
    None,
    /// This stream is not read: STOP_SENDING with this code.
    Stop(ErrorCode),
    /// The peer accepts no requests on streams from this ID on (GOAWAY).
    GoAway(u64),
}

/// The state of the peer's unidirectional streams.
#[derive(Debug)]
pub struct PeerStreams {
    role: Role,
    streams: Vec<(u64, Kind)>,
    /// Types of which there must be but one: control, encoder, decoder.
    seen: [bool; 3],
    control: Control,
    decoder: DecoderInstructions,
}

/// One stream.
#[derive(Debug)]
enum Kind {
    /// Octets of a type that is cut off; at most seven.
    Unknown(Vec<u8>),
    Control,
    Encoder,
    Decoder,
    Ignored,
}

/// The state of the control stream.
#[derive(Debug, Default)]
struct Control {
    /// A frame that is cut off.
    partial: Vec<u8>,
    /// Octets of the payload of an unknown frame that are still to come.
    skipped: u64,
    settings_seen: bool,
    field_section_octets_max: Option<u64>,
    goaway: Option<u64>,
    push_id_max: Option<u64>,
}

impl PeerStreams {
    /// Nothing has come yet.
    pub fn new(role: Role) -> Self {
        PeerStreams {
            role,
            streams: Vec::new(),
            seen: [false; 3],
            control: Control::default(),
            decoder: DecoderInstructions::default(),
        }
    }

    /// The largest field section that the peer takes, counted as RFC 9114, section 4.2.2 does.
    pub fn field_section_octets_max(&self) -> Option<u64> {
        self.control.field_section_octets_max
    }

    /// True once the peer's SETTINGS have come.
    pub fn settings_seen(&self) -> bool {
        self.control.settings_seen
    }

    /// Handles the next octets of stream `id`.
    ///
    /// # Errors
    /// Close the connection with the error's code.
    pub fn handle_octets(
        &mut self,
        id: u64,
        octets: &[u8],
        end: StreamEnd,
    ) -> Result<UniStep, Http3Error> {
        let known = self.streams.iter().position(|(known, _)| *known == id);
        let place = known.unwrap_or(self.streams.len());
        if known.is_none() {
            self.streams.push((id, Kind::Unknown(Vec::new())));
        }
        let (step, rest) = self.identify(place, octets)?;
        if step != UniStep::None {
            self.streams[place].1 = Kind::Ignored;
        }
        let step = match &self.streams[place].1 {
            Kind::Unknown(_) | Kind::Ignored => step,
            Kind::Control => self.control.handle_octets(rest, self.role)?,
            Kind::Encoder if check_encoder_instructions(rest) => step,
            Kind::Decoder if self.decoder.check(rest) => step,
            Kind::Encoder => {
                return Err(Http3Error::new(
                    ErrorCode::QPACK_ENCODER_STREAM_ERROR,
                    "an insertion into a table without capacity",
                ));
            }
            Kind::Decoder => {
                return Err(Http3Error::new(
                    ErrorCode::QPACK_DECODER_STREAM_ERROR,
                    "an acknowledgment of what was never sent",
                ));
            }
        };
        if end == StreamEnd::Closed {
            let (_, kind) = self.streams.swap_remove(place);
            // A stream that ends within its type is of no kind, and no error (section 6.2).
            if matches!(kind, Kind::Control | Kind::Encoder | Kind::Decoder) {
                return Err(Http3Error::new(
                    ErrorCode::CLOSED_CRITICAL_STREAM,
                    "a stream was closed that has to stay open",
                ));
            }
            // The stream has no sender to stop.
            return Ok(match step {
                UniStep::Stop(_) => UniStep::None,
                step => step,
            });
        }
        Ok(step)
    }

    /// Reads the type of a stream if it is not known yet; returns the octets behind it.
    fn identify<'a>(
        &mut self,
        place: usize,
        octets: &'a [u8],
    ) -> Result<(UniStep, &'a [u8]), Http3Error> {
        let Kind::Unknown(partial) = &mut self.streams[place].1 else {
            return Ok((UniStep::None, octets));
        };
        let before = partial.len();
        // The longest type has eight octets.
        partial.extend_from_slice(&octets[..octets.len().min(8)]);
        let mut rest = &partial[..];
        let Some(kind) = varint::read(&mut rest) else {
            return Ok((UniStep::None, &[]));
        };
        let type_octets = partial.len() - rest.len();
        let rest = &octets[type_octets - before..];
        let (kind, step) = self.classify(kind)?;
        self.streams[place].1 = kind;
        Ok((step, rest))
    }

    fn classify(&mut self, kind: u64) -> Result<(Kind, UniStep), Http3Error> {
        let (kind, index) = match kind {
            CONTROL => (Kind::Control, 0),
            QPACK_ENCODER => (Kind::Encoder, 1),
            QPACK_DECODER => (Kind::Decoder, 2),
            PUSH => {
                // No push ID has been allowed; clients cannot push at all (section 6.2.2).
                let code = match self.role {
                    Role::Client => ErrorCode::ID_ERROR,
                    Role::Server => ErrorCode::STREAM_CREATION_ERROR,
                };
                return Err(Http3Error::new(code, "a push stream"));
            }
            _ => {
                let step = UniStep::Stop(ErrorCode::STREAM_CREATION_ERROR);
                return Ok((Kind::Ignored, step));
            }
        };
        if std::mem::replace(&mut self.seen[index], true) {
            return Err(Http3Error::new(
                ErrorCode::STREAM_CREATION_ERROR,
                "a second stream of a type that there is one of",
            ));
        }
        Ok((kind, UniStep::None))
    }
}

impl Control {
    fn handle_octets(&mut self, octets: &[u8], role: Role) -> Result<UniStep, Http3Error> {
        let mut step = UniStep::None;
        let mut rest = octets;
        while !rest.is_empty() {
            if self.skipped > 0 {
                let skipped = self.skipped.min(rest.len() as u64);
                self.skipped -= skipped;
                rest = &rest[skipped as usize..];
                continue;
            }
            // One octet more than before until a frame is whole: frames are few and short.
            let (first, after) = rest.split_at(self.missing_octets().min(rest.len()));
            self.partial.extend_from_slice(first);
            rest = after;
            let handled = self.handle_partial(role)?;
            if handled != UniStep::None {
                step = handled;
            }
        }
        Ok(step)
    }

    /// How many octets can be added without going beyond the frame at hand.
    fn missing_octets(&self) -> usize {
        match self.header() {
            Some((_, octets, header_octets)) => {
                let whole = header_octets as u64 + octets;
                usize::try_from(whole - self.partial.len() as u64).unwrap_or(usize::MAX)
            }
            None => 1,
        }
    }

    /// Type, length and octets of both, of the frame in `partial`.
    fn header(&self) -> Option<(u64, u64, usize)> {
        let mut rest = &self.partial[..];
        let kind = varint::read(&mut rest)?;
        let octets = varint::read(&mut rest)?;
        Some((kind, octets, self.partial.len() - rest.len()))
    }

    fn handle_partial(&mut self, role: Role) -> Result<UniStep, Http3Error> {
        let Some((kind, octets, header_octets)) = self.header() else {
            return Ok(UniStep::None);
        };
        self.check_kind(kind)?;
        if !is_known(kind) {
            self.skipped = octets;
            self.partial.clear();
            return Ok(UniStep::None);
        }
        if octets > CONTROL_FRAME_OCTETS_MAX {
            return Err(Http3Error::new(
                ErrorCode::EXCESSIVE_LOAD,
                "a frame of the control stream is too long",
            ));
        }
        if self.partial.len() < header_octets + octets as usize {
            return Ok(UniStep::None);
        }
        let frame = std::mem::take(&mut self.partial);
        self.handle_frame(kind, &frame[header_octets..], role)
    }

    /// # Errors
    /// The frame must not be on the control stream, or not there (sections 7.2.1 to 7.2.8).
    fn check_kind(&self, kind: u64) -> Result<(), Http3Error> {
        if !self.settings_seen && kind != frame::SETTINGS {
            return Err(Http3Error::new(
                ErrorCode::MISSING_SETTINGS,
                "the control stream does not begin with SETTINGS",
            ));
        }
        let is_second = self.settings_seen && kind == frame::SETTINGS;
        let is_other = matches!(kind, frame::DATA | frame::HEADERS | frame::PUSH_PROMISE);
        if is_second || is_other || is_reserved(kind) {
            return Err(Http3Error::new(
                ErrorCode::FRAME_UNEXPECTED,
                "a frame that must not be on the control stream",
            ));
        }
        Ok(())
    }

    fn handle_frame(
        &mut self,
        kind: u64,
        payload: &[u8],
        role: Role,
    ) -> Result<UniStep, Http3Error> {
        if kind == frame::SETTINGS {
            self.settings_seen = true;
            self.read_settings(payload)?;
            return Ok(UniStep::None);
        }
        let id = read_whole(payload)?;
        match (kind, role) {
            (frame::GOAWAY, _) => self.handle_goaway(id, role),
            (frame::MAX_PUSH_ID, Role::Client) => Err(Http3Error::new(
                ErrorCode::FRAME_UNEXPECTED,
                "MAX_PUSH_ID from a server",
            )),
            (frame::MAX_PUSH_ID, Role::Server) if self.push_id_max.is_some_and(|max| id < max) => {
                Err(Http3Error::new(
                    ErrorCode::ID_ERROR,
                    "MAX_PUSH_ID goes down",
                ))
            }
            (frame::MAX_PUSH_ID, Role::Server) => {
                self.push_id_max = Some(id);
                Ok(UniStep::None)
            }
            // CANCEL_PUSH: nothing has been promised (section 7.2.3).
            _ => Err(Http3Error::new(
                ErrorCode::ID_ERROR,
                "CANCEL_PUSH without a push",
            )),
        }
    }

    /// Section 5.2: identifiers of requests or pushes, which must not go up.
    fn handle_goaway(&mut self, id: u64, role: Role) -> Result<UniStep, Http3Error> {
        let is_request = id.is_multiple_of(4);
        let goes_up = self.goaway.is_some_and(|before| id > before);
        if goes_up || (role == Role::Client && !is_request) {
            return Err(Http3Error::new(ErrorCode::ID_ERROR, "a wrong ID in GOAWAY"));
        }
        self.goaway = Some(id);
        Ok(match role {
            Role::Client => UniStep::GoAway(id),
            Role::Server => UniStep::None,
        })
    }

    fn read_settings(&mut self, payload: &[u8]) -> Result<(), Http3Error> {
        let mut seen = Vec::new();
        let mut rest = payload;
        while !rest.is_empty() {
            let cut = Http3Error::new(ErrorCode::FRAME_ERROR, "SETTINGS ends within a setting");
            let id = varint::read(&mut rest).ok_or(cut)?;
            let value = varint::read(&mut rest).ok_or(cut)?;
            // 0x00 and 0x02 to 0x05 are HTTP/2's (section 7.2.4.1).
            let is_wrong = matches!(id, 0x00 | 0x02..=0x05) || seen.contains(&id);
            if is_wrong || seen.len() == SETTINGS_MAX {
                return Err(Http3Error::new(
                    ErrorCode::SETTINGS_ERROR,
                    "a setting that is not allowed, twice there, or one of too many",
                ));
            }
            seen.push(id);
            if id == MAX_FIELD_SECTION_SIZE {
                self.field_section_octets_max = Some(value);
            }
        }
        Ok(())
    }
}

/// True for frames of the control stream that are parsed.
fn is_known(kind: u64) -> bool {
    matches!(
        kind,
        frame::SETTINGS | frame::GOAWAY | frame::MAX_PUSH_ID | frame::CANCEL_PUSH
    )
}

/// The one integer that a payload consists of.
fn read_whole(payload: &[u8]) -> Result<u64, Http3Error> {
    let mut rest = payload;
    let id = varint::read(&mut rest).filter(|_| rest.is_empty());
    id.ok_or(Http3Error::new(
        ErrorCode::FRAME_ERROR,
        "a payload that is not one integer",
    ))
}
