//! Bad input: one clear error with its cure, exit code 2, and nothing was started. What takes a
//! port to be refused is in `tests/real/command_line`.

use std::path::Path;

use testing::folder::Folder;

use crate::call::throng;

/// Checks that a command is refused with these parts in its error and its hint.
fn check(flags: &str, error_part: &str, hint_part: &str) {
    throng(flags).refused_with(error_part, hint_part);
}

/// A names file that is as it should be.
fn names_in(folder: &Folder) -> String {
    folder.write("names.txt", "a.example A\n")
}

#[test]
fn a_names_file_that_cannot_be_used_is_named_with_the_line_at_fault() {
    let folder = Folder::new("bad-names");
    let run = "run --server 127.0.0.1 --names";
    let missing = folder.path("missing.txt");
    check(
        &format!("{run} {missing}"),
        &format!("cannot read {missing}: No such file"),
        "check",
    );
    for (content, error, hint) in [
        (
            "a.example A\nb.example\n",
            "line 2: no type after the name in `b.example`",
            "AAAA",
        ),
        (
            "a.example FOO\n",
            "line 1: unknown type `FOO`",
            "types are mnemonics",
        ),
        ("a.example A\n\n; b\na..b A\n", "line 4", ""),
        (
            "a.example A +nosuch\n",
            "unknown option `+nosuch`",
            "known are +do",
        ),
        ("a.example A +ecs=1.2.3.4/40\n", "line 1", "known are"),
        (
            "a.example A +noedns +do\n",
            "contradicts",
            "use one of them",
        ),
        ("a.example A 17 x\n", "unexpected", "options follow"),
        (
            "; nothing\n\n",
            "it has no questions",
            "write a name and a type",
        ),
        ("", "it has no questions", "write a name and a type"),
    ] {
        let names = folder.write("bad.txt", content);
        let (found, cure) = throng(&format!("{run} {names}")).refused();
        assert!(found.starts_with(&format!("{names}: ")), "{found}");
        assert!(found.contains(error), "no `{error}` in `{found}`");
        assert!(
            cure.contains(hint) && !cure.is_empty(),
            "no `{hint}` in `{cure}`"
        );
    }
    let stream = folder.write("cut.bin", [0, 27, 1, 2, 3]);
    let flags = format!("{run} {stream} --names-format stream");
    check(
        &flags,
        "message 1 at byte 0: cut off: 3 of 27 bytes",
        "the stream format is",
    );
}

#[test]
fn a_server_without_a_usable_port_or_questions_is_refused() {
    let folder = Folder::new("bad-port");
    let names = names_in(&folder);
    let run = |server: &str| format!("run --names {names} --server {server}");
    check(
        &run("127.0.0.1:99999"),
        "`99999` is not a port",
        "HOST:PORT",
    );
    check(&run("127.0.0.1:0"), "has port 0", "give the port");
    check(
        "run --server 127.0.0.1",
        "no questions",
        "throng names records",
    );
}

#[test]
fn an_address_with_a_port_and_no_brackets_is_shown_with_them() {
    let folder = Folder::new("brackets");
    let names = names_in(&folder);
    for flags in ["", "--allow-public"] {
        throng(&format!("run --server ::1:5300 --names {names} {flags}"))
            .refused_with("an address without a port", "write [::1]:5300");
    }
}

#[test]
fn a_public_address_needs_permission() {
    let folder = Folder::new("public");
    let names = names_in(&folder);
    let record = folder.path("record.json");
    for server in [
        "8.8.8.8",
        "8.8.8.8:53",
        "2001:4860::8888",
        "[2001:4860:4860::8888]:53",
        "::ffff:9.9.9.9",
    ] {
        for transport in ["udp", "tcp", "dot"] {
            let flags = format!("--names {names} --transport {transport} --record {record}");
            let line = format!("run --server {server} {flags}");
            check(
                &line,
                "is a public address",
                "only be sent where you have permission",
            );
            check(&line, "is a public address", "--allow-public");
            assert!(!Path::new(&record).exists());
        }
    }
}

#[test]
fn contradictory_flags_are_refused() {
    for (flags, error, hint) in [
        (
            "--rate 5 --outstanding 3",
            "cannot be used with",
            "leave out one of them",
        ),
        (
            "--queries 5 --loops 3",
            "cannot be used with",
            "leave out one of them",
        ),
        (
            "--tsig a:AA --tsig-file b",
            "cannot be used with",
            "leave out one of them",
        ),
        (
            "--burst 2",
            "--burst has no effect on a load without a rate",
            "add --rate",
        ),
        (
            "--rate 5 --burst 0",
            "burst: 0 queries cannot be due together",
            "a burst has 1 to 10000 queries",
        ),
        (
            "--arrival poisson",
            "--arrival has no effect on a load without a rate",
            "add --rate",
        ),
        (
            "--workers 5 --clients 2",
            "have only 2 clients",
            "use 2 workers",
        ),
        (
            "--outstanding 1 --workers 2",
            "too few for 2 workers",
            "raise",
        ),
        (
            "--outstanding 100000 --clients 1",
            "may have 61440 open",
            "more clients",
        ),
        (
            "--local-address ::1",
            "not of the address family",
            "target's family",
        ),
        (
            "--local-port 65530 --clients 100",
            "need port 65629",
            "lower port",
        ),
        (
            "--driver sim --server 127.0.0.1",
            "cannot reach",
            "leave out --server",
        ),
    ] {
        check(&format!("run {flags}"), error, hint);
    }
}

