//! Records are written to files, and through links only where that is asked for.

use std::fs;

use testing::folder::Folder;

use crate::call::throng;

#[test]
fn a_record_is_not_written_to_a_named_pipe() {
    let folder = Folder::new("record-pipe");
    let path = folder.path("pipe");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mkfifoat(rustix::fs::CWD, &path, mode).unwrap();
    throng(&format!("run --queries 1 --record {path}"))
        .refused_with("it is a named pipe", "a file");
}

#[test]
fn a_record_is_not_written_through_a_link() {
    let folder = Folder::new("record-link");
    let file = folder.write("file.json", "kept");
    for (link, to) in [
        ("to-file", file.as_str()),
        ("to-nothing", "/nowhere/at/all"),
    ] {
        let link = folder.path(link);
        std::os::unix::fs::symlink(to, &link).unwrap();
        throng(&format!("run --queries 1 --record {link}"))
            .refused_with("it is a symbolic link", "add --force");
    }
    assert_eq!(fs::read_to_string(file).unwrap(), "kept");
}

/// A new link in a folder to a file that holds `old`; returns both.
fn link_to_old(folder: &Folder, name: &str) -> (String, String) {
    let (file, link) = (
        folder.write(&format!("{name}-file"), "old"),
        folder.path(name),
    );
    std::os::unix::fs::symlink(&file, &link).unwrap();
    (link, file)
}

#[test]
fn with_force_every_command_writes_through_a_link() {
    let folder = Folder::new("record-force");
    let own = folder.path("own.json");
    let run = "--driver sim --queries 10 --quiet";
    throng(&format!("run {run} --record {own}")).succeeded();
    let ramp = "ramp --driver sim --to 100 --over 1s --sustain 0s --quiet";
    for (number, command) in [
        format!("run {run} --record"),
        format!("run {run} --require loss<50% --junit"),
        format!("merge {own} --record"),
        format!("report {own} --format text --output"),
        format!("{ramp} --plot"),
        format!("{ramp} --record"),
    ]
    .iter()
    .enumerate()
    {
        let (link, file) = link_to_old(&folder, &format!("{number}.json"));
        throng(&format!("{command} {link}")).refused_with("it is a symbolic link", "add --force");
        assert_eq!(fs::read_to_string(&file).unwrap(), "old", "{command}");
        throng(&format!("{command} {link} --force")).succeeded();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_ne!(fs::read_to_string(&file).unwrap(), "old", "{command}");
    }
    // What it leads to need not be there yet.
    let (link, file) = (folder.path("new-link"), folder.path("new"));
    std::os::unix::fs::symlink(&file, &link).unwrap();
    throng(&format!("run {run} --record {link} --force")).succeeded();
    assert!(fs::read_to_string(&file).unwrap().starts_with('{'));
}
