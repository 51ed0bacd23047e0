//! A file of TLS secrets in the format that Wireshark and others read (NSS key log; RFC 9850), to
//! decrypt captures of a run.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Mutex;

use proto::tls::rustls::KeyLog;

use crate::files::{self, Access, Opening};

/// A key log that appends a line for each secret at once, so that a capture can be read while the
/// run lasts. Costs a handshake a few system calls and a lock that all workers share.
#[derive(Debug)]
pub struct KeyLogFile {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    file: File,
    /// Lines that could not be written, and why the first could not.
    lost: u64,
    failure: Option<io::Error>,
}

impl KeyLogFile {
    /// Opens `path` to append to it; a file that is made can be read by its owner only.
    ///
    /// # Errors
    /// The file cannot be opened or made.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = files::open(path, Opening::Append, Access::Owner)?;
        Ok(KeyLogFile {
            state: Mutex::new(State {
                file,
                lost: 0,
                failure: None,
            }),
        })
    }

    /// How many lines are missing in the file and why; none if all were written.
    pub fn losses(&self) -> Option<String> {
        let state = self.state.lock().ok()?;
        let failure = state.failure.as_ref()?;
        Some(format!("{} lines are missing: {failure}", state.lost))
    }
}

impl KeyLog for KeyLogFile {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        let line = line(label, client_random, secret);
        // A thread that panicked holding the lock had written its line or not; both are fine.
        let mut state = match self.state.lock() {
            Ok(state) => state,
            Err(poisoned) => poisoned.into_inner(),
        };
        if let Err(error) = state.file.write_all(line.as_bytes()) {
            state.lost += 1;
            state.failure.get_or_insert(error);
        }
    }
}

/// `LABEL CLIENT_RANDOM SECRET` with the octets in hexadecimal.
fn line(label: &str, client_random: &[u8], secret: &[u8]) -> String {
    let mut line = format!("{label} ");
    push_hex(client_random, &mut line);
    line.push(' ');
    push_hex(secret, &mut line);
    line.push('\n');
    line
}

fn push_hex(octets: &[u8], line: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for octet in octets {
        line.push(char::from(DIGITS[usize::from(octet >> 4)]));
        line.push(char::from(DIGITS[usize::from(octet & 15)]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_label_random_and_secret() {
        assert_eq!(line("LABEL", &[0, 0xff], &[0x1a]), "LABEL 00ff 1a\n");
    }

    #[test]
    fn lines_that_cannot_be_written_are_counted() {
        let log = KeyLogFile::open(Path::new("/dev/full")).unwrap();
        assert_eq!(log.losses(), None);
        log.log("LABEL", &[1; 32], &[2; 32]);
        log.log("LABEL", &[1; 32], &[2; 32]);
        let losses = log.losses().unwrap();
        assert!(losses.starts_with("2 lines are missing: "), "{losses}");
    }
}
