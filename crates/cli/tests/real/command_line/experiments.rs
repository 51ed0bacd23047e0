//! Experiments of a test, in its folder.

use std::fs;

use testing::folder::Folder;
use testing::program::{Finished, execute};

use crate::process::THRONG;

/// A server that sends names outside its zone to a resolver, which takes 30 ms to answer them. Its
/// names are in the file `names`.
pub(crate) const EXTERNAL: &str = r#"
[lab]
starts = 1

[run]
names = "names"
rate = 200
queries = 60
warmup = "0s"

[[server]]
product = "coredns"
data = "zone:10,ttl=1h"
[server.factors]
external = "30ms"
behind = "none"
"#;

/// Folders of servers are in it. Paths of sockets there are longer than any can be.
pub(crate) const TEMPORARY: &str = "temporary-folder-whose-path-is-longer-than-the-107-octets-that-\
                                    an-address-of-a-socket-in-the-file-system-can-have";

/// Runs a command about the experiment `text`: `FILE` is its file, `OUT` the folder of its results.
pub(crate) fn experiment(folder: &Folder, text: &str, command: &str) -> Finished {
    let file = folder.write("cells.toml", text);
    let temporary = folder.path(TEMPORARY);
    fs::create_dir_all(&temporary).unwrap();
    let command = command
        .replace("FILE", &file)
        .replace("OUT", &folder.path("out"));
    execute(&format!(
        "env TMPDIR={temporary} {THRONG} experiment {command}"
    ))
}

/// Temporary files that an experiment has left.
pub(crate) fn left_in(folder: &Folder) -> usize {
    fs::read_dir(folder.path(TEMPORARY)).unwrap().count()
}
