//! Files that are read whole, but never more than so much of them.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use data_encoding::HEXLOWER;
use proto::tls::SpkiPin;
use proto::tls::rustls::pki_types::CertificateDer;
use proto::tls::rustls::pki_types::pem::PemObject;
use sha2::{Digest, Sha256};

/// Octets of a PEM file, at most.
pub(crate) const PEM_OCTETS_MAX: u64 = 1 << 20;

/// Reads a file of at most that many octets.
pub(crate) fn read_limited(path: &Path, octets_max: u64) -> Result<Vec<u8>, String> {
    let named = |what: String| format!("`{}`: {what}", path.display());
    let file = File::open(path).map_err(|error| named(error.to_string()))?;
    let mut octets = Vec::new();
    let read = file.take(octets_max + 1).read_to_end(&mut octets);
    read.map_err(|error| named(error.to_string()))?;
    match octets.len() as u64 > octets_max {
        true => Err(named(format!("longer than {octets_max} bytes"))),
        false => Ok(octets),
    }
}

/// SHA-256 of a file of at most that many octets, in hexadecimal.
pub(crate) fn sha256(mut file: File, octets_max: u64) -> Option<String> {
    let mut digest = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    let mut left = octets_max;
    loop {
        let octets = file.read(&mut buffer).ok()?;
        if octets == 0 {
            return Some(HEXLOWER.encode(&digest.finalize()));
        }
        left = left.checked_sub(octets as u64)?;
        digest.update(&buffer[..octets]);
    }
}

/// The pin of the first certificate in a PEM file.
pub(crate) fn pin_of(path: &Path) -> Result<SpkiPin, String> {
    let pem = read_limited(path, PEM_OCTETS_MAX)?;
    let named = |what: String| format!("`{}`: {what}", path.display());
    let certificate = CertificateDer::from_pem_slice(&pem)
        .map_err(|error| named(format!("no certificate in it: {error}")))?;
    SpkiPin::of(&certificate).map_err(named)
}

/// Reads at most `octets_max` octets from the start of a file.
pub(crate) fn read_start(path: &Path, octets_max: u64) -> std::io::Result<Vec<u8>> {
    let mut octets = Vec::new();
    File::open(path)?
        .take(octets_max)
        .read_to_end(&mut octets)?;
    Ok(octets)
}
