//! [`Capture`]: the queries of a capture or log, one by one.

use std::io::Read;

use crate::assembly::Assembly;
use crate::detect::{SAMPLE_OCTETS, detect};
use crate::dnstap::DnstapReader;
use crate::error::CaptureError;
use crate::format::Format;
use crate::input::Input;
use crate::observed::Observed;
use crate::packets::Packet;
use crate::pcap::PcapReader;
use crate::pcapng::PcapngReader;
use crate::query_log::LogReader;
use crate::skipped::Skipped;

/// How a capture is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Its format, if the user knows it; else it is found from the content.
    pub format: Option<Format>,
    /// Ports that the servers listen on, for captures of packets.
    pub ports: Vec<u16>,
    /// How long a query waits for its response, in nanoseconds of capture time.
    pub timeout_ns: u64,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            format: None,
            ports: vec![53],
            timeout_ns: 5_000_000_000,
        }
    }
}

/// An iterator over the queries of a capture, in its order.
///
/// Holds what waits for its response (bounded), open TCP connections and incomplete datagrams.
pub struct Capture<R> {
    input: Input<R>,
    format: Format,
    source: Source,
    assembly: Assembly,
    end: Option<CaptureError>,
    is_finished: bool,
}

enum Source {
    Packets(PacketSource),
    Dnstap(DnstapReader),
    Log(LogReader),
}

impl<R: Read> Capture<R> {
    /// Looks at the start of `reader` and finds out what it is.
    ///
    /// # Errors
    /// It is empty, compressed, of no known format or another than asked for, or of an unknown
    /// link type or variant; or its header is cut off.
    pub fn new(reader: R, options: &Options) -> Result<Self, CaptureError> {
        let mut input = Input::new(reader);
        let format = detect(input.peek(SAMPLE_OCTETS)?, options.format)?;
        let source = match format {
            Format::Pcap => Source::Packets(PacketSource::Pcap(PcapReader::new(&mut input)?)),
            Format::Pcapng => Source::Packets(PacketSource::Pcapng(PcapngReader::new())),
            Format::Dnstap => Source::Dnstap(DnstapReader::new(&mut input)?),
            Format::Bind | Format::Unbound | Format::CoreDns => Source::Log(LogReader::new(format)),
        };
        Ok(Capture {
            input,
            format,
            source,
            assembly: Assembly::new(options.ports.clone(), options.timeout_ns),
            end: None,
            is_finished: false,
        })
    }

    /// What the content is.
    pub fn format(&self) -> Format {
        self.format
    }

    /// What was skipped so far.
    pub fn skipped(&self) -> &Skipped {
        &self.assembly.skipped
    }

    /// Why reading ended before the end of the file; `None` if it did not, or not yet.
    pub fn end(&self) -> Option<&CaptureError> {
        self.end.as_ref()
    }

    /// Octets read so far.
    pub fn offset(&self) -> u64 {
        self.input.offset()
    }

    /// Reads the next record; false at the end.
    fn advance(&mut self) -> Result<bool, CaptureError> {
        let assembly = &mut self.assembly;
        match &mut self.source {
            Source::Packets(source) => {
                let mut packet = std::mem::take(&mut assembly.packet);
                let more = source.read(&mut self.input, &mut packet, &mut assembly.skipped)?;
                if more && let Err(reason) = assembly.packet(&packet) {
                    assembly.skipped.count(reason);
                }
                assembly.packet = packet;
                Ok(more)
            }
            Source::Dnstap(reader) => reader.read(&mut self.input, assembly),
            Source::Log(reader) => reader.read(&mut self.input, assembly),
        }
    }

    fn finish(&mut self) {
        let assembly = &mut self.assembly;
        self.is_finished = true;
        assembly.finish();
    }
}

impl<R: Read> Iterator for Capture<R> {
    type Item = Observed;

    fn next(&mut self) -> Option<Observed> {
        loop {
            let assembly = &mut self.assembly;
            let now_ns = (!self.is_finished).then_some(assembly.now_ns);
            let ready = assembly.pairing.pop(now_ns, &mut assembly.skipped);
            if ready.is_some() || self.is_finished {
                return ready;
            }
            match self.advance() {
                Ok(true) => {}
                Ok(false) => self.finish(),
                Err(error) => {
                    self.end = Some(error);
                    self.finish();
                }
            }
        }
    }
}

/// A file of packets.
enum PacketSource {
    Pcap(PcapReader),
    Pcapng(PcapngReader),
}

impl PacketSource {
    /// Reads the next packet; `false` at the end.
    fn read<R: Read>(
        &mut self,
        input: &mut Input<R>,
        packet: &mut Packet,
        skipped: &mut Skipped,
    ) -> Result<bool, CaptureError> {
        match self {
            PacketSource::Pcap(reader) => reader.read(input, packet),
            PacketSource::Pcapng(reader) => reader.read(input, packet, skipped),
        }
    }
}
