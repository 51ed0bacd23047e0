//! Which program this is: lead and agents have to be the same one.

use std::fs::File;
use std::io::{self, Read};

use data_encoding::HEXLOWER;
use lab::agents::content_hash;

use crate::failure::Failure;

/// Kinds of segments and notes (gABI 5.1, elf.h).
const PT_NOTE: u64 = 4;
const NT_GNU_BUILD_ID: u64 = 3;
/// A file of 64 bits, the least octet first.
const ELF_64_LE: &[u8] = b"\x7fELF\x02\x01";
/// Linkers put the program's headers and notes before its code. The whole file may have 100 MB.
const HEADERS_MAX: u64 = 64 << 10;

/// The build ID of this program, which stays if debug information is stripped; SHA-256 of its file
/// if it was linked without one.
///
/// # Errors
/// Its file cannot be read.
pub(crate) fn program() -> Result<String, Failure> {
    let read = File::open("/proc/self/exe").and_then(of_file);
    read.map_err(|error| Failure::in_operation(format!("cannot read this program's file: {error}")))
}

fn of_file(mut file: File) -> io::Result<String> {
    let mut octets = Vec::new();
    file.by_ref().take(HEADERS_MAX).read_to_end(&mut octets)?;
    if let Some(id) = build_id(&octets) {
        return Ok(format!("build {}", HEXLOWER.encode(id)));
    }
    file.read_to_end(&mut octets)?;
    Ok(content_hash(&octets))
}

/// The build ID that the linker wrote.
fn build_id(file: &[u8]) -> Option<&[u8]> {
    if !file.starts_with(ELF_64_LE) {
        return None;
    }
    let (table, size, count) = (
        number(file, 32, 8)?,
        number(file, 54, 2)?,
        number(file, 56, 2)?,
    );
    (0..count)
        .filter_map(|index| file.get(usize::try_from(table.checked_add(index * size)?).ok()?..))
        .filter(|header| number(header, 0, 4) == Some(PT_NOTE))
        .find_map(|header| {
            let from = usize::try_from(number(header, 8, 8)?).ok()?;
            let length = usize::try_from(number(header, 32, 8)?).ok()?;
            build_id_of_notes(file.get(from..from.checked_add(length)?)?)
        })
}

fn build_id_of_notes(mut notes: &[u8]) -> Option<&[u8]> {
    loop {
        let name = usize::try_from(number(notes, 0, 4)?).ok()?;
        let length = usize::try_from(number(notes, 4, 4)?).ok()?;
        let rest = notes.get(12..)?;
        let content = rest.get(name.next_multiple_of(4)..)?;
        if number(notes, 8, 4)? == NT_GNU_BUILD_ID && rest.get(..name)? == b"GNU\0" {
            return content.get(..length).filter(|id| !id.is_empty());
        }
        notes = content.get(length.next_multiple_of(4)..)?;
    }
}

/// A number of that many octets.
fn number(octets: &[u8], at: usize, length: usize) -> Option<u64> {
    let octets = octets.get(at..at.checked_add(length)?)?.iter().rev();
    Some(octets.fold(0, |number, octet| number << 8 | u64::from(*octet)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file with one segment of notes.
    fn file(notes: &[u8]) -> Vec<u8> {
        let mut file = ELF_64_LE.to_vec();
        file.resize(64 + 56, 0);
        let mut write = |at: usize, octets: &[u8]| {
            file[at..at + octets.len()].copy_from_slice(octets);
        };
        write(32, &64u64.to_le_bytes());
        write(54, &56u16.to_le_bytes());
        write(56, &1u16.to_le_bytes());
        write(64, &4u32.to_le_bytes());
        write(64 + 8, &120u64.to_le_bytes());
        write(64 + 32, &(notes.len() as u64).to_le_bytes());
        file.extend_from_slice(notes);
        file
    }

    fn note(kind: u8, name: &[u8], content: &[u8]) -> Vec<u8> {
        let mut note = vec![name.len() as u8, 0, 0, 0, content.len() as u8, 0, 0, 0];
        note.extend_from_slice(&[kind, 0, 0, 0]);
        for part in [name, content] {
            note.extend_from_slice(part);
            note.resize(note.len().next_multiple_of(4), 0);
        }
        note
    }

    #[test]
    fn build_id_is_found_behind_other_notes_and_never_beyond_the_file() {
        let other = note(1, b"GNU\0", &[9; 16]);
        let id = note(3, b"GNU\0", &[7; 20]);
        let whole = file(&[other.clone(), id].concat());
        assert_eq!(build_id(&whole), Some(&[7; 20][..]));
        assert_eq!(build_id(&file(&other)), None);
        assert_eq!(build_id(&file(&note(3, b"XYZ\0", &[7; 20]))), None);
        for length in 0..whole.len() {
            assert_eq!(build_id(&whole[..length]), None, "{length}");
        }
        let mut wild = whole;
        for at in 6..wild.len() {
            let before = std::mem::replace(&mut wild[at], 0xff);
            // Whatever it finds.
            let _ = build_id(&wild);
            wild[at] = before;
        }
    }

    #[test]
    fn this_program_has_an_identity() {
        assert!(program().unwrap().len() >= 20);
    }
}
