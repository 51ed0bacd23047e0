//! Signatures against MACs from two other implementations, and records as hickory-proto reads them.

use super::*;
use crate::query::{Edns, QueryOptions, write_query};
use data_encoding::HEXLOWER;
use hickory_proto::op::Message;
use hickory_proto::rr::RData;

/// A query for `www.example.com A` with ID 0x1234 and an OPT record.
fn query() -> Vec<u8> {
    let mut qname = Vec::new();
    name::parse("www.example.com", &mut qname).unwrap();
    let options = QueryOptions {
        edns: Some(Edns::default()),
        ..QueryOptions::default()
    };
    let mut message = Vec::new();
    write_query(&qname, 1, 1, &options, &mut message).unwrap();
    message[..2].copy_from_slice(&[0x12, 0x34]);
    message
}

const TIME: Duration = Duration::from_secs(0x0001_2345_6789);

#[test]
fn signed_query_has_the_mac_that_others_compute() {
    // Computed from RFC 8945, section 4.3, with Python's hmac module.
    for (algorithm, mac) in [
        ("hmac-md5", "05088915d55ecd07df9c3d702faf22d3"),
        ("hmac-sha1", "cb5713c9e6c1d24d3bc1934f1959d195ebcdbc0d"),
        (
            "hmac-sha224",
            "da3b82ef6329d20b6562d958ce23d16f6fb2137b5d4483091715d318",
        ),
        (
            "hmac-sha256",
            "c9888ddc51574899cf004191c707dc4e4056e9d2634c62571ccdf0fa7505d67f",
        ),
        (
            "hmac-sha384",
            "3aecd517ad7e19b82b9c099bf750cbfb9aa7011c19323ad7\
             c97d884af0ae0428f9e12f0c8fd0741ec6b0afad6b531620",
        ),
        (
            "hmac-sha512",
            "bafcd8e509c25cc47e1edaa37e50624d96bd36c352b57205ed4c92b4d295d18b\
             1c700f09a1efc6a5d3173407bf7d550fe1de2400dadae1ad31128bb262c72ef7",
        ),
    ] {
        let secret = BASE64.encode(b"not so secret secret");
        let key: Key = format!("{algorithm}:KEY.example:{secret}").parse().unwrap();
        let mut message = query();
        let unsigned_octets = message.len();
        key.sign(&mut message, 0, TIME);
        assert_eq!(
            message.len() - unsigned_octets,
            key.record_octets(),
            "{algorithm}"
        );

        let message = Message::from_vec(&message).unwrap();
        let record = message.additionals.last().unwrap();
        assert_eq!(record.name.to_ascii(), "key.example.");
        assert_eq!((u16::from(record.dns_class), record.ttl), (255, 0));
        let RData::TSIG(tsig) = &record.data else {
            panic!("{record} is no TSIG")
        };
        let wire_name = tsig.algorithm.to_name().to_ascii().to_lowercase();
        assert_eq!(wire_name.trim_end_matches('.').parse(), Ok(key.algorithm));
        assert_eq!(
            (tsig.time, tsig.fudge, tsig.oid),
            (TIME.as_secs(), 300, 0x1234)
        );
        assert_eq!((tsig.error.is_none(), tsig.other.is_empty()), (true, true));
        assert_eq!(HEXLOWER.encode(&tsig.mac), mac, "{algorithm}");
        assert!(message.edns.is_some(), "the OPT record is still there");
    }
}

#[test]
fn signed_query_has_the_octets_that_dnsperf_sends() {
    // Received from dnsperf 2.10.0 with these values of `-y`.
    for (key, octets) in [
        (
            "hmac-md5:Key.Example:c2VjcmV0c2VjcmV0YWI=",
            "000001000001000000000001076578616d706c6503636f6d0000010001036b6579076578616d706c\
             650000fa00ff00000000003a08686d61632d6d6435077369672d616c670372656703696e74000000\
             6b014e63012c00107111907bd8fe525c2d6c5e1a608aca67000000000000",
        ),
        (
            "HMAC-SHA1:Key.Example.:c2VjcmV0c2VjcmV0YWI=",
            "000001000001000000000001076578616d706c6503636f6d0000010001036b6579076578616d706c\
             650000fa00ff00000000002f09686d61632d736861310000006b014e64012c0014e5500df3737b6e\
             c309c22ab07a8a41d51e661c18000000000000",
        ),
        (
            "hmac-sha512:k:c2VjcmV0c2VjcmV0YWI=",
            "000001000001000000000001076578616d706c6503636f6d0000010001016b0000fa00ff00000000\
             005d0b686d61632d7368613531320000006b014e65012c00408acc996e01feafd77610e47787d81e\
             fb00860cf6c09d0b5cd49128ed91281d12c1c549f637b7f9a8251524a67fa362e467df277c735b83\
             0cd29da327d9e847ab000000000000",
        ),
    ] {
        let expected = HEXLOWER.decode(octets.as_bytes()).unwrap();
        let key: Key = key.parse().unwrap();
        let mut message = b"before".to_vec();
        let options = QueryOptions::default();
        write_query(b"\x07example\x03com\0", 1, 1, &options, &mut message).unwrap();
        let time_at = expected.len() - 6 - usize::from(key.algorithm.mac_octets()) - 2 - 2 - 4;
        let time: [u8; 4] = expected[time_at..time_at + 4].try_into().unwrap();
        key.sign(
            &mut message,
            6,
            Duration::from_secs(u32::from_be_bytes(time).into()),
        );
        assert_eq!(HEXLOWER.encode(&message[6..]), HEXLOWER.encode(&expected));
        assert!(message.starts_with(b"before"));
    }
}

