//! HPACK against the examples of RFC 7541, appendix C, and against itself.

use super::*;
use proptest::prelude::*;

type Fields = Vec<(String, String)>;

/// A block, its fields, and what the table counts after it.
type Example<'a> = (&'a str, &'a [(&'a str, &'a str)], usize);

fn octets(hexadecimal: &str) -> Vec<u8> {
    let digits: String = hexadecimal.split_whitespace().collect();
    data_encoding::HEXLOWER.decode(digits.as_bytes()).unwrap()
}

fn decode(decoder: &mut Decoder, block: &[u8]) -> Result<Fields, DecodeError> {
    let mut fields = Vec::new();
    let text = |octets: &[u8]| String::from_utf8_lossy(octets).into_owned();
    decoder.decode(block, |name, value| fields.push((text(name), text(value))))?;
    Ok(fields)
}

fn fields(fields: &[(&str, &str)]) -> Fields {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    fields.iter().map(owned).collect()
}

/// Decodes blocks of one connection; each has its fields, and the table's octets afterwards.
fn check(decoder: &mut Decoder, blocks: &[Example<'_>]) {
    for (block, expected, table_octets) in blocks {
        assert_eq!(
            decode(decoder, &octets(block)),
            Ok(fields(expected)),
            "{block}"
        );
        assert_eq!(decoder.table_octets(), *table_octets, "{block}");
    }
}

mod rfc7541 {
    use super::*;

    #[test]
    fn appendix_c_1_integers() {
        for (prefix_bits, value, encoded) in [(5, 10, "0a"), (5, 1_337, "1f9a0a"), (8, 42, "2a")] {
            let mut out = Vec::new();
            integer::write(0, prefix_bits, value, &mut out);
            assert_eq!(out, octets(encoded));
            assert_eq!(integer::read(&mut out.as_slice(), prefix_bits), Ok(value));
        }
    }

    #[test]
    fn section_5_1_integers_end_and_have_a_bound() {
        let read = |encoded: &str| integer::read(&mut octets(encoded).as_slice(), 5);
        assert_eq!(read(""), Err(DecodeError::Truncated));
        assert_eq!(read("1f9a"), Err(DecodeError::Truncated));
        assert_eq!(read("1fe1ffff07"), Ok(1 << 24));
        assert_eq!(read("1fe2ffff07"), Err(DecodeError::IntegerTooLarge));
        assert_eq!(read("1fffffffff0f"), Err(DecodeError::IntegerTooLarge));
        assert_eq!(
            read("1f808080808080808000"),
            Err(DecodeError::IntegerTooLarge)
        );
    }

    #[test]
    fn appendix_c_2_representations() {
        let literal = "400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572";
        let mut decoder = Decoder::default();
        check(
            &mut decoder,
            &[(literal, &[("custom-key", "custom-header")], 55)],
        );
        assert_eq!(
            decoder.table_entries(),
            fields(&[("custom-key", "custom-header")])
        );
        check(
            &mut Decoder::default(),
            &[
                (
                    "040c 2f73 616d 706c 652f 7061 7468",
                    &[(":path", "/sample/path")],
                    0,
                ),
                (
                    "1008 7061 7373 776f 7264 0673 6563 7265 74",
                    &[("password", "secret")],
                    0,
                ),
                ("82", &[(":method", "GET")], 0),
            ],
        );
    }

    const FIRST_REQUEST: &[(&str, &str)] = &[
        (":method", "GET"),
        (":scheme", "http"),
        (":path", "/"),
        (":authority", "www.example.com"),
    ];
    const SECOND_REQUEST: &[(&str, &str)] = &[
        (":method", "GET"),
        (":scheme", "http"),
        (":path", "/"),
        (":authority", "www.example.com"),
        ("cache-control", "no-cache"),
    ];
    const THIRD_REQUEST: &[(&str, &str)] = &[
        (":method", "GET"),
        (":scheme", "https"),
        (":path", "/index.html"),
        (":authority", "www.example.com"),
        ("custom-key", "custom-value"),
    ];

    #[test]
    fn appendix_c_3_requests_without_huffman() {
        let mut decoder = Decoder::default();
        check(
            &mut decoder,
            &[
                (
                    "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
                    FIRST_REQUEST,
                    57,
                ),
                ("8286 84be 5808 6e6f 2d63 6163 6865", SECOND_REQUEST, 110),
                (
                    "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
                    THIRD_REQUEST,
                    164,
                ),
            ],
        );
        let expected = [
            ("custom-key", "custom-value"),
            ("cache-control", "no-cache"),
            (":authority", "www.example.com"),
        ];
        assert_eq!(decoder.table_entries(), fields(&expected));
    }

    #[test]
    fn appendix_c_4_requests_with_huffman() {
        check(
            &mut Decoder::default(),
            &[
                (
                    "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff",
                    FIRST_REQUEST,
                    57,
                ),
                ("8286 84be 5886 a8eb 1064 9cbf", SECOND_REQUEST, 110),
                (
                    "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
                    THIRD_REQUEST,
                    164,
                ),
            ],
        );
    }

    #[test]
    fn appendix_c_4_fields_are_written_like_the_examples() {
        let authority = Field::new(":authority", "www.example.com");
        assert_eq!(
            *authority.borrowed().inserting,
            octets("41 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff")
        );
        let cache = Field::new("cache-control", "no-cache");
        assert_eq!(*cache.borrowed().inserting, octets("5886 a8eb 1064 9cbf"));
        let custom = Field::new("custom-key", "custom-value");
        let expected = octets("4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf");
        assert_eq!(
            (custom.borrowed().inserting, custom.borrowed().table_octets),
            (expected.as_slice(), 54)
        );
    }

    const DATE_21: &str = "Mon, 21 Oct 2013 20:13:21 GMT";
    const DATE_22: &str = "Mon, 21 Oct 2013 20:13:22 GMT";
    const LOCATION: &str = "https://www.example.com";
    const COOKIE: &str = "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1";
    const FIRST_RESPONSE: &[(&str, &str)] = &[
        (":status", "302"),
        ("cache-control", "private"),
        ("date", DATE_21),
        ("location", LOCATION),
    ];
    const SECOND_RESPONSE: &[(&str, &str)] = &[
        (":status", "307"),
        ("cache-control", "private"),
        ("date", DATE_21),
        ("location", LOCATION),
    ];
    const THIRD_RESPONSE: &[(&str, &str)] = &[
        (":status", "200"),
        ("cache-control", "private"),
        ("date", DATE_22),
        ("location", LOCATION),
        ("content-encoding", "gzip"),
        ("set-cookie", COOKIE),
    ];

    /// Both examples use a table of 256 octets, so that entries are evicted.
    fn check_responses(blocks: [&str; 3]) {
        let mut decoder = Decoder::default();
        decode(&mut decoder, &octets("3fe101")).unwrap();
        let [first, second, third] = blocks;
        check(
            &mut decoder,
            &[
                (first, FIRST_RESPONSE, 222),
                (second, SECOND_RESPONSE, 222),
                (third, THIRD_RESPONSE, 215),
            ],
        );
        let expected = [
            ("set-cookie", COOKIE),
            ("content-encoding", "gzip"),
            ("date", DATE_22),
        ];
        assert_eq!(decoder.table_entries(), fields(&expected));
    }

    #[test]
    fn appendix_c_5_responses_without_huffman() {
        check_responses([
            "4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133
             2032 303a 3133 3a32 3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70
             6c65 2e63 6f6d",
            "4803 3330 37c1 c0bf",
            "88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d
             54c0 5a04 677a 6970 7738 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049
             5541 5851 5745 4f49 553b 206d 6178 2d61 6765 3d33 3630 303b 2076 6572 7369 6f6e
             3d31",
        ]);
    }

    #[test]
    fn appendix_c_6_responses_with_huffman() {
        check_responses([
            "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6
             2d1b ff6e 919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
            "4883 640e ffc1 c0bf",
            "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab
             77ad 94e7 821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f
             9587 3160 65c0 03ed 4ee5 b106 3d50 07",
        ]);
    }

    #[test]
    fn section_2_3_3_index_of_neither_table_is_an_error() {
        for block in ["80", "be", "ff00", "7f00 0161", "0f30 0161"] {
            let decoded = decode(&mut Decoder::default(), &octets(block));
            assert_eq!(decoded, Err(DecodeError::Index), "{block}");
        }
    }

    #[test]
    fn section_4_2_table_size_changes_only_at_the_start_and_within_the_limit() {
        let mut decoder = Decoder::default();
        check(&mut decoder, &[("40 0161 0162", &[("a", "b")], 34)]);
        assert_eq!(
            decode(&mut decoder, &octets("8220")),
            Err(DecodeError::TableSize)
        );
        assert_eq!(
            decode(&mut decoder, &octets("3fe21f")),
            Err(DecodeError::TableSize)
        );
        assert_eq!(
            decode(&mut decoder, &octets("203fe11f 82")),
            Ok(fields(&[(":method", "GET")]))
        );
        assert_eq!(decoder.table_octets(), 0, "size 0 has evicted everything");
        decoder.set_table_limit(0);
        check(&mut decoder, &[("40 0161 0162", &[("a", "b")], 34)]);
        assert_eq!(
            decode(&mut decoder, &octets("21")),
            Err(DecodeError::TableSize)
        );
        assert_eq!(
            decode(&mut decoder, &octets("20be")),
            Err(DecodeError::Index)
        );
    }

    #[test]
    fn section_4_2_encoder_signals_a_smaller_table_and_begins_anew() {
        let mut encoder = Encoder::default();
        let field = Field::new("custom-key", "custom-value");
        let block = |encoder: &mut Encoder| {
            let mut out = Vec::new();
            encoder.start_block(&mut out);
            encoder.field(0, field.borrowed(), &mut out);
            out
        };
        assert_eq!(block(&mut encoder), *field.borrowed().inserting);
        assert_eq!(block(&mut encoder), [0x80 | 62]);
        encoder.set_table_limit(65_536);
        assert_eq!(block(&mut encoder), [0x80 | 62]);
        encoder.set_table_limit(54);
        let resized = [&[0x20, 0x3f, 54 - 31], field.borrowed().inserting].concat();
        assert_eq!(block(&mut encoder), resized);
        assert_eq!(block(&mut encoder), [0x80 | 62]);
        encoder.set_table_limit(53);
        encoder.set_table_limit(0);
        encoder.set_table_limit(4_096);
        assert_eq!(
            block(&mut encoder),
            [&[0x20], field.borrowed().plain].concat()
        );
        assert_eq!(block(&mut encoder), *field.borrowed().plain);
    }

    #[test]
    fn section_4_4_name_of_an_entry_that_its_own_insertion_evicts_stays_valid() {
        let mut decoder = Decoder::default();
        decode(&mut decoder, &octets("3f15")).unwrap(); // 52 octets
        check(
            &mut decoder,
            &[
                ("40 05 6e616d6533 03 6f6e65", &[("name3", "one")], 40),
                ("7e 03 74776f", &[("name3", "two")], 40),
                ("be", &[("name3", "two")], 40),
                // Too large for the table: empties it (section 4.4).
                (
                    "7e 10 30313233343536373839303132333435",
                    &[("name3", "0123456789012345")],
                    0,
                ),
            ],
        );
    }

    #[test]
    fn section_5_2_string_longer_than_its_block_is_an_error() {
        for block in ["40", "4001", "400161", "40016102 62", "04ff"] {
            let decoded = decode(&mut Decoder::default(), &octets(block));
            assert_eq!(decoded, Err(DecodeError::Truncated), "{block}");
        }
        let decoded = decode(&mut Decoder::default(), &octets("0481ff"));
        assert_eq!(decoded, Err(DecodeError::Huffman));
    }
}

#[test]
fn block_that_stands_for_too_much_is_an_error() {
    let mut decoder = Decoder::default();
    let mut block = octets("400161 7fa11e");
    block.extend([b'x'; 4_000]);
    decode(&mut decoder, &block).unwrap();
    assert_eq!(
        decode(&mut decoder, &[0x80 | 62; 16]).map(|fields| fields.len()),
        Ok(16)
    );
    assert_eq!(
        decode(&mut decoder, &[0x80 | 62; 17]),
        Err(DecodeError::ListTooLong)
    );
}

#[test]
fn media_type_is_recognised_in_its_usual_encoding() {
    let mut encoded = Vec::new();
    huffman::encode(b"application/dns-message", &mut encoded);
    assert_eq!(encoded, decoder::MEDIA_TYPE_HUFFMAN);
}

#[test]
fn numbers_are_indexed_from_their_second_time_until_the_table_is_full() {
    let (mut encoder, mut decoder) = (Encoder::default(), Decoder::default());
    let field = Field::new("accept", "application/dns-message");
    for round in 0..3 {
        for octets in 0..200 {
            let mut out = Vec::new();
            encoder.start_block(&mut out);
            encoder.field(0, field.borrowed(), &mut out);
            encoder.number(NumberField::CONTENT_LENGTH, octets, &mut out);
            let decoded = decode(&mut decoder, &out).unwrap();
            assert_eq!(decoded[0].1, "application/dns-message");
            assert_eq!(
                decoded[1],
                ("content-length".to_owned(), octets.to_string())
            );
            let is_indexed = out.len() == 2;
            assert_eq!(is_indexed, round > 0 && octets < 60, "{octets}");
        }
    }
}

/// One thing that happens to an encoder.
#[derive(Clone, Debug)]
enum Step {
    TableLimit(u32),
    Length(u32),
    MaxAge(u32),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        1 => (0_u32..6_000).prop_map(Step::TableLimit),
        6 => (0_u32..100).prop_map(Step::Length),
        3 => any::<u32>().prop_map(Step::MaxAge),
    ]
}

