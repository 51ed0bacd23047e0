//! `throng eval`: what it refuses before it sends anything.

use testing::folder::Folder;

use crate::call::throng;

#[test]
fn an_evaluation_that_makes_no_sense_is_refused() {
    let folder = Folder::new("eval-bad");
    let bad = folder.write("servers.txt", "127.0.0.1\n::1 53\n");
    for (flags, what, cure) in [
        (String::new(), "--server is missing", "--servers FILE"),
        (
            format!("--servers {bad}"),
            "line 2: more than a server",
            "one a line",
        ),
        (
            "--servers /nowhere/servers".to_owned(),
            "cannot read",
            "text file",
        ),
        (
            "--server 192.88.99.1 --interval 10ms".to_owned(),
            "public address",
            "--allow-public",
        ),
        (
            "--server 127.0.0.1:x".to_owned(),
            "`x` is not a port",
            "HOST:PORT",
        ),
        (
            "--server 127.0.0.1 --rate 5".to_owned(),
            "--rate cannot be used",
            "eval",
        ),
        (
            "--server 127.0.0.1 --count 0".to_owned(),
            "--count",
            "1 or more",
        ),
    ] {
        throng(&format!("eval a.example {flags}")).refused_with(what, cure);
    }
}
