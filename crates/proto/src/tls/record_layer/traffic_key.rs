//! The protection of one direction: a key, an IV and a sequence number (RFC 8446, sections 5.2 and
//! 5.3; RFC 5246, section 6.2.3.3; RFC 5288; RFC 7905).

use super::contexts::KeyHandle;
use super::key_schedule::TrafficSecret;
use super::{
    APPLICATION_DATA, CONTENT_OCTETS_MAX, HEADER_OCTETS, InvalidRecord, Version, record_header,
};
use crate::framing::framed_octets;
use aws_lc_rs::aead::{
    AES_128_GCM, AES_256_GCM, Aad, Algorithm, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce,
    UnboundKey,
};
use rustls::{ConnectionTrafficSecrets, Error, PeerMisbehaved};

const TAG_OCTETS: usize = 16;

/// The part of the nonce that AES-GCM sends along in TLS 1.2 (RFC 5288, section 3).
const EXPLICIT_NONCE_OCTETS: usize = 8;

/// Key updates that rustls may have made by itself; it allows 32 in a row.
const UPDATES_BEFORE_MAX: usize = 64;

/// The ciphers of all suites that this program has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cipher {
    Aes128Gcm,
    Aes256Gcm,
    ChaCha20Poly1305,
}

impl Cipher {
    fn algorithm(self) -> &'static Algorithm {
        match self {
            Cipher::Aes128Gcm => &AES_128_GCM,
            Cipher::Aes256Gcm => &AES_256_GCM,
            Cipher::ChaCha20Poly1305 => &CHACHA20_POLY1305,
        }
    }

    fn key_octets(self) -> usize {
        match self {
            Cipher::Aes128Gcm => 16,
            Cipher::Aes256Gcm | Cipher::ChaCha20Poly1305 => 32,
        }
    }
}

/// Why a record was not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// Not the peer's next record.
    Forged,
    /// Longer than a record may be.
    Oversized,
    /// Nothing but padding.
    WithoutType,
}

impl From<Refused> for InvalidRecord {
    #[cold]
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Forged => Error::DecryptError.into(),
            Refused::Oversized => Error::PeerSentOversizedRecord.into(),
            Refused::WithoutType => PeerMisbehaved::IllegalTlsInnerPlaintext.into(),
        }
    }
}

/// The key of one direction of a session.
pub(super) struct TrafficKey {
    place: KeyHandle,
    pub(super) sequence: u64,
    key: [u8; 32],
    iv: [u8; NONCE_LEN],
    cipher: Cipher,
    pub(super) version: Version,
    /// What the next key is made from; TLS 1.3 only.
    secret: Option<TrafficSecret>,
}

impl TrafficKey {
    /// The key that rustls has used up to `sequence`, made from the secret `first` or one of those
    /// that follow on it.
    ///
    /// # Errors
    /// It is of a cipher that this program does not have.
    pub(super) fn new(
        version: Version,
        (sequence, extracted): (u64, ConnectionTrafficSecrets),
        first: Option<TrafficSecret>,
    ) -> Result<TrafficKey, Error> {
        let (cipher, octets, iv) = match &extracted {
            ConnectionTrafficSecrets::Aes128Gcm { key, iv } => (Cipher::Aes128Gcm, key, iv),
            ConnectionTrafficSecrets::Aes256Gcm { key, iv } => (Cipher::Aes256Gcm, key, iv),
            ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => {
                (Cipher::ChaCha20Poly1305, key, iv)
            }
            _ => return Err(Error::General("the cipher is unknown".to_owned())),
        };
        let mut key = [0; 32];
        let used = &mut key[..cipher.key_octets()];
        // The lengths are the ciphers' own.
        used.copy_from_slice(&octets.as_ref()[..used.len()]);
        let mut own_iv = [0; NONCE_LEN];
        own_iv.copy_from_slice(iv.as_ref());
        Ok(TrafficKey {
            place: KeyHandle::new(),
            sequence,
            key,
            iv: own_iv,
            cipher,
            version,
            secret: first.and_then(|first| secret_of(&key, cipher, first)),
        })
    }

    fn of_secret(cipher: Cipher, secret: TrafficSecret) -> TrafficKey {
        let mut iv = [0; NONCE_LEN];
        secret.expand(cipher, b"iv", &mut iv);
        TrafficKey {
            place: KeyHandle::new(),
            sequence: 0,
            key: key_of(cipher, &secret),
            iv,
            cipher,
            version: Version::Tls13,
            secret: Some(secret),
        }
    }

    /// Goes on with the next key (RFC 8446, section 7.2).
    ///
    /// # Errors
    /// There is none, as in TLS 1.2.
    pub(super) fn update(&mut self) -> Result<(), Error> {
        let Some(secret) = &self.secret else {
            return Err(Error::General(
                "there is no secret for a new key".to_owned(),
            ));
        };
        *self = TrafficKey::of_secret(self.cipher, secret.next(self.cipher));
        Ok(())
    }

