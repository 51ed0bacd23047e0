//! What becomes of runs whose files cannot be read, or not be written.

use measure::Limit::Rate;
use proto::Transport::{Doq, Dot, Tcp, Udp};

use super::fault::{Do, Ends, Fault, Leaves, Target, When};

const NONE: Fault = Fault::NONE;
/// A command that needs no target.
const COMMAND: Fault = Fault {
    target: Target::BuiltIn { alone: false },
    ends: Ends::refused(""),
    ..NONE
};

/// A short record of a simulation.
macro_rules! after_record {
    ($line:literal) => {
        concat!(
            "$THRONG run --driver sim --quiet --duration 1s --rate 100 --record $IN/record.json \
             >$IN/text; ",
            $line
        )
    };
}

/// A name with as many octets as a name may have.
macro_rules! long_name {
    () => {
        "1234567890123456789012345678901234567890123456789012345678901234567890123456789\
         1234567890123456789012345678901234567890123456789012345678901234567890123456789\
         1234567890123456789012345678901234567890123456789012345678901234567890123456789\
         1234567890123.json"
    };
}

/// One that is refused.
const fn refused(name: &'static str, before: &'static str, says: &'static str) -> Fault {
    Fault {
        name,
        before,
        ends: Ends::refused(says),
        ..NONE
    }
}

const fn elsewhere(says: &'static str) -> Ends {
    Ends::measured(&[Rate], says)
        .code(1)
        .leaves(Leaves::RecordElsewhere)
}

const fn command(
    name: &'static str,
    before: &'static str,
    command: &'static str,
    says: &'static str,
) -> Fault {
    Fault {
        name,
        before,
        command,
        ends: Ends::refused(says),
        ..COMMAND
    }
}

/// With disks of 4 KiB below the record and the temporary folder.
const ALL_FULL: &str = r#"exec unshare --mount bash -c 'mount -t tmpfs -o size=4k none $OUT
    mount -t tmpfs -o size=4k none $TMPDIR; exec "$@"' bash "$@""#;

