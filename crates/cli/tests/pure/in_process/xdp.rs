//! `--driver xdp`: what is refused before a socket is opened.

use testing::folder::Folder;

use crate::call::throng;

#[test]
fn flags_that_xdp_cannot_serve_are_refused_with_a_cure() {
    let folder = Folder::new("xdp-refused");
    let names = folder.write("names.txt", "a.example A\n");
    let run = format!("run --names {names} --server 127.0.0.1:53 --no-preflight");
    for (flags, error_part, hint_part) in [
        (
            format!("{run} --driver xdp"),
            "needs an interface",
            "--interface",
        ),
        (
            format!("{run} --interface eth0"),
            "no effect",
            "--driver xdp",
        ),
        (
            format!("{run} --driver xdp --interface eth0 --transport tcp"),
            "tcp is a stream",
            "doq",
        ),
        (
            "run --driver xdp --interface eth0".to_owned(),
            "built-in responder",
            "--server",
        ),
        (
            format!("{run} --driver xdp --interface eth0 --agents 2"),
            "one process",
            "leave out",
        ),
        (
            "responder --listen udp:127.0.0.1:0 --driver xdp".to_owned(),
            "needs an interface",
            "--interface",
        ),
        (
            "responder --listen udp:127.0.0.1:0 --interface lo".to_owned(),
            "no effect",
            "--driver xdp",
        ),
        (
            "responder --listen udp:0.0.0.0:0 --allow-public --driver xdp --interface lo"
                .to_owned(),
            "any address",
            "give an address",
        ),
    ] {
        throng(&flags).refused_with(error_part, hint_part);
    }
}
