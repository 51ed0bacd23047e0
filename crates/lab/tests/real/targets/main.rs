//! Real servers start, answer, count and are gone afterwards; real clients get their answers, from
//! them and from our responder.
//!
//! Needs the servers and clients that `./test` installs and prepares.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

mod bind;
mod clients;
mod exporters;
mod knot;
mod kxdpgun;
mod observed;
mod openssl;
mod products;
mod query;
mod responder;
mod unbound;

use std::net::{SocketAddr, TcpStream};
use std::path::Path;

use lab::target::Zone;

/// A zone with the three names `test-record-1..3`.
pub(crate) fn zone() -> Zone {
    Zone::with_records(3, 1)
}

/// A zone that no server can load.
pub(crate) fn broken_zone() -> Zone {
    let text = "$ORIGIN lab.test.\n$TTL 1\nthis line is no resource record\n";
    Zone {
        origin: "lab.test.".to_owned(),
        text: text.to_owned(),
    }
}

/// Checks that nothing is left of a target that was dropped.
pub(crate) fn check_gone(process: u32, folder: &Path, address: SocketAddr) {
    assert!(
        !Path::new(&format!("/proc/{process}")).exists(),
        "process {process} is left"
    );
    assert!(!folder.exists(), "`{}` is left", folder.display());
    assert!(
        TcpStream::connect(address).is_err(),
        "{address} still accepts connections"
    );
}

/// The first number after each occurrence of `label`, as other generators print their counts.
pub(crate) fn numbers_after(text: &str, label: &str) -> Vec<u64> {
    let number = |rest: &str| {
        let digits = rest.trim_start().split([' ', '\n']).next()?;
        digits.replace(',', "").parse().ok()
    };
    text.split(label).skip(1).filter_map(number).collect()
}