    #[inline]
    fn nonce(&self) -> [u8; NONCE_LEN] {
        nonce(self.iv, self.sequence)
    }

    #[inline]
    fn explicit_nonce_octets(&self) -> usize {
        match (self.version, self.cipher) {
            (Version::Tls13, _) | (_, Cipher::ChaCha20Poly1305) => 0,
            (Version::Tls12, _) => EXPLICIT_NONCE_OCTETS,
        }
    }

    #[inline]
    fn with<R>(&mut self, act: impl FnOnce(&LessSafeKey) -> R) -> R {
        let (cipher, key) = (self.cipher, &self.key);
        self.place.with(|| make_ready(cipher, key), act)
    }

    /// Appends a record with `content`, at most [`CONTENT_OCTETS_MAX`] of it, to `wire`.
    pub(super) fn seal(&mut self, kind: u8, content: &[u8], wire: &mut Vec<u8>) {
        let nonce = self.nonce();
        let explicit_octets = self.explicit_nonce_octets();
        let is_tls13 = self.version == Version::Tls13;
        let body_octets = explicit_octets + content.len() + usize::from(is_tls13) + TAG_OCTETS;
        wire.reserve(HEADER_OCTETS + body_octets);
        let outer = if is_tls13 { APPLICATION_DATA } else { kind };
        let header = record_header(outer, body_octets);
        wire.extend_from_slice(&header);
        wire.extend_from_slice(&nonce[NONCE_LEN - explicit_octets..]);
        let start = wire.len();
        wire.extend_from_slice(content);
        if is_tls13 {
            wire.push(kind);
        }
        let additional = self.additional(&header, kind, content.len());
        let text = &mut wire[start..];
        let tag = self.with(|key| {
            let nonce = Nonce::assume_unique_for_key(nonce);
            key.seal_in_place_separate_tag(nonce, additional.aad(), text)
        });
        let tag = tag.expect("a record is far below the length that ciphers take");
        wire.extend_from_slice(tag.as_ref());
        self.sequence += 1;
    }

    /// Appends records of TLS 1.3 with the framed messages of `stream` to `wire`, one for each, up
    /// to the first that does not fit into a record. Returns how many octets of `stream` that were.
    ///
    /// aws-lc seals from `stream` to `wire`. The octet behind each message is the type of its
    /// content meanwhile; `stream` is as before afterwards. All records of a batch are made room
    /// for together, and the key is looked up once.
    pub(super) fn seal_messages(&mut self, stream: &mut Vec<u8>, wire: &mut Vec<u8>) -> usize {
        let (records, end) = short_messages(stream);
        let start = wire.len();
        wire.resize(start + end + records * (HEADER_OCTETS + 1 + TAG_OCTETS), 0);
        let mut room = &mut wire[start..];
        stream.push(0);
        let (iv, first) = (self.iv, self.sequence);
        self.sequence += records as u64;
        self.with(|key| {
            let mut rest = &mut stream[..=end];
            for sequence in first.. {
                let Some(octets) = framed_octets(&rest[..rest.len() - 1]) else {
                    return;
                };
                let behind = std::mem::replace(&mut rest[octets], APPLICATION_DATA);
                let body_octets = octets + 1 + TAG_OCTETS;
                let header = record_header(APPLICATION_DATA, body_octets);
                let (record, after) = room.split_at_mut(HEADER_OCTETS + body_octets);
                room = after;
                record[..HEADER_OCTETS].copy_from_slice(&header);
                let (text, tag) = record[HEADER_OCTETS..].split_at_mut(octets + 1);
                let nonce = Nonce::assume_unique_for_key(nonce(iv, sequence));
                let (aad, content) = (Aad::from(header), &rest[..=octets]);
                key.seal_out_of_place_scatter(nonce, aad, content, text, &[], tag)
                    .expect("a record is far below the length that ciphers take");
                rest[octets] = behind;
                rest = &mut rest[octets..];
            }
        });
        stream.pop();
        end
    }

    /// Opens a record; appends its content to `plaintext` and returns of what type it is.
    ///
    /// # Errors
    /// The record is not the peer's next, or is longer than it may be. Nothing is appended.
    #[inline]
    pub(super) fn open(
        &mut self,
        header: &[u8; HEADER_OCTETS],
        body: &[u8],
        plaintext: &mut Vec<u8>,
    ) -> Result<u8, Refused> {
        let start = plaintext.len();
        let opened = match self.version {
            Version::Tls13 => {
                let (nonce, aad) = (self.nonce(), Aad::from(*header));
                self.open_text(nonce, aad, body, plaintext)
                    .and_then(|()| take_inner_type(start, plaintext))
            }
            Version::Tls12 => self.open_tls12(header, body, plaintext),
        };
        let is_oversized = plaintext.len() - start > CONTENT_OCTETS_MAX;
        if opened.is_err() || is_oversized {
            plaintext.truncate(start);
        }
        if opened.is_ok() {
            self.sequence += 1;
            if is_oversized {
                return Err(Refused::Oversized);
            }
        }
        opened
    }

