//! What sends and receives the data, and what timestamps datagrams.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Named;

/// What sends and receives the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DriverKind {
    /// Kernel sockets, by readiness.
    Epoll,
    /// Kernel sockets through io_uring.
    Uring,
    /// Frames of a network interface, below the kernel's sockets.
    Xdp,
    /// A simulated network in virtual time.
    Sim,
}

impl Named for DriverKind {
    const WHAT: &'static str = "driver";
    const ALL: &'static [Self] = &[
        DriverKind::Epoll,
        DriverKind::Uring,
        DriverKind::Xdp,
        DriverKind::Sim,
    ];

    fn name(self) -> &'static str {
        match self {
            DriverKind::Epoll => "epoll",
            DriverKind::Uring => "uring",
            DriverKind::Xdp => "xdp",
            DriverKind::Sim => "sim",
        }
    }

    fn meaning(self) -> &'static str {
        match self {
            DriverKind::Epoll => "Kernel sockets, by readiness",
            DriverKind::Uring => "Kernel sockets through io_uring",
            DriverKind::Xdp => "Frames of --interface, below the kernel's sockets (AF_XDP)",
            DriverKind::Sim => "A simulated network and responder in virtual time",
        }
    }
}

impl fmt::Display for DriverKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Which driver of real sockets or interfaces is to be used. Its text is `auto`, `epoll`, `uring`,
/// or `xdp:` and an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DriverChoice {
    /// What was measured to be faster for the load, if the kernel lets us have it.
    #[default]
    Auto,
    /// Kernel sockets, by readiness.
    Epoll,
    /// io_uring, or an error.
    Uring,
    /// AF_XDP on this interface, or an error; never chosen by itself.
    Xdp(InterfaceName),
}

impl DriverChoice {
    /// What stands for the choice of the faster one.
    pub const AUTO: &'static str = "auto";

    /// The one that is asked for by kind, none for the faster one. A simulation has no sockets;
    /// AF_XDP needs an interface.
    pub fn of(kind: Option<DriverKind>, interface: Option<InterfaceName>) -> Option<DriverChoice> {
        match kind {
            None => Some(DriverChoice::Auto),
            Some(DriverKind::Epoll) => Some(DriverChoice::Epoll),
            Some(DriverKind::Uring) => Some(DriverChoice::Uring),
            Some(DriverKind::Xdp) => interface.map(DriverChoice::Xdp),
            Some(DriverKind::Sim) => None,
        }
    }
}

impl fmt::Display for DriverChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DriverChoice::Auto => f.write_str(DriverChoice::AUTO),
            DriverChoice::Epoll => DriverKind::Epoll.fmt(f),
            DriverChoice::Uring => DriverKind::Uring.fmt(f),
            DriverChoice::Xdp(interface) => write!(f, "{}:{interface}", DriverKind::Xdp),
        }
    }
}

impl FromStr for DriverChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, interface) = match text.split_once(':') {
            Some((kind, interface)) => (kind, Some(interface.parse()?)),
            None => (text, None),
        };
        let kind = match kind {
            DriverChoice::AUTO => Ok(None),
            kind => DriverKind::named(kind).map(Some),
        };
        let takes = |kind| (kind == Some(DriverKind::Xdp)) == interface.is_some();
        let choice = kind.ok().filter(|kind| takes(*kind));
        choice
            .and_then(|kind| DriverChoice::of(kind, interface))
            .ok_or_else(|| {
                format!(
                    "unknown driver `{text}`; there are `auto`, `epoll`, `uring` and `xdp:eth0`"
                )
            })
    }
}

/// Bytes of an interface's name with the zero at its end (IFNAMSIZ of Linux).
const INTERFACE_OCTETS: usize = 16;

/// The name of a network interface.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct InterfaceName([u8; INTERFACE_OCTETS]);

impl InterfaceName {
    fn as_str(&self) -> &str {
        let end = self.0.iter().position(|octet| *octet == 0);
        std::str::from_utf8(&self.0[..end.unwrap_or(INTERFACE_OCTETS)]).unwrap_or_default()
    }
}

impl FromStr for InterfaceName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_good = |octet: u8| octet.is_ascii_graphic() && octet != b'/';
        if text.is_empty() || text.len() >= INTERFACE_OCTETS || !text.bytes().all(is_good) {
            return Err(format!("`{text}` is not a name of a network interface"));
        }
        let mut name = [0; INTERFACE_OCTETS];
        name[..text.len()].copy_from_slice(text.as_bytes());
        Ok(InterfaceName(name))
    }
}

impl fmt::Display for InterfaceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for InterfaceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl Serialize for InterfaceName {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for InterfaceName {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

/// What timestamps datagrams with the instants at which they left and arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum StampSource {
    /// The kernel, as a datagram goes to its interface or comes from it.
    Kernel,
    /// The network card.
    Hardware,
}

impl Named for StampSource {
    const WHAT: &'static str = "source of timestamps";
    const ALL: &'static [Self] = &[StampSource::Kernel, StampSource::Hardware];

    fn name(self) -> &'static str {
        match self {
            StampSource::Kernel => "kernel",
            StampSource::Hardware => "hardware",
        }
    }

    fn meaning(self) -> &'static str {
        match self {
            StampSource::Kernel => "The kernel, in software",
            StampSource::Hardware => {
                "The network card, if it can: see `ethtool -T`; needs root, and leaves the card \
                 stamping"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_read_as_they_are_written() {
        for text in ["auto", "epoll", "uring", "xdp:eth0.7"] {
            let choice: DriverChoice = text.parse().unwrap();
            assert_eq!(choice.to_string(), text);
        }
        for text in [
            "",
            "sim",
            "xdp",
            "xdp:",
            "epoll:eth0",
            "xdp:a/b",
            "io_uring",
        ] {
            assert!(text.parse::<DriverChoice>().is_err(), "{text}");
        }
        let unknown = "io_uring".parse::<DriverChoice>().unwrap_err();
        assert!(unknown.contains("`uring`"), "{unknown}");
    }
}
