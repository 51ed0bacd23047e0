//! Sockets of a network namespace that wait for queries, from /proc/PID/net.
//!
//! /proc/net/tcp has the sockets that listen before all others, so that of 100,000 connections
//! none is read beyond the first buffer. Where the kernel's socket diagnostics can be had, what is
//! asked repeatedly comes from there, at a hundredth of the cost.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::Root;

/// Sockets that are read, at most, of those that listen or of UDP.
pub(super) const SOCKETS_MAX: usize = 65_536;
/// The state `LISTEN` of TCP in /proc.
const LISTENS: &str = "0A";

/// A socket that waits for queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Listening {
    pub(crate) is_tcp: bool,
    pub(crate) address: SocketAddr,
    pub(crate) inode: u64,
    /// Octets that wait in a UDP socket, or connections that wait to be accepted.
    pub(crate) waiting: u64,
    /// Datagrams that a UDP socket had no room for.
    pub(crate) drops: u64,
    /// Octets for which a UDP socket has room, or connections that a listen queue has room for;
    /// none where that is not told.
    pub(crate) room: Option<u64>,
}

/// All sockets that wait for queries in the network namespace of a process.
pub(crate) fn from_files(root: &Root, pid: u32) -> Vec<Listening> {
    let mut found = Vec::new();
    for (file, is_tcp) in [
        ("udp", false),
        ("udp6", false),
        ("tcp", true),
        ("tcp6", true),
    ] {
        let path = root.path(&format!("proc/{pid}/net/{file}"));
        if let Ok(file) = File::open(path) {
            read_rows(file, is_tcp, &mut found);
        }
    }
    found
}

/// Reads rows until those end that are of interest.
fn read_rows(mut file: impl Read, is_tcp: bool, found: &mut Vec<Listening>) {
    let mut text = Vec::new();
    let mut buffer = [0; 16 << 10];
    let mut rows = 0;
    loop {
        let octets = match file.read(&mut buffer) {
            Ok(octets) if octets > 0 => octets,
            _ => return,
        };
        text.extend_from_slice(&buffer[..octets]);
        while let Some(end) = text.iter().position(|octet| *octet == b'\n') {
            let line: Vec<u8> = text.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line);
            rows += 1;
            // The first row names the columns.
            if rows == 1 {
                continue;
            }
            match parse(&line, is_tcp) {
                Some(socket) => found.push(socket),
                None if is_tcp => return,
                None => {}
            }
            if rows > SOCKETS_MAX {
                return;
            }
        }
    }
}

/// One row; none of TCP if it does not listen, none of UDP if it is connected.
pub(super) fn parse(line: &str, is_tcp: bool) -> Option<Listening> {
    let cells: Vec<&str> = line.split_ascii_whitespace().collect();
    let (local, remote, state) = (cells.get(1)?, cells.get(2)?, cells.get(3)?);
    if is_tcp && *state != LISTENS {
        return None;
    }
    if !is_tcp && !remote.ends_with(":0000") {
        return None;
    }
    let (_, waiting) = cells.get(4)?.split_once(':')?;
    Some(Listening {
        is_tcp,
        address: address(local)?,
        inode: cells.get(9)?.parse().ok()?,
        waiting: u64::from_str_radix(waiting, 16).ok()?,
        drops: match is_tcp {
            true => 0,
            false => cells.get(12)?.parse().ok()?,
        },
        room: None,
    })
}

/// `0100007F:0035`: words of the host's order.
fn address(text: &str) -> Option<SocketAddr> {
    let (host, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let words: Option<Vec<[u8; 4]>> = (0..host.len() / 8)
        .map(|at| {
            let word = u32::from_str_radix(host.get(at * 8..at * 8 + 8)?, 16).ok()?;
            Some(word.to_ne_bytes())
        })
        .collect();
    let host = match words?.as_slice() {
        [word] => IpAddr::V4(Ipv4Addr::from(*word)),
        [a, b, c, d] => {
            let mut octets = [0; 16];
            for (to, from) in octets.chunks_exact_mut(4).zip([a, b, c, d]) {
                to.copy_from_slice(from);
            }
            IpAddr::V6(Ipv6Addr::from(octets))
        }
        _ => return None,
    };
    Some(SocketAddr::new(host, port))
}

/// Inodes of the sockets among the first `files_max` open files of a process.
pub(super) fn inodes_of(root: &Root, pid: u32, files_max: usize) -> BTreeSet<u64> {
    let files = root.numbers(&format!("proc/{pid}/fd")).into_iter();
    let inodes = files.take(files_max).filter_map(|file| {
        let link = root.link(&format!("proc/{pid}/fd/{file}"))?;
        link.strip_prefix("socket:[")?
            .strip_suffix(']')?
            .parse()
            .ok()
    });
    inodes.collect()
}

/// Paths of the Unix sockets with those inodes, as they were bound, /proc/PID/net/unix.
pub(crate) fn unix_paths(text: &str, inodes: &BTreeSet<u64>) -> Vec<String> {
    let of_row = |row: &str| {
        let inode = row.split_ascii_whitespace().nth(6)?;
        // Only the inode is aligned; a path may have spaces in it.
        let path = row.split_once(&format!(" {inode} "))?.1;
        let is_in_files = !path.is_empty() && !path.starts_with('@');
        (inodes.contains(&inode.parse().ok()?) && is_in_files).then(|| path.to_owned())
    };
    let mut paths: Vec<String> = text.lines().skip(1).filter_map(of_row).collect();
    paths.sort();
    paths.dedup();
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_the_ends_of_their_rows() {
        let text = "Num       RefCount Protocol Flags    Type St Inode Path
0000000000000000: 00000002 00000000 00010000 0001 01   412 /run/with a space/control
0000000000000000: 00000002 00000000 00010000 0001 01 10000 control
0000000000000000: 00000003 00000000 00000000 0001 03 10001
0000000000000000: 00000002 00000000 00010000 0001 01 10002 @in memory
0000000000000000: 00000002 00000000 00010000 0001 01 10003 /run/of-others
";
        let inodes = BTreeSet::from([412, 10_000, 10_001, 10_002]);
        let paths = unix_paths(text, &inodes);
        assert_eq!(paths, ["/run/with a space/control", "control"]);
    }
}
