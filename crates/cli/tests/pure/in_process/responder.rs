//! `throng responder`: what it refuses before it listens.

use testing::folder::Folder;

use crate::call::throng;

fn check_refused(flags: &str, error_part: &str) {
    let (error, hint) = throng(&format!("responder {flags}")).refused();
    assert!(
        error.contains(error_part),
        "{flags}: no `{error_part}` in `{error}`\n{hint}"
    );
}

#[test]
fn a_zone_file_that_cannot_be_used_is_named_with_the_line_at_fault() {
    let folder = Folder::new("bad-zone");
    let listen = "--listen udp:127.0.0.1:0 --zone";
    let missing = folder.path("missing.zone");
    check_refused(
        &format!("{listen} {missing}"),
        &format!("cannot read {missing}"),
    );
    let soa = "$ORIGIN lab.test.\n@ 300 IN SOA ns hostmaster 1 3600 600 86400 30\n";
    for (content, line) in [
        (format!("{soa}www 60 IN A 1.2.3\n"), "line 3"),
        (format!("{soa}\nwww 60 IN NOSUCHTYPE x\n"), "line 4"),
        ("www 60 IN A 192.0.2.1\n".to_owned(), "line 1"),
        (
            "$ORIGIN lab.test.\nwww 60 IN A 192.0.2.1\n".to_owned(),
            "SOA",
        ),
    ] {
        let zone = folder.write("bad.zone", &content);
        let (error, _) = throng(&format!("responder {listen} {zone}")).refused();
        assert!(error.starts_with(&format!("{zone}: ")), "{error}");
        assert!(error.contains(line), "{content}: {error}");
    }
}

#[test]
fn bad_flags_are_refused_before_it_listens() {
    let folder = Folder::new("bad-responder");
    let names = folder.write("names.txt", "a.example A\n");
    check_refused("", "required arguments were not provided: --listen");
    for (listen, error) in [
        (
            "udp:127.0.0.1",
            "`udp:127.0.0.1` is not of the form udp:127.0.0.1:5300",
        ),
        ("doh4:127.0.0.1:0", "unknown transport `doh4`"),
        ("127.0.0.1:53", "`127.0.0.1:53` has no transport"),
        (
            "doq:127.0.0.1:0 --tls-version 1.2",
            "the responder cannot serve doq: ",
        ),
    ] {
        check_refused(&format!("--listen {listen}"), error);
    }
    for (flags, error) in [
        ("--loss 2", "--loss: `2` is not a share"),
        ("--garbage x", "--garbage"),
        ("--loss 0.6 --truncate 0.6", "1.2"),
        ("--rcodes SERVFAIL", "--rcodes: "),
        ("--rcodes SERVFAIL=2", "--rcodes: "),
        (
            "--http-statuses 503",
            "--http-statuses: `503` is not an HTTP status share",
        ),
        (
            "--http-statuses 99=0.1",
            "--http-statuses: `99` is not an HTTP status",
        ),
        ("--reset-streams 2", "--reset-streams: `2` is not a share"),
        ("--doh-path dns-query", "`dns-query` is not a path for DoH"),
        ("--quic-retry 2", "--quic-retry: `2` is not a share"),
        (
            "--quic-retry 0.6 --quic-refuse 0.6",
            "the shares of QUIC connections sum to 1.2",
        ),
        ("--end-after 1:error=x", "`error=x` is not a way"),
        ("--delay soon", "`soon` is not a delay"),
        ("--delay uniform:5ms..1ms", "--delay"),
        ("--stall for=1s", "--stall"),
        ("--ceiling lots", "--ceiling: `lots` is not a rate"),
        ("--end-after 5:explode", "explode"),
        ("--idle-timeout 5", "--idle-timeout"),
        ("--origin lab.test", "--zone"),
        ("--tls-key x", "--tls-cert"),
        (
            "--write-certificate x",
            "--write-certificate has no effect: nothing listens with TLS",
        ),
    ] {
        check_refused(&format!("--listen udp:127.0.0.1:0 {flags}"), error);
    }
    let dot = "--listen dot:127.0.0.1:0";
    let missing = folder.path("missing/certificate.pem");
    check_refused(
        &format!("{dot} --write-certificate {missing}"),
        "cannot write",
    );
    let flags = format!("{dot} --tls-cert {names} --tls-key {names}");
    check_refused(&flags, "certificate");
}

#[test]
fn file_of_counters_that_cannot_be_written_or_shared_is_refused() {
    throng("responder --listen udp:127.0.0.1:0 --counters /no/such/folder/file")
        .refused_with("/no/such/folder/file", "--counters");
    throng("responder --listen udp:127.0.0.1:0 --processes 2 --counters file")
        .refused_with("one process", "--processes");
}

#[test]
fn a_responder_that_all_hosts_could_use_needs_the_consent_of_the_user() {
    for address in ["0.0.0.0:0", "[::]:0", "192.88.99.1:0", "[2600::1]:0"] {
        throng(&format!("responder --listen tcp:127.0.0.1:0,udp:{address}"))
            .refused_with(&format!("udp:{address}"), "--allow-public");
    }
}