pub(crate) const FAULTS: &[Fault] = &[
    // Where the record goes.
    Fault {
        flags: "--record $OUT/none/record.json",
        ..refused(
            "record in a folder that is not there",
            "",
            "cannot write to",
        )
    },
    refused(
        "record where a folder is",
        "mkdir $OUT/record.json",
        "cannot write to",
    ),
    refused(
        "record to a named pipe",
        "mkfifo $OUT/record.json",
        "it is a named pipe",
    ),
    refused(
        "record to a link to itself",
        "ln -s record.json $OUT/record.json",
        "cannot write to",
    ),
    Fault {
        after: "test -L $OUT/record.json; grep -q old $OUT/real.json",
        ..refused(
            "record to a link",
            "ln -s real.json $OUT/record.json; echo old >$OUT/real.json",
            "it is a symbolic link",
        )
    },
    Fault {
        after: "test -L $OUT/record.json; test ! -e $IN/real.json",
        ..refused(
            "record to a link that leads to nothing yet",
            "ln -s $IN/real.json $OUT/record.json",
            "it is a symbolic link",
        )
    },
    Fault {
        name: "record in place of an older one",
        before: "echo old >$OUT/record.json",
        ..NONE
    },
    Fault {
        name: "killed before it replaces an older record",
        before: "echo old >$OUT/record.json",
        meanwhile: &[(When::Shown(4), Do::Shell("kill -s KILL $PID"))],
        ends: Ends::without_record(-9, ""),
        ..NONE
    },
    Fault {
        name: "record to a device that is full",
        flags: "--record /dev/full",
        ends: elsewhere("No space left on device"),
        ..NONE
    },
    Fault {
        name: "record on a disk that is full",
        over: &[Udp, Tcp, Doq],
        around: r#"exec unshare --mount bash -c \
            'mount -t tmpfs -o size=4k none $OUT; exec "$@"' bash "$@""#,
        ends: elsewhere("No space left on device"),
        ..NONE
    },
    Fault {
        name: "all disks are full",
        around: ALL_FULL,
        ends: Ends::without_record(1, "failed too"),
        ..NONE
    },
    Fault {
        name: "all disks are full, and the result is printed",
        around: ALL_FULL,
        ends: Ends::without_record(1, "Verdict\n"),
        ..NONE
    },
    Fault {
        name: "record beyond the limit on sizes of files",
        around: r#"ulimit -f 4; exec "$@""#,
        ends: Ends::without_record(1, "File too large"),
        ..NONE
    },
    Fault {
        name: "folder of the record goes in mid-run",
        flags: "--record $IN/inner/record.json",
        before: "mkdir $IN/inner",
        meanwhile: &[(When::Shown(4), Do::Shell("rm -r $IN/inner"))],
        ends: elsewhere("No such file or directory"),
        ..NONE
    },
    Fault {
        name: "folder of the record becomes a file",
        flags: "--record $IN/inner/record.json",
        before: "mkdir $IN/inner",
        meanwhile: &[(When::Shown(4), Do::Shell("rm -r $IN/inner; : >$IN/inner"))],
        ends: elsewhere("Not a directory"),
        ..NONE
    },
    Fault {
        name: "folder of the record may not be written",
        around: r#"exec unshare --mount bash -c \
            'mount -t tmpfs -o ro none $OUT; exec "$@"' bash "$@""#,
        ends: Ends::refused("Read-only file system"),
        ..NONE
    },
    Fault {
        name: "folder of the record may not be written from mid-run on",
        around: r#"exec unshare --mount bash -c \
            'mount -t tmpfs none $OUT; exec "$@"' bash "$@""#,
        meanwhile: &[(
            When::Shown(4),
            Do::Shell("nsenter --target $PID --mount mount -o remount,ro $OUT"),
        )],
        ends: elsewhere("Read-only file system"),
        ..NONE
    },
    Fault {
        name: "record with the longest name that there is",
        flags: concat!("--record $IN/", long_name!()),
        ends: Ends::without_record(0, "Verdict\n"),
        after: concat!("grep -q schema_version $IN/", long_name!()),
        ..NONE
    },
    Fault {
        name: "longest name, and a disk that is full",
        flags: concat!("--record $OUT/", long_name!()),
        around: r#"exec unshare --mount bash -c \
            'mount -t tmpfs -o size=4k none $OUT; exec "$@"' bash "$@""#,
        ends: elsewhere("No space left on device"),
        ..NONE
    },
    Fault {
        name: "record with a name that is no text",
        command: "run --server $SERVER --names $IN/names.txt --rate 500 --duration 1s --details",
        around: r#"exec "$@" --record $IN/$'\xff.json'"#,
        ends: Ends::without_record(0, "Verdict\n"),
        after: r#"grep -q schema_version $IN/$'\xff.json'"#,
        ..NONE
    },
    Fault {
        name: "two runs with one record",
        meanwhile: &[(
            When::Shown(3),
            Do::Shell(
                "code=0; $THRONG run --queries 1 --record $OUT/record.json 2>$IN/told || code=$?; \
                 test $code = 2; grep -q 'another run is about to write to it' $IN/told",
            ),
        )],
        ..NONE
    },
    // What is printed.
    Fault {
        name: "standard output is full",
        over: &[Udp, Tcp],
        around: r#"exec "$@" >/dev/full"#,
        ends: Ends::measured(&[Rate], "cannot write to standard output").code(1),
        ..NONE
    },
    Fault {
        name: "standard error is full",
        around: r#"exec "$@" 2>/dev/full"#,
        ..NONE
    },
    Fault {
        name: "both are full",
        around: r#"exec "$@" >/dev/full 2>&1"#,
        ends: Ends::measured(&[Rate], "").code(1),
        ..NONE
    },
    Fault {
        name: "standard output is closed",
        around: r#"exec "$@" >&-"#,
        ..NONE
    },
    Fault {
        name: "secrets of TLS to a device that is full",
        over: &[Dot, Doq],
        flags: "--tls-insecure --tls-keylog /dev/full",
        ends: Ends::measured(&[Rate], "the key log cannot decrypt"),
        ..NONE
    },
    Fault {
        name: "secrets of TLS to a folder that is not there",
        over: &[Dot, Doq],
        flags: "--tls-insecure --tls-keylog $OUT/none/keys",
        ends: Ends::refused("cannot write --tls-keylog"),
        ..NONE
    },
    Fault {
        name: "JUnit to a folder that is not there",
        flags: "--junit $OUT/none/x.xml --require qps>1",
        ends: Ends::refused("cannot write"),
        ..NONE
    },
    // What is asked.
    refused("names are not there", "rm $IN/names.txt", "cannot read"),
    refused(
        "names are a folder",
        "rm $IN/names.txt; mkdir $IN/names.txt",
        "directory",
    ),
    refused("names are empty", ": >$IN/names.txt", "names.txt"),
    refused(
        "names are bytes",
        r"printf '\000\377\376\001 A\n\200' >$IN/names.txt",
        "names.txt",
    ),
    refused(
        "names have a line of 20 MB",
        "head -c 20000000 /dev/zero | tr '\\0' a >$IN/names.txt",
        "names.txt: line 1",
    ),
    Fault {
        name: "names with CR and LF",
        before: r"printf 'a.example A\r\n\r\nb.example AAAA\r\n' >$IN/names.txt",
        ..NONE
    },
    Fault {
        name: "names with a byte-order mark",
        before: r"printf '\357\273\277a.example A\n' >$IN/names.txt",
        ..NONE
    },
    Fault {
        name: "names vanish in mid-run",
        over: &[Udp, Dot],
        meanwhile: &[(When::Shown(3), Do::Shell("rm $IN/names.txt"))],
        ..NONE
    },
    Fault {
        name: "names are overwritten in mid-run",
        flags: "--agents 2",
        meanwhile: &[(When::Shown(3), Do::Shell("echo '!' >$IN/names.txt"))],
        ..NONE
    },
    Fault {
        flags: "--names -",
        ..refused(
            "names from standard input, which is empty",
            "",
            "standard input",
        )
    },
    Fault {
        flags: "--tsig-file $IN/key",
        ..refused(
            "a TSIG key that is none",
            "echo key >$IN/key",
            "in the key file",
        )
    },
    Fault {
        over: &[Dot, Doq],
        flags: "--tls-ca $IN/ca.pem",
        ..refused(
            "authorities that are none",
            "echo nobody >$IN/ca.pem",
            "--tls-ca",
        )
    },
    Fault {
        flags: "--script $IN/it.lua",
        ..refused(
            "a script that is none",
            "echo 'function (' >$IN/it.lua",
            "it.lua",
        )
    },
    command(
        "scenario that is not closed",
        "echo '[[clients' >$IN/s.toml",
        "run $IN/s.toml --record $OUT/record.json",
        "s.toml, line 1",
    ),
    command(
        "scenario of bytes",
        r"printf '\000\377\n' >$IN/s.toml",
        "run $IN/s.toml --record $OUT/record.json",
        "s.toml",
    ),
    command(
        "scenario with a key that there is not",
        "echo 'duratoin = \"1s\"' >$IN/s.toml",
        "run $IN/s.toml --record $OUT/record.json",
        "duratoin",
    ),
    command(
        "scenario that is not there",
        "",
        "run $IN/s.toml --record $OUT/record.json",
        "there is no scenario file",
    ),
    command(
        "experiment that is none",
        "echo '[matrix' >$IN/e.toml",
        "experiment run $IN/e.toml --output $OUT/e",
        "e.toml",
    ),
    command(
        "zone that is cut off",
        "printf '@ 60 IN SOA ns h 1 2 3 4 5\\na 60 TXT ( w' >$IN/zone",
        "responder --listen udp:127.0.0.1:0 --zone $IN/zone --origin example.",
        "zone",
    ),
    command(
        "capture that is none",
        "echo nothing >$IN/it.pcap",
        "fit $IN/it.pcap --output $OUT/it.json",
        "it.pcap",
    ),
    // Records that are read.
    command(
        "record that was cut off",
        after_record!("truncate --size 1000 $IN/record.json"),
        "report $IN/record.json",
        "record.json",
    ),
    command(
        "record that is empty",
        ": >$IN/record.json",
        "report $IN/record.json",
        "not a run record",
    ),
    command(
        "record with another count",
        after_record!("sed -i '0,/\"responses\": 100/s//\"responses\": 101/' $IN/record.json"),
        "report $IN/record.json",
        "contradicts itself",
    ),
    Fault {
        after: "for at in 7 99 450 777 1234 2222 3456 4567 5001 6789 8080 9999; do \
                cp $IN/record.json $IN/flipped.json; \
                printf '\\x%02x' $((1 << at % 7)) | dd of=$IN/flipped.json bs=1 seek=$at \
                conv=notrunc status=none; code=0; \
                $THRONG report $IN/flipped.json >$IN/text 2>&1 || code=$?; \
                test $code = 0 -o $code = 2; done",
        ..command(
            "record with a byte that is another",
            after_record!("printf '\\377' | dd of=$IN/record.json bs=1 seek=500 conv=notrunc"),
            "report $IN/record.json",
            "not UTF-8",
        )
    },
    Fault {
        ends: Ends::without_record(0, ""),
        ..command(
            "index of records that is damaged",
            after_record!(
                "$THRONG history list --records $IN >$IN/text; \
                 for it in $IN/.throng* $IN/*.sqlite; do \
                 if test -f $it; then printf '\\377\\377' | dd of=$it bs=1 seek=100 conv=notrunc \
                 status=none; fi; done"
            ),
            "history list --records $IN",
            "",
        )
    },
];
