//! The bpf(2) system call: maps, the program, and the link that holds it on an interface.
//!
//! All are descriptors of this process. When it ends, however it ends, the kernel closes them, and
//! with the link the program leaves the interface.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use super::program::Instruction;

// Commands, types and flags of linux/bpf.h and linux/if_link.h.
const MAP_CREATE: libc::c_int = 0;
const MAP_UPDATE_ELEM: libc::c_int = 2;
const PROG_LOAD: libc::c_int = 5;
const LINK_CREATE: libc::c_int = 28;
const MAP_TYPE_ARRAY: u32 = 2;
const MAP_TYPE_XSKMAP: u32 = 17;
const PROG_TYPE_XDP: u32 = 6;
const ATTACH_XDP: u32 = 37;
/// In the kernel's stack, after it has made its own copy of the frame: works everywhere.
const MODE_GENERIC: u32 = 1 << 1;
/// In the interface's driver.
const MODE_NATIVE: u32 = 1 << 2;

/// Size of the verifier's log for a refused program.
const LOG_OCTETS: usize = 16 << 10;

#[repr(C)]
#[derive(Default)]
struct MapCreate {
    map_type: u32,
    key_octets: u32,
    value_octets: u32,
    entries_max: u32,
    flags: u32,
}

#[repr(C)]
#[derive(Default)]
struct MapUpdate {
    map: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
#[derive(Default)]
struct ProgLoad {
    prog_type: u32,
    instructions: u32,
    code: u64,
    license: u64,
    log_level: u32,
    log_octets: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
    interface: u32,
    expected_attach_type: u32,
}

#[repr(C)]
#[derive(Default)]
struct LinkCreate {
    program: u32,
    interface: u32,
    attach_type: u32,
    flags: u32,
    /// Zero padding that the kernel requires.
    rest: [u64; 4],
}

/// Calls bpf(2).
///
/// # Safety
/// `attributes` must be what `command` takes, and what it points to must be valid.
unsafe fn bpf<A>(command: libc::c_int, attributes: &A) -> io::Result<libc::c_int> {
    // SAFETY: the attributes are valid for their stated size; the rest is the caller's promise.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, attributes, size_of::<A>()) };
    match libc::c_int::try_from(result) {
        Ok(result) if result >= 0 => Ok(result),
        _ => Err(io::Error::last_os_error()),
    }
}

fn owned(raw: libc::c_int) -> OwnedFd {
    // SAFETY: only called with a descriptor that bpf(2) has just returned and nothing else owns.
    unsafe { OwnedFd::from_raw_fd(raw) }
}

/// A map with keys and values of four octets.
pub(super) struct Map(OwnedFd);

impl Map {
    /// Marks of ports: zero until set.
    pub(super) fn array(entries_max: u32) -> io::Result<Map> {
        Map::new(MAP_TYPE_ARRAY, entries_max)
    }

    /// Sockets by queue.
    pub(super) fn sockets(entries_max: u32) -> io::Result<Map> {
        Map::new(MAP_TYPE_XSKMAP, entries_max)
    }

    fn new(map_type: u32, entries_max: u32) -> io::Result<Map> {
        let attributes = MapCreate {
            map_type,
            key_octets: 4,
            value_octets: 4,
            entries_max,
            flags: 0,
        };
        // SAFETY: the attributes are those of MAP_CREATE and point to nothing.
        unsafe { bpf(MAP_CREATE, &attributes) }.map(|raw| Map(owned(raw)))
    }

    pub(super) fn set(&self, key: u32, value: u32) -> io::Result<()> {
        let attributes = MapUpdate {
            map: self.raw() as u32,
            key: (&raw const key) as u64,
            value: (&raw const value) as u64,
            ..MapUpdate::default()
        };
        // SAFETY: the attributes are those of MAP_UPDATE_ELEM; key and value have four octets each
        // and live until the call has returned.
        unsafe { bpf(MAP_UPDATE_ELEM, &attributes) }.map(drop)
    }

    pub(super) fn raw(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// Loads a program for XDP.
///
/// # Errors
/// The kernel's error, with its verifier's log if there is one.
pub(super) fn load(code: &[Instruction]) -> io::Result<OwnedFd> {
    let mut attributes = ProgLoad {
        prog_type: PROG_TYPE_XDP,
        instructions: code.len() as u32,
        code: code.as_ptr() as u64,
        license: c"Apache-2.0 OR MIT".as_ptr() as u64,
        expected_attach_type: ATTACH_XDP,
        ..ProgLoad::default()
    };
    attributes.name[..6].copy_from_slice(b"throng");
    // SAFETY: the attributes are those of PROG_LOAD; code and licence outlive the call.
    let refused = match unsafe { bpf(PROG_LOAD, &attributes) } {
        Ok(raw) => return Ok(owned(raw)),
        Err(error) => error,
    };
    if refused.raw_os_error() == Some(libc::EPERM) {
        return Err(refused);
    }
    let mut log = vec![0_u8; LOG_OCTETS];
    attributes.log = log.as_mut_ptr() as u64;
    (attributes.log_level, attributes.log_octets) = (1, LOG_OCTETS as u32);
    // SAFETY: as above, and the log is as large as is said.
    match unsafe { bpf(PROG_LOAD, &attributes) } {
        Ok(raw) => Ok(owned(raw)),
        Err(error) => {
            let end = log.iter().position(|octet| *octet == 0).unwrap_or(0);
            let said = String::from_utf8_lossy(&log[..end]);
            Err(io::Error::new(
                error.kind(),
                format!(
                    "the kernel refused the XDP filter: {error}: {}",
                    said.trim()
                ),
            ))
        }
    }
}

/// Puts a program on an interface for as long as the returned descriptor is open.
pub(super) fn attach(program: &OwnedFd, interface: u32, is_native: bool) -> io::Result<OwnedFd> {
    let attributes = LinkCreate {
        program: program.as_raw_fd() as u32,
        interface,
        attach_type: ATTACH_XDP,
        flags: if is_native { MODE_NATIVE } else { MODE_GENERIC },
        ..LinkCreate::default()
    };
    // SAFETY: the attributes are those of LINK_CREATE and point to nothing.
    unsafe { bpf(LINK_CREATE, &attributes) }.map(owned)
}
