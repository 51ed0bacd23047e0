//! TSIG keys as an argument and as a key file: refused without their secret in the words, or the
//! same when written again, and messages can be signed with them.

#![no_main]

mod shared;

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use proto::name;
use proto::query::{QueryOptions, write_query};
use proto::tsig::{Algorithm, Key};
use shared::messages::check_sections;

/// A secret shorter than that may be in any words.
const SECRET_OCTETS_MIN: usize = 12;

fn base64(octets: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in octets.chunks(3) {
        let all = chunk.iter().chain([&0, &0]).take(3);
        let bits = all.fold(0_usize, |bits, octet| bits << 8 | usize::from(*octet));
        for place in 0..4 {
            let digit = char::from(DIGITS[bits >> (18 - 6 * place) & 63]);
            text.push(if place <= chunk.len() { digit } else { '=' });
        }
    }
    text
}

fn check_key(key: &Key) {
    assert_eq!(name::wire_length(&key.name), Some(key.name.len()));
    assert!(!key.secret.is_empty() && !key.name.iter().any(u8::is_ascii_uppercase));
    let (name, secret) = (
        name::to_text(&key.name).expect("a name"),
        base64(&key.secret),
    );
    let debug = format!("{key:?}");
    // A name may have the same letters.
    assert!(
        secret.len() < SECRET_OCTETS_MIN || name.contains(&secret) || !debug.contains(&secret),
        "{debug}"
    );
    // A colon in a name would part it, and quotes have no escapes.
    if !name.contains([':', '"']) {
        let argument = format!("{}:{name}:{secret}", key.algorithm);
        let file = format!(
            "key \"{name}\" {{ algorithm {}; secret \"{secret}\"; }};",
            key.algorithm
        );
        for again in [argument.parse::<Key>(), Key::from_key_file(&file)] {
            let again = again.unwrap_or_else(|error| panic!("{argument}: {error}"));
            assert_eq!(again.algorithm, key.algorithm);
            assert_eq!(
                (again.name, again.secret),
                (key.name.clone(), key.secret.clone())
            );
        }
    }
    let mut message = b"before".to_vec();
    let options = QueryOptions::default();
    write_query(b"\x01a\0", 1, 1, &options, &mut message).expect("it is short");
    let octets = message.len();
    key.sign(&mut message, 6, Duration::from_secs(1_800_000_000));
    assert_eq!(message.len(), octets + key.record_octets());
    check_sections(&message[6..]);
}

/// The secret of `[ALG:]NAME:SECRET`, if it is long enough to be told from other words.
fn secret_of(argument: &str) -> Option<&str> {
    let secret = argument.splitn(3, ':').skip(1).last()?;
    (secret.len() >= SECRET_OCTETS_MIN).then_some(secret)
}

fuzz_target!(|octets: &[u8]| {
    let Ok(text) = std::str::from_utf8(octets) else {
        return;
    };
    for default in [Algorithm::HmacMd5, Algorithm::HmacSha256] {
        match Key::parse(text, default) {
            Ok(key) => check_key(&key),
            Err(error) => {
                // Where it stands twice, the words may be of the other one.
                let secret = secret_of(text).filter(|secret| text.matches(secret).count() == 1);
                let is_told = |secret: &&str| {
                    let other: String = secret.chars().rev().collect();
                    let of_other = Key::parse(&text.replace(*secret, &other), default).err();
                    // A secret may be words of the message, whatever the secret is.
                    error.contains(*secret) && !of_other.is_some_and(|it| it.contains(*secret))
                };
                assert_eq!(secret.filter(is_told), None, "{error}");
            }
        }
    }
    match Key::from_key_file(text) {
        Ok(key) => check_key(&key),
        Err(error) => assert!(!error.is_empty()),
    }
});