    #[inline(never)]
    fn open_tls12(
        &mut self,
        header: &[u8; HEADER_OCTETS],
        body: &[u8],
        plaintext: &mut Vec<u8>,
    ) -> Result<u8, Refused> {
        let mut nonce = self.nonce();
        let explicit_octets = self.explicit_nonce_octets();
        if body.len() < explicit_octets + TAG_OCTETS {
            return Err(Refused::Forged);
        }
        let (explicit, sealed) = body.split_at(explicit_octets);
        nonce[NONCE_LEN - explicit_octets..].copy_from_slice(explicit);
        let additional = self.additional(header, header[0], sealed.len() - TAG_OCTETS);
        self.open_text(nonce, additional.aad(), sealed, plaintext)?;
        Ok(header[0])
    }

    /// Appends the text of `sealed`, which ends with its tag, to `plaintext`; after an error what
    /// is appended means nothing.
    #[inline]
    fn open_text(
        &mut self,
        nonce: [u8; NONCE_LEN],
        aad: Aad<impl AsRef<[u8]>>,
        sealed: &[u8],
        plaintext: &mut Vec<u8>,
    ) -> Result<(), Refused> {
        let Some((text, tag)) = sealed.split_last_chunk::<TAG_OCTETS>() else {
            return Err(Refused::Forged);
        };
        let start = plaintext.len();
        plaintext.resize(start + text.len(), 0);
        let opened = &mut plaintext[start..];
        let is_genuine = self.with(|key| {
            let nonce = Nonce::assume_unique_for_key(nonce);
            key.open_separate_gather(nonce, aad, text, tag, opened)
        });
        is_genuine.map_err(|_| Refused::Forged)
    }

    #[inline]
    fn additional(
        &self,
        header: &[u8; HEADER_OCTETS],
        kind: u8,
        content_octets: usize,
    ) -> Additional {
        let mut octets = [0; 13];
        let length = match self.version {
            Version::Tls13 => {
                octets[..HEADER_OCTETS].copy_from_slice(header);
                HEADER_OCTETS
            }
            Version::Tls12 => {
                octets[..8].copy_from_slice(&self.sequence.to_be_bytes());
                octets[8..].copy_from_slice(&record_header(kind, content_octets));
                octets[9..11].copy_from_slice(&header[1..3]);
                octets.len()
            }
        };
        Additional { octets, length }
    }
}

#[cold]
fn make_ready(cipher: Cipher, key: &[u8; 32]) -> LessSafeKey {
    let key = UnboundKey::new(cipher.algorithm(), &key[..cipher.key_octets()]);
    LessSafeKey::new(key.expect("the key has the cipher's length"))
}

/// The IV with the sequence number (RFC 8446, section 5.3).
#[inline]
fn nonce(iv: [u8; NONCE_LEN], sequence: u64) -> [u8; NONCE_LEN] {
    let mut nonce = iv;
    let [_, _, _, _, number @ ..] = &mut nonce;
    *number = (u64::from_be_bytes(*number) ^ sequence).to_be_bytes();
    nonce
}

/// How many framed messages `stream` begins with that fit into a record each, and where the last
/// of them ends.
#[inline]
fn short_messages(stream: &[u8]) -> (usize, usize) {
    let (mut messages, mut end) = (0, 0);
    while let Some(octets) = framed_octets(&stream[end..])
        && octets <= CONTENT_OCTETS_MAX
    {
        messages += 1;
        end += octets;
    }
    (messages, end)
}

/// What is protected and not encrypted.
struct Additional {
    octets: [u8; 13],
    length: usize,
}

impl Additional {
    #[inline]
    fn aad(&self) -> Aad<&[u8]> {
        Aad::from(&self.octets[..self.length])
    }
}

/// Takes the padding and the type from the end of what follows `start` (RFC 8446, section 5.4).
#[inline]
fn take_inner_type(start: usize, plaintext: &mut Vec<u8>) -> Result<u8, Refused> {
    // The type counts, the padding does, and so there is one octet more than of content.
    if plaintext.len() - start > CONTENT_OCTETS_MAX + 1 {
        return Err(Refused::Oversized);
    }
    while plaintext.len() > start {
        match plaintext.pop() {
            Some(0) | None => {}
            Some(kind) => return Ok(kind),
        }
    }
    Err(Refused::WithoutType)
}

fn key_of(cipher: Cipher, secret: &TrafficSecret) -> [u8; 32] {
    let mut key = [0; 32];
    secret.expand(cipher, b"key", &mut key[..cipher.key_octets()]);
    key
}

/// The secret that `key` was made from, `first` or one of those that follow on it.
fn secret_of(key: &[u8; 32], cipher: Cipher, first: TrafficSecret) -> Option<TrafficSecret> {
    let secrets = std::iter::successors(Some(first), |secret| Some(secret.next(cipher)));
    let mut secrets = secrets.take(UPDATES_BEFORE_MAX);
    secrets.find(|secret| key_of(cipher, secret) == *key)
}
