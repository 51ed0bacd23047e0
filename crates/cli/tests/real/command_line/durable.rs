//! Records survive a power cut: what is written is on the disk before it has its name.

use std::fs;

use testing::folder::Folder;
use testing::program::execute;

use crate::process::THRONG;

/// System calls of a command on files that it syncs or renames, in order.
fn calls(folder: &Folder, command: &str) -> Vec<String> {
    let trace = folder.path("trace");
    let strace = format!("strace -f -y -o {trace} -e trace=fsync,fdatasync,/^rename");
    execute(&format!("{strace} {THRONG} {command}")).succeeded();
    let text = fs::read_to_string(trace).unwrap();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn record_is_synced_before_it_replaces_another_of_its_name() {
    let folder = Folder::new("durable");
    let record = folder.write("record.json", "");
    let run = "run --driver sim --queries 10 --quiet --force --record";
    let calls = calls(&folder, &format!("{run} {record}"));
    let renamed = calls.iter().position(|call| {
        let (from, to) = call.split_once("\", \"").unwrap_or_default();
        from.contains(".partial") && to.starts_with(&record) && call.ends_with(" = 0")
    });
    let renamed = renamed.unwrap_or_else(|| panic!("nothing was renamed: {calls:?}"));
    let synced = calls[..renamed]
        .iter()
        .any(|call| call.contains("sync(") && call.contains(".partial>") && call.ends_with(" = 0"));
    assert!(synced, "it was not synced: {calls:?}");
}
