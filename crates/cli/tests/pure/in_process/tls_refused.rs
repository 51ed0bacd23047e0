//! Flags of TLS and of EDNS over it that cannot be used or that contradict each other.

use cli::Call;
use testing::folder::Folder;

use crate::call::{call, throng};

/// A fault: flags of `throng run`, a part of the error, a part of its hint.
type Fault<'a> = (&'a str, &'a str, &'a str);

fn check(command: &str, faults: &[Fault<'_>]) {
    for (flags, error_part, hint_part) in faults {
        throng(&format!("{command} {flags}")).refused_with(error_part, hint_part);
    }
}

/// A key with its self-signed certificate.
fn make_certificate(folder: &Folder, name: &str) -> (String, String) {
    let made = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
    let certificate = folder.write(&format!("{name}.pem"), made.cert.pem());
    let key = folder.write(&format!("{name}-key.pem"), made.signing_key.serialize_pem());
    (certificate, key)
}

#[test]
fn choices_of_tls_are_by_name_and_must_go_together() {
    check(
        "run -t dot",
        &[
            ("--tls-version 1.1", "unknown version `1.1`", "1.2 or 1.3"),
            (
                "--tls-ciphers TLS_RSA_WITH_RC4_128_MD5",
                "unknown cipher suite `TLS_RSA_WITH_RC4_128_MD5`",
                "known are TLS_AES_128_GCM_SHA256",
            ),
            ("--tls-groups P-256", "unknown group `P-256`", "secp256r1"),
            (
                "--tls-version 1.3 --tls-ciphers TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
                "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 is of TLS 1.2, the only version is 1.3",
                "of a version offered",
            ),
            (
                "--tls-version 1.2 --tls-ciphers TLS_AES_128_GCM_SHA256",
                "is of TLS 1.3, the only version is 1.2",
                "of a version offered",
            ),
            (
                "--tls-version 1.2 --tls-groups X25519MLKEM768",
                "TLS 1.2 cannot use X25519MLKEM768",
                "of a version offered",
            ),
            (
                "--tls-groups x25519,X25519",
                "x25519 is given twice",
                "each once",
            ),
            (
                "--tls-alpn 0123456789012345678901234567890123456789",
                "1 to 31 bytes, not 40",
                "registered names",
            ),
        ],
    );
}

#[test]
fn resumption_and_early_data_that_cannot_be_are_refused() {
    check(
        "run -t dot",
        &[
            (
                "--tls-resume often",
                "`often` is not a share",
                "from 0 to 1",
            ),
            ("--tls-resume 1.5", "`1.5` is not a share", "from 0 to 1"),
            (
                "--tls-early-data",
                "--tls-early-data: only resumed sessions have early data",
                "--tls-resume always",
            ),
            (
                "--tls-early-data --tls-resume 0",
                "only resumed sessions have early data",
                "--tls-resume always",
            ),
            (
                "--tls-early-data --tls-resume always --tls-version 1.2",
                "TLS 1.2 has none",
                "1.3",
            ),
        ],
    );
}

#[test]
fn flags_of_tls_have_no_effect_without_it() {
    for flag in [
        "--tls-pin x",
        "--tls-version 1.3",
        "--tls-ciphers x",
        "--tls-groups x25519",
        "--tls-resume always",
        "--tls-early-data",
        "--tls-alpn dot",
        "--tls-no-sni",
        "--tls-keylog x",
        "--tls-cert x --tls-key y",
    ] {
        for transport in ["udp", "tcp"] {
            let flags = format!("-t {transport} {flag}");
            let what = format!("no effect on transport {transport}");
            check("run", &[(&flags, &what, "--transport dot")]);
        }
    }
    for flag in ["--tls-pin x", "--tls-cert x --tls-key y"] {
        check("run -t dot", &[(flag, "on a self-test", "--server")]);
    }
}

#[test]
fn pins_are_sha256_in_base64_and_make_no_sense_with_any_certificate() {
    let folder = Folder::new("bad-pins");
    let names = folder.write("names.txt", "a.example A\n");
    let run = format!("run -t dot --server 127.0.0.1 --names {names}");
    let pin = "FHkyLhvI0n70E47cJlRTamTrnYVcsYdjUGbr79CfAVI=";
    check(
        &run,
        &[
            ("--tls-pin x!", "--tls-pin: `x!` is not base64", "openssl"),
            (
                "--tls-pin FHky",
                "3 bytes, a SHA-256 digest has 32",
                "openssl",
            ),
        ],
    );
    let both = throng(&format!("{run} --tls-pin {pin} --tls-insecure"));
    let (error, _) = both.refused();
    assert!(error.contains("cannot be used with"), "{error}");
}

#[test]
fn certificates_of_clients_need_their_key() {
    let folder = Folder::new("bad-client-certificate");
    let names = folder.write("names.txt", "a.example A\n");
    let run = format!("run -t dot --server 127.0.0.1 --names {names}");
    let (certificate, key) = make_certificate(&folder, "one");
    let (_, other_key) = make_certificate(&folder, "two");
    let missing = folder.path("missing.pem");
    for (flags, error, hint) in [
        (
            format!("--tls-cert {certificate} --tls-key {other_key}"),
            "--tls-key: the private key is not that of the certificate",
            "own key",
        ),
        (
            format!("--tls-cert {key} --tls-key {key}"),
            "--tls-cert: there is no certificate in the PEM file",
            "certificate",
        ),
        (
            format!("--tls-cert {certificate} --tls-key {certificate}"),
            "--tls-key: no private key can be read",
            "own key",
        ),
        (
            format!("--tls-cert {missing} --tls-key {key}"),
            "cannot read --tls-cert",
            "PEM file",
        ),
        (
            format!("--tls-cert {certificate} --tls-key {missing}"),
            "cannot read --tls-key",
            "PEM file",
        ),
    ] {
        check(&run, &[(&flags, error, hint)]);
    }
    for alone in ["--tls-cert x", "--tls-key x"] {
        let (error, _) = throng(&format!("{run} {alone}")).refused();
        assert!(error.contains("--tls-"), "{error}");
    }
}

#[test]
fn a_key_log_that_cannot_be_written_is_refused() {
    let folder = Folder::new("bad-key-log");
    let missing = folder.path("no-folder/keys.txt");
    let flags = format!("--tls-keylog {missing}");
    let error = format!("cannot write --tls-keylog {missing}");
    check("run -t dot", &[(&flags, &error, "a folder that exists")]);
    let finished = call(Call {
        arguments: ["run", "-t", "dot"].map(Into::into).into(),
        variables: [("SSLKEYLOGFILE".into(), missing.into())].into(),
        ..Call::default()
    });
    let (error, _) = finished.refused();
    assert!(error.contains("cannot write SSLKEYLOGFILE"), "{error}");
}

#[test]
fn rfc7828_section_3_2_1_keepalive_is_refused_over_udp() {
    let folder = Folder::new("bad-keepalive");
    let names = folder.write("names.txt", "a.example A +keepalive\n");
    let by_line = format!("--names {names}");
    for flags in ["--edns-keepalive", &by_line] {
        let hint = "leave out --edns-keepalive and +keepalive";
        check("run", &[(flags, "RFC 7828 forbids it over UDP", hint)]);
    }
}

#[test]
fn rfc9250_section_5_5_2_keepalive_is_refused_over_quic() {
    for transport in ["doq", "doh3"] {
        let flags = format!("--edns-keepalive -t {transport}");
        let error = format!("EDNS keepalive over {transport}: RFC 9250 forbids it over QUIC");
        check("run", &[(&flags, &error, "leave out --edns-keepalive")]);
    }
}

#[test]
fn rfc7830_section_6_padding_is_refused_where_nothing_is_encrypted() {
    let folder = Folder::new("bad-padding");
    let names = folder.write("names.txt", "a.example A +padding\n");
    let by_line = format!("--names {names}");
    for flags in ["--edns-padding", "--edns-padding 468 -t tcp", &by_line] {
        let error = "it hides nothing that is not encrypted";
        check("run", &[(flags, error, "--allow-plain-padding")]);
    }
    check(
        "run",
        &[
            (
                "--edns-padding --edns-option 12:00 -t dot",
                "--edns-padding contradicts --edns-option 12",
                "one of them",
            ),
            (
                "--edns-keepalive --edns-option 11: -t tcp",
                "--edns-keepalive contradicts --edns-option 11",
                "one of them",
            ),
            (
                "--allow-plain-padding -t dot --edns-padding",
                "no effect: nothing is padded in the clear",
                "leave it out",
            ),
        ],
    );
}

#[test]
fn quic_has_tls13_alone() {
    for transport in ["doq", "doh3"] {
        let flags = format!("--tls-version 1.2 -t {transport}");
        let error = format!("--tls-version 1.2: {transport} is QUIC, which has TLS 1.3 in it");
        check("run", &[(&flags, &error, "leave out --tls-version")]);
    }
}

#[test]
fn a_responder_refuses_what_cannot_be() {
    let missing = Folder::new("bad-responder-tls").path("missing.pem");
    let by_missing = format!("--tls-client-ca {missing}");
    check(
        "responder --listen dot:127.0.0.1:0",
        &[
            (
                "--tls-early-data --tls-tickets 0",
                "without tickets no session",
                "leave out --tls-tickets 0",
            ),
            ("--tls-groups none", "unknown group `none`", "x25519"),
            (&by_missing, "cannot read --tls-client-ca", "PEM file"),
        ],
    );
    check(
        "responder --listen udp:127.0.0.1:0",
        &[
            (
                "--tls-early-data",
                "nothing listens with TLS",
                "--listen dot",
            ),
            (
                "--tls-tickets 1",
                "nothing listens with TLS",
                "--listen dot",
            ),
        ],
    );
}
