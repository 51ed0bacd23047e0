//! A TUN device: an interface whose packets, from the IP header on, this process reads and writes.
//!
//! It belongs to the network namespace of the thread that creates it, and may be used from any
//! thread. It is removed with its descriptor, so also when the process is killed. One call moves
//! one packet: the kernel cannot move several.

use std::ffi::CStr;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::mem::zeroed;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::time::Duration;

use crate::netlink::{Netlink, wait_for};
use crate::socket::check;

pub use crate::netlink::Dropped;

/// Where all TUN devices come from.
pub const DEVICE: &str = "/dev/net/tun";

/// The kernel puts in the first number that is free.
const NAMES: &CStr = c"throng%d";

/// One device, initially down.
#[derive(Debug)]
pub struct Tun {
    file: File,
    name: String,
    index: u32,
    netlink: Netlink,
}

impl Tun {
    /// Makes one in the network of the calling thread. Needs CAP_NET_ADMIN.
    ///
    /// # Errors
    /// There is no [`DEVICE`], or the kernel refuses.
    pub fn make() -> io::Result<Tun> {
        let mut open = OpenOptions::new();
        open.read(true).write(true);
        let file = open.custom_flags(libc::O_NONBLOCK).open(DEVICE)?;
        // SAFETY: all-zero is a valid ifreq.
        let mut request: libc::ifreq = unsafe { zeroed() };
        let places = request.ifr_name.iter_mut();
        for (place, octet) in places.zip(NAMES.to_bytes()) {
            *place = *octet as libc::c_char;
        }
        request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
        let place = &raw mut request;
        // SAFETY: TUNSETIFF reads a struct ifreq and writes the name that it has chosen to it.
        check(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF as _, place) })?;
        // SAFETY: the kernel ends the name with a zero.
        let name = unsafe { CStr::from_ptr(request.ifr_name.as_ptr()) };
        // SAFETY: as above; the thread is still in the network of the device.
        let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
        if index == 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Tun {
            file,
            name: name.to_string_lossy().into_owned(),
            index,
            netlink: Netlink::open()?,
        })
    }

    /// Its name in its network.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The next packet that was sent over the interface; none if there is none now.
    ///
    /// # Errors
    /// The device cannot be read.
    pub fn read(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match (&self.file).read(buffer) {
            Ok(octets) => Ok(Some(octets)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Lets the interface receive a packet. Its network has dealt with it when this returns.
    ///
    /// # Errors
    /// The interface is down, or refuses the packet.
    pub fn write(&self, packet: &[u8]) -> io::Result<()> {
        (&self.file).write(packet).map(drop)
    }

    /// Packets dropped so far because this process did not read them in time.
    ///
    /// # Errors
    /// The kernel does not tell.
    pub fn dropped(&self) -> io::Result<Dropped> {
        self.netlink.link(self.index).map(|link| link.dropped)
    }
}

/// Waits until one of two devices has a packet, or `end` is closed at its other end, or that much
/// time has passed; true for each that is so. As exact as [`crate::cpu::sharpen_timers`] makes it.
pub fn wait([near, far]: [&Tun; 2], end: BorrowedFd<'_>, time: Option<Duration>) -> [bool; 3] {
    wait_for([near.file.as_fd(), far.file.as_fd(), end], time)
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;
    use crate::namespace;

    /// No packet takes that long.
    const PATIENCE: Duration = Duration::from_secs(60);

    /// A device in a network of its own, which ends with the thread. Both ends of the conversation
    /// are this test: what the network sends is read, turned round, and written.
    fn converse(tun: &Tun) {
        let run = |arguments: &str| {
            let mut command = std::process::Command::new("ip");
            let status = command.args(arguments.split(' ')).status().unwrap();
            assert!(status.success(), "ip {arguments}");
        };
        run(&format!("addr add 10.79.0.1/24 dev {}", tun.name()));
        run(&format!("link set {} up", tun.name()));
        let socket = UdpSocket::bind("10.79.0.1:0").unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.send_to(b"query", "10.79.0.2:53").unwrap();
        let mut buffer = [0; 2_048];
        let (end, _open) = std::io::pipe().unwrap();
        let octets = loop {
            let ready = wait([tun, tun], end.as_fd(), Some(PATIENCE));
            assert_eq!(ready, [true, true, false]);
            let octets = tun.read(&mut buffer).unwrap().unwrap();
            // The kernel sends IPv6 packets of its own.
            if buffer[0] >> 4 == 4 {
                break octets;
            }
        };
        assert_eq!(&buffer[28..octets], b"query");
        // Addresses and ports change places, which changes no checksum.
        let (source, destination) = (12..16, 16..20);
        for place in source.zip(destination).chain([(20, 22), (21, 23)]) {
            buffer.swap(place.0, place.1);
        }
        tun.write(&buffer[..octets]).unwrap();
        let mut response = [0; 16];
        let (octets, from) = socket.recv_from(&mut response).unwrap();
        assert_eq!(&response[..octets], b"query");
        assert_eq!(from, "10.79.0.2:53".parse().unwrap());
        assert_eq!(tun.dropped().unwrap().sent, 0);
        run(&format!("link set {} down", tun.name()));
        assert!(tun.write(&buffer[..octets]).is_err());
    }

    #[test]
    fn packets_are_read_and_written_and_the_device_goes_with_its_descriptor() {
        std::thread::spawn(|| {
            if let Err(error) = namespace::enter_new() {
                eprintln!("not tried: {error}");
                return;
            }
            let tun = Tun::make().unwrap();
            let (name, index) = (tun.name().to_owned(), tun.index);
            assert_eq!(name, "throng0");
            converse(&tun);
            drop(tun);
            let gone = Netlink::open().unwrap().link(index);
            assert_eq!(gone.unwrap_err().raw_os_error(), Some(libc::ENODEV));
            assert_eq!(namespace::mark().unwrap(), "");
        })
        .join()
        .unwrap();
    }
}