proptest! {
    #[test]
    fn what_was_encoded_is_decoded_whatever_happens_to_the_table(
        shared in prop::collection::vec(("[a-z-]{1,30}", "[ -~]{0,80}"), 0..6),
        steps in prop::collection::vec(step(), 0..120),
    ) {
        let (mut encoder, mut decoder) = (Encoder::default(), Decoder::default());
        let rendered: Vec<Field> =
            shared.iter().map(|(name, value)| Field::new(name, value)).collect();
        for step in steps {
            let mut out = Vec::new();
            let mut expected = shared.clone();
            if let Step::TableLimit(octets) = step {
                encoder.set_table_limit(octets);
                continue;
            }
            encoder.start_block(&mut out);
            for (ordinal, field) in rendered.iter().enumerate() {
                encoder.field(ordinal as u8, field.borrowed(), &mut out);
            }
            if let Step::Length(value) = step {
                encoder.number(NumberField::CONTENT_LENGTH, value, &mut out);
                expected.push(("content-length".to_owned(), value.to_string()));
            } else if let Step::MaxAge(value) = step {
                encoder.number(NumberField::MAX_AGE, value, &mut out);
                expected.push(("cache-control".to_owned(), format!("max-age={value}")));
            }
            prop_assert_eq!(decode(&mut decoder, &out), Ok(expected));
        }
    }

    #[test]
    fn random_octets_never_break_the_decoder(
        blocks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 1..20),
    ) {
        let mut decoder = Decoder::default();
        for block in blocks {
            let _ = decode(&mut decoder, &block);
            prop_assert!(decoder.table_octets() <= 4_096);
        }
    }
}