#[test]
fn key_texts_are_split_into_algorithm_name_and_secret() {
    let key: Key = "Key:AAEC".parse().unwrap();
    assert_eq!(key.algorithm, Algorithm::HmacSha256);
    assert_eq!(
        (&key.name[..], &key.secret[..]),
        (&b"\x03key\0"[..], &[0, 1, 2][..])
    );
    let as_dnsperf_does = Key::parse("Key:AAEC", Algorithm::HmacMd5).unwrap();
    assert_eq!(as_dnsperf_does.algorithm, Algorithm::HmacMd5);
    for algorithm in Algorithm::ALL {
        let key: Key = format!("{algorithm}:a.b:AAEC").parse().unwrap();
        assert_eq!(key.algorithm, algorithm);
    }
}

#[test]
fn malformed_key_texts_are_refused_without_showing_the_secret() {
    for (text, hint) in [
        ("", "[ALG:]NAME:SECRET"),
        ("key", "[ALG:]NAME:SECRET"),
        ("key:", "empty"),
        (":c2VjcmV0", "name"),
        ("a..b:c2VjcmV0", "name"),
        ("key:c2VjcmV0!", "base64"),
        ("hmac-sha3:key:c2VjcmV0", "hmac-sha3"),
        ("hmac-sha256:key:c2VjcmV0:c2VjcmV0", "base64"),
    ] {
        let error = text.parse::<Key>().unwrap_err();
        assert!(error.contains(hint), "{text}: {error}");
        assert!(!error.contains("c2VjcmV0"), "{error}");
    }
    let shown = format!("{:?}", "key:c2VjcmV0".parse::<Key>());
    assert_eq!(shown, "Ok(Key(HmacSha256, key.))");
}

#[test]
fn key_files_of_tsig_keygen_are_read() {
    let plain = "key \"Example.key\" {\n\talgorithm hmac-sha512;\n\tsecret \"AAEC\";\n};\n";
    let dense = "/* a */options{};key Example.key{secret AAEC;algorithm \"HMAC-SHA512\";}";
    let commented =
        "# key a\nkey example.key // key b {\n{ algorithm hmac-sha512.; secret \"AAEC\"; };";
    for text in [plain, dense, commented] {
        let key = Key::from_key_file(text).unwrap();
        assert_eq!(key.algorithm, Algorithm::HmacSha512, "{text}");
        assert_eq!(key.name, b"\x07example\x03key\0", "{text}");
        assert_eq!(key.secret, [0, 1, 2], "{text}");
    }
}

#[test]
fn malformed_key_files_are_refused_with_a_reason() {
    for (text, hint) in [
        ("", "no `key` statement"),
        ("\"key\" x", "no `key` statement"),
        ("key", "name after `key`"),
        ("key a;", "`{`"),
        ("key a {", "not closed"),
        ("key a { secret AAEC; };", "no algorithm"),
        ("key a { algorithm hmac-sha1; };", "no secret"),
        ("key a { algorithm ; };", "name after `algorithm`"),
        ("key a { flavour salt; };", "unknown clause"),
        ("key \"a { algorithm hmac-sha1;", "quoted text"),
        ("/* key", "comment"),
        ("key a { algorithm hmac-sha1; secret \"*\"; };", "base64"),
    ] {
        let error = Key::from_key_file(text).unwrap_err();
        assert!(error.contains(hint), "{text}: {error}");
    }
}

proptest::proptest! {
    #[test]
    fn any_text_is_survived(text in ".{0,200}", tail in "[ {};\"key/*#\\n]{0,40}") {
        let _ = text.parse::<Key>();
        let _ = Key::from_key_file(&text);
        let _ = Key::from_key_file(&format!("key {tail}"));
    }
}