#[test]
fn flags_without_effect_are_refused() {
    for (flags, error, hint) in [
        (
            "--queries-per-connection 5",
            "udp has no connections",
            "another transport",
        ),
        (
            "--tcp-fallback -t tcp",
            "no truncated responses",
            "transport udp",
        ),
        ("--tls-ca x", "on transport udp", "--transport dot"),
        ("--tls-name x -t tcp", "on transport tcp", "--transport dot"),
        (
            "--tls-insecure -t tcp",
            "on transport tcp",
            "--transport dot",
        ),
        ("--tls-ca x -t dot", "on a self-test", "--server"),
        (
            "--sim-loss 0.5",
            "--sim-loss has no effect",
            "add --driver sim",
        ),
        ("--sim-delay 3ms", "--sim-delay has no", "add --driver sim"),
        ("--driver sim --cpus 0", "on a simulation", "--driver epoll"),
        (
            "--names-format stream",
            "self-test's own names",
            "--names FILE",
        ),
    ] {
        check(&format!("run {flags}"), error, hint);
    }
    let server = "run --server 127.0.0.1 --names x";
    for flag in [
        "--delay 5ms",
        "--loss 0.1",
        "--stall at=1s,for=1s",
        "--end-after 5:close",
    ] {
        let name = flag.split(' ').next().unwrap();
        let error = format!("{name} has no effect on 127.0.0.1");
        check(&format!("{server} {flag}"), &error, "leave out --server");
    }
    for flag in [
        "--dnssec",
        "--edns-size 1232",
        "--edns-option 1:00",
        "--no-recursion",
    ] {
        let name = flag.split(' ').next().unwrap();
        let flags = format!("{server} --names-format stream {flag}");
        let error = format!("{name} has no effect on whole messages");
        check(&flags, &error, "--names-format text");
    }
}

#[test]
fn values_out_of_range_name_their_flag() {
    for (flags, error) in [
        ("--clients 0", "--clients: must not be zero"),
        ("--workers 0", "--workers: must not be zero"),
        ("--outstanding 0", "--outstanding: must not be zero"),
        ("--queries 0", "--queries: must not be zero"),
        ("--loops 0", "must not be zero"),
        ("--duration 0s", "--duration: must not be zero"),
        (
            "--interval 0s",
            "'0s' for '--interval <TIME>': it is less than 1ms",
        ),
        (
            "--interval 1us",
            "'1us' for '--interval <TIME>': it is less than 1ms",
        ),
        ("--timeout 0s", "--timeout: must not be zero"),
        ("--timeout 5", "'--timeout <TIME>': `5` has no unit"),
        ("--rate abc", "--rate: `abc` is not a rate"),
        ("--rate 0", "--rate: 0 a second cannot be offered"),
        ("--rate -5", "`-5`"),
        ("--clients x", "'--clients <N>'"),
        ("--transport doh1", "unknown transport `doh1`"),
        ("--format xml", "'xml' for '--format <FORMAT>'"),
        ("--fromat text", "'--fromat'"),
        ("--driver dpdk", "'dpdk' for '--driver <DRIVER>'"),
        ("--goodput FOO", "--goodput: unknown RCODE `FOO`"),
        ("--edns-size 100", "--edns-size"),
        (
            "--local-address 127.0.0.0/4",
            "--local-address: `127.0.0.0/4` has bits set",
        ),
        ("--local-address nowhere", "--local-address: `nowhere`"),
        ("--sim-loss 5 --driver sim", "--sim-loss 5: not a share"),
        ("--end-after 5", "--end-after 5: not of the form N:HOW"),
        ("somewhere", "there is no scenario file `somewhere`"),
    ] {
        let (found, hint) = throng(&format!("run {flags}")).refused();
        assert!(found.contains(error), "{flags}: no `{error}` in `{found}`");
        assert!(!hint.is_empty(), "{flags}: {found}");
    }
    for (flags, error) in [
        (
            "--edns-option zz",
            "--edns-option zz: `zz` is not of the form CODE:HEX",
        ),
        (
            "--tsig foo",
            "--tsig: expected a TSIG key as [ALG:]NAME:SECRET",
        ),
        ("--loss 2", "--loss: `2` is not a share"),
        ("--rcodes FOO=1", "--rcodes: `FOO` is not an RCODE"),
    ] {
        let (found, _) = throng(&format!("run {flags}")).refused();
        assert!(found.contains(error), "{flags}: no `{error}` in `{found}`");
    }
}

#[test]
fn commands_without_what_they_need_are_refused() {
    for (flags, error, hint) in [
        (
            "nonsense",
            "unrecognized subcommand 'nonsense'",
            "see `throng --help`",
        ),
        ("completions tcsh", "invalid value 'tcsh'", "zsh"),
        (
            "merge",
            "required arguments were not provided: <RECORD>...",
            "see `throng merge --help`",
        ),
        (
            "names records --count 0",
            "--count: 0 records",
            "give a number from 1",
        ),
        (
            "names records --zone a..b",
            "--zone: `a..b` cannot be the zone",
            "such as",
        ),
        (
            "names services --existing 0 --missing 0 --external 0",
            "no name of any kind",
            "ask for",
        ),
        (
            "names shuffle /nonexistent",
            "cannot read /nonexistent",
            "check that the file exists",
        ),
    ] {
        check(flags, error, hint);
    }
}

#[test]
fn ca_certificates_that_cannot_be_read_are_refused() {
    let folder = Folder::new("bad-ca");
    let (names, missing) = (names_in(&folder), folder.path("missing.pem"));
    let run = format!("run --transport dot --names {names} --queries 10 --server 127.0.0.1");
    check(
        &format!("{run} --tls-ca {missing}"),
        "cannot read --tls-ca",
        "PEM",
    );
    check(
        &format!("{run} --tls-ca {names}"),
        "no certificate",
        "check the --tls-ca file",
    );
}
