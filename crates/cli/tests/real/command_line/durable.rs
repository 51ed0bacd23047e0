//! Records survive a power cut: what is written is on the disk before it has its name.

use std::fs;

use testing::folder::Folder;
use testing::program::execute;

use crate::process::THRONG;

/// The system calls on files that a command syncs or renames, in order, of the thread that renames
/// one. strace writes a file for each thread: in a common one, calls are in pieces.
fn calls_of_renaming_thread(folder: &Folder, command: &str) -> Vec<String> {
    let traces = folder.path("traces");
    fs::create_dir(&traces).unwrap();
    let strace = format!("strace -ff -y -o {traces}/trace -e trace=fsync,fdatasync,/^rename");
    execute(&format!("{strace} {THRONG} {command}")).succeeded();
    let each = fs::read_dir(traces).unwrap().map(|it| it.unwrap().path());
    let texts = each.map(|path| fs::read_to_string(path).unwrap());
    let renaming: Vec<String> = texts.filter(|text| text.contains("rename")).collect();
    assert_eq!(renaming.len(), 1, "{renaming:?}");
    renaming[0].lines().map(str::to_owned).collect()
}

#[test]
fn record_is_synced_before_it_replaces_another_of_its_name() {
    let folder = Folder::new("durable");
    let record = folder.write("record.json", "");
    let run = "run --driver sim --queries 10 --quiet --force --record";
    let calls = calls_of_renaming_thread(&folder, &format!("{run} {record}"));
    let renamed = calls.iter().position(|call| {
        call.contains(".partial\"") && call.contains("record.json\")") && call.ends_with(" = 0")
    });
    let renamed = renamed.unwrap_or_else(|| panic!("nothing was renamed: {calls:?}"));
    let synced = calls[..renamed]
        .iter()
        .any(|call| call.contains("sync(") && call.contains(".partial>") && call.ends_with(" = 0"));
    assert!(synced, "it was not synced: {calls:?}");
    let folder = format!("<{}>)", folder.folder().display());
    let named = calls[renamed..]
        .iter()
        .any(|call| call.starts_with("fsync(") && call.contains(&folder));
    assert!(named, "its folder was not synced: {calls:?}");
}
