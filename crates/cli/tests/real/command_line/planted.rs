//! What another user has placed where a command writes: it is neither followed nor waited for.

use std::fs;
use std::os::unix::fs::{PermissionsExt, lchown, symlink};
use std::path::Path;

use rustix::fs::{CWD, Mode, mkfifoat};
use testing::folder::Folder;

use crate::process::{Responder, throng};

const OTHER: u32 = 65_533;

/// A folder like /tmp with a link and a pipe of another user, and the file that the link leads to;
/// none if this user cannot make such things.
fn planted(test: &str, names: &[&str]) -> Option<(Folder, String)> {
    if !rustix::process::geteuid().is_root() {
        eprintln!("not tested: only root gives files to another user");
        return None;
    }
    let folder = Folder::new(test);
    let victim = folder.write("victim/kept", "kept");
    for name in names {
        symlink(&victim, folder.path(name)).unwrap();
        give(&folder.path(name));
    }
    mkfifoat(CWD, folder.path("pipe"), Mode::RUSR | Mode::WUSR).unwrap();
    give(&folder.path("pipe"));
    fs::set_permissions(folder.folder(), fs::Permissions::from_mode(0o1777)).unwrap();
    Some((folder, victim))
}

fn give(path: &str) {
    lchown(path, Some(OTHER), Some(OTHER)).unwrap();
}

#[test]
fn outputs_through_planted_links_and_pipes_are_refused() {
    let Some((folder, victim)) = planted("planted-outputs", &["link"]) else {
        return;
    };
    let run = "run --driver sim --queries 10 --quiet";
    let (link, pipe) = (folder.path("link"), folder.path("pipe"));
    let linked = "is a symbolic link of user 65533";
    throng(&format!("{run} --record {link} --force")).refused_with(linked, "another user");
    throng(&format!("{run} --require loss<50% --junit {link} --force"))
        .refused_with(linked, "another user");
    throng(&format!("{run} --record {pipe}")).refused_with("named pipe", "a file");
    let secrets = "run --driver sim -t dot --tls-insecure --queries 10 --quiet --tls-keylog";
    throng(&format!("{secrets} {link}")).refused_with(linked, "another user");
    throng(&format!("{secrets} {pipe}")).refused_with("pipe without a reader", "reader");
    let responder = "responder --listen udp:127.0.0.1:0 --duration 1ms --counters";
    throng(&format!("{responder} {link}")).refused_with(linked, "another user");
    throng(&format!("{responder} {pipe}")).refused_with("pipe without a reader", "reader");
    assert_eq!(fs::read_to_string(victim).unwrap(), "kept");
}

#[test]
fn counters_are_not_written_by_a_name_that_can_be_foretold() {
    let Some((folder, victim)) = planted("planted-counters", &["counters.new"]) else {
        return;
    };
    let path = folder.path("counters");
    let flags = format!("--counters {path}");
    Responder::start("udp:127.0.0.1:0", &flags).counters();
    assert!(fs::read_to_string(path).unwrap().starts_with('{'));
    assert_eq!(fs::read_to_string(victim).unwrap(), "kept");
}

#[test]
fn a_record_is_not_written_by_a_name_that_can_be_foretold() {
    let Some((folder, victim)) = planted("planted-partial", &[]) else {
        return;
    };
    // The command's own ID is that of the shell that it replaces.
    let record = folder.path("record.json");
    let partial = format!("{}/.throng-$$.partial", folder.folder().display());
    let script = format!(
        "ln -s {victim} {partial}; exec {} run --driver sim --queries 10 --quiet --record {record}",
        crate::process::THRONG
    );
    let ran = std::process::Command::new("sh")
        .args(["-c", &script])
        .output();
    assert!(ran.unwrap().status.success());
    assert!(Path::new(&record).is_file());
    assert_eq!(fs::read_to_string(victim).unwrap(), "kept");
}

#[test]
fn an_experiment_writes_to_no_folder_of_another_user_and_no_planted_lock() {
    let Some((folder, victim)) = planted("planted-experiment", &[]) else {
        return;
    };
    let text = "[run]\ndriver = \"sim\"\nqueries = 10\n[matrix]\nclients = [1]\n";
    let file = folder.write("experiment.toml", text);
    let foreign = folder.path("foreign");
    fs::create_dir(&foreign).unwrap();
    give(&foreign);
    let run = |to: &str| throng(&format!("experiment run {file} --output {to}"));
    run(&foreign).refused_with("belongs to user 65533", "chown");
    assert_eq!(fs::read_dir(&foreign).unwrap().count(), 0);
    let record = format!("run --driver sim --queries 10 --record {foreign}/record.json");
    throng(&record).refused_with("belongs to user 65533", "chown");
    let own = folder.path("own");
    fs::create_dir(&own).unwrap();
    for name in ["lock", "hooks.log", "index.sqlite"] {
        symlink(&victim, format!("{own}/{name}")).unwrap();
        give(&format!("{own}/{name}"));
    }
    run(&own).refused_with("is a symbolic link of user 65533", "another user");
    fs::remove_file(format!("{own}/lock")).unwrap();
    run(&own);
    throng(&format!("history list {own}"));
    assert_eq!(fs::read_to_string(victim).unwrap(), "kept");
}
