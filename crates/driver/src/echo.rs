//! How long a host's kernel and the path to it take to answer, whatever the programs there do: ICMP
//! echo (RFC 792, RFC 4443), a few requests a second while a run is under way.
//!
//! A datagram socket of ICMP needs no privilege where `net.ipv4.ping_group_range` has the group of
//! this process; a raw one needs CAP_NET_RAW. Replies are known by what they carry, and the kernel
//! says when each arrived, so that a busy host delays none.

use std::collections::VecDeque;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use crate::clock::Clock;
use crate::control::{self, ControlMessages};
use crate::netlink::wait_for;
use crate::socket;

/// One request each.
const PAUSE: Duration = Duration::from_millis(100);
/// Requests of one watch: enough for almost three hours.
const REQUESTS_MAX: u64 = 100_000;
/// Type, code, checksum, identifier, sequence number.
const HEADER_OCTETS: usize = 8;
/// Token and number of a request.
const DATA_OCTETS: usize = 16;
const MESSAGE_OCTETS: usize = HEADER_OCTETS + DATA_OCTETS;
/// A reply behind the longest header of IPv4, which a raw socket delivers too.
const BUFFER_OCTETS: usize = 60 + MESSAGE_OCTETS;

/// What became of requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Echoes {
    /// Requests that were answered, and those before them.
    pub sent: u64,
    /// From the send to the reply, each.
    pub times: Vec<Duration>,
}

/// Sends requests to a host until it is dropped, or one of them is rejected.
#[derive(Debug)]
pub struct Watch {
    echoes: Arc<Mutex<Echoes>>,
    /// Closed to end it.
    end: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Begins in the network namespace of the calling thread, from `local` if given. None if the
    /// kernel does not allow it.
    pub fn start(target: IpAddr, local: Option<IpAddr>) -> Option<Watch> {
        let socket = EchoSocket::open(target, local).ok()?;
        let (end, ended) = UnixStream::pair().ok()?;
        let echoes = Arc::new(Mutex::new(Echoes::default()));
        let shared = Arc::clone(&echoes);
        let name = Builder::new().name("echo".into());
        let thread = name.spawn(move || watch(&socket, &ended, &shared)).ok()?;
        Some(Watch {
            echoes,
            end: Some(end),
            thread: Some(thread),
        })
    }

    /// What became of the requests since the last call.
    pub fn news(&self) -> Echoes {
        let mut echoes = self.echoes.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut echoes)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn watch(socket: &EchoSocket, ended: &UnixStream, shared: &Mutex<Echoes>) {
    let clock = Clock::start();
    let mut requests = Requests::default();
    let mut next = clock.now();
    for number in 0..REQUESTS_MAX {
        // A rejection says that no reply is to be expected.
        let Ok(sent_at) = socket.send(number) else {
            return;
        };
        requests.0.push_back((number, sent_at));
        next = (next + PAUSE).max(clock.now());
        loop {
            let left = next - clock.now();
            if left.is_zero() {
                break;
            }
            let is_ended = wait_for([socket.fd.as_fd(), ended.as_fd()], Some(left))[1];
            let Ok(replies) = socket.replies() else {
                return;
            };
            let mut echoes = shared.lock().unwrap_or_else(PoisonError::into_inner);
            for (number, at) in replies {
                requests.end(number, at, &mut echoes);
            }
            if is_ended {
                return;
            }
        }
    }
}

/// Numbers of the requests under way, each with the time at which it was sent.
#[derive(Default)]
struct Requests(VecDeque<(u64, Duration)>);

impl Requests {
    /// A reply ends its request, and those before it, which are too far apart to be overtaken.
    fn end(&mut self, number: u64, at: Duration, echoes: &mut Echoes) {
        while let Some((first, sent_at)) = self.0.front().copied() {
            if first > number {
                break;
            }
            self.0.pop_front();
            echoes.sent += 1;
            if first == number {
                // None if the clock was set back in between.
                echoes.times.extend(at.checked_sub(sent_at));
            }
        }
    }
}

#[derive(Debug)]
struct EchoSocket {
    fd: OwnedFd,
    is_ipv6: bool,
    token: [u8; 8],
}

impl EchoSocket {
    fn open(target: IpAddr, local: Option<IpAddr>) -> io::Result<EchoSocket> {
        let is_ipv6 = target.is_ipv6();
        let fd = socket::open_echo(target, local)?;
        socket::set(&fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)?;
        // Rejections are errors of the socket.
        socket::keep_icmp_errors(&fd, is_ipv6)?;
        let token = getrandom::u64().map_err(|error| io::Error::other(error.to_string()))?;
        Ok(EchoSocket {
            fd,
            is_ipv6,
            token: token.to_ne_bytes(),
        })
    }

    /// Sends a request; returns when, by the clock of the kernel's timestamps.
    fn send(&self, number: u64) -> io::Result<Duration> {
        let request = self.request(number);
        let at = Clock::unix_time();
        // SAFETY: the buffer is valid for its length.
        let sent = unsafe {
            let place = request.as_ptr().cast();
            libc::send(
                self.fd.as_raw_fd(),
                place,
                request.len(),
                libc::MSG_DONTWAIT,
            )
        };
        match sent {
            0.. => Ok(at),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn request(&self, number: u64) -> [u8; MESSAGE_OCTETS] {
        let mut message = [0; MESSAGE_OCTETS];
        message[0] = if self.is_ipv6 { 128 } else { 8 };
        message[4..6].copy_from_slice(&self.token[..2]);
        message[6..8].copy_from_slice(&(number as u16).to_be_bytes());
        message[8..16].copy_from_slice(&self.token);
        message[16..].copy_from_slice(&number.to_ne_bytes());
        if !self.is_ipv6 {
            let sum = checksum(&message);
            message[2..4].copy_from_slice(&sum.to_be_bytes());
        }
        message
    }

    /// Numbers of requests that replies came to, and when each arrived.
    ///
    /// # Errors
    /// One was rejected.
    fn replies(&self) -> io::Result<Vec<(u64, Duration)>> {
        let mut replies = Vec::new();
        let mut buffer = [0; BUFFER_OCTETS];
        loop {
            match control::receive(&self.fd, &mut buffer, 0, arrived_at) {
                Ok((octets, at)) => {
                    let number = self.number_in(&buffer[..octets]);
                    replies.extend(number.zip(at));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(replies),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The number of the request that a message is the reply to. It stands at the end of it, behind
    /// an IPv4 header or not.
    fn number_in(&self, message: &[u8]) -> Option<u64> {
        let (head, icmp) = message.split_at_checked(message.len().checked_sub(MESSAGE_OCTETS)?)?;
        let is_reply = icmp[0] == if self.is_ipv6 { 129 } else { 0 };
        let is_ours = icmp[8..16] == self.token && (head.is_empty() || head.len() >= 20);
        let number = icmp.last_chunk().copied().map(u64::from_ne_bytes);
        number.filter(|_| is_reply && is_ours)
    }
}

/// When the kernel received a message.
fn arrived_at(mut controls: ControlMessages<'_>) -> Option<Duration> {
    controls.find_map(|(level, kind, data)| {
        let is_time = (level, kind) == (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS);
        let time = control::time(data, 0).filter(|_| is_time)?;
        Some(Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
    })
}

/// RFC 1071.
fn checksum(message: &[u8]) -> u16 {
    let words = message.chunks(2).map(|it| match *it {
        [high, low] => u32::from(high) << 8 | u32::from(low),
        [high] => u32::from(high) << 8,
        _ => 0,
    });
    let sum: u32 = words.sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    !((sum & 0xffff) + (sum >> 16)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Duration {
        Duration::from_millis(1_000_000 + millis)
    }

    #[test]
    fn a_reply_ends_its_request_and_those_before_it() {
        let (mut requests, mut echoes) = (Requests::default(), Echoes::default());
        requests
            .0
            .extend((0..5).map(|number| (number, at(100 * number))));
        // The second comes twice, the first after it, and neither counts.
        for (number, millis) in [(1, 107), (1, 109), (0, 110), (3, 650)] {
            let before = echoes.clone();
            requests.end(number, at(millis), &mut echoes);
            assert_eq!(echoes == before, matches!(millis, 109 | 110), "{number}");
        }
        assert_eq!(echoes.times, [7, 350].map(Duration::from_millis));
        assert_eq!((echoes.sent, requests.0.len()), (4, 1));
    }

    #[test]
    fn a_clock_that_was_set_back_gives_no_time() {
        let (mut requests, mut echoes) = (Requests::default(), Echoes::default());
        requests.0.push_back((0, at(100)));
        requests.end(0, at(0), &mut echoes);
        assert_eq!((echoes.sent, echoes.times.len()), (1, 0));
    }

    #[test]
    fn a_host_replies_with_the_number_of_the_request() {
        use std::net::{Ipv4Addr, Ipv6Addr};
        const PATIENCE: Duration = Duration::from_secs(60);
        for target in [
            IpAddr::from(Ipv4Addr::LOCALHOST),
            Ipv6Addr::LOCALHOST.into(),
        ] {
            let Ok(socket) = EchoSocket::open(target, Some(target)) else {
                eprintln!("not tried with {target}: this host does not allow it");
                continue;
            };
            socket.send(70_007).unwrap();
            let mut replies = Vec::new();
            // A raw socket sees the request too.
            while replies.is_empty() {
                assert!(wait_for([socket.fd.as_fd()], Some(PATIENCE))[0], "{target}");
                replies = socket.replies().unwrap();
            }
            assert_eq!(replies.len(), 1);
            assert_eq!(replies[0].0, 70_007, "{target}");
        }
    }

    #[test]
    fn checksum_is_that_of_rfc_1071() {
        // Its example, in section 3.
        let sum = checksum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]);
        assert_eq!(sum, !0xddf2);
        assert_eq!(checksum(&[0xff, 0xff, 0xff]), !0xff00);
    }
}
