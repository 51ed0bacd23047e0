//! What is typed wrongly, or by habit of another program: one line says what is wrong, one what to
//! type, the exit code is 2, and no query is sent. The tables have a command line, a part of the
//! error and a part of the hint in each line; `NAMES` is a names file that is as it should be.

mod accepted;
mod commands;
mod flags;
mod numbers;
mod scenarios;
mod servers;

use testing::folder::Folder;

use crate::call::throng;

const TABLES: [&str; 4] = [
    numbers::TABLE,
    servers::TABLE,
    flags::TABLE,
    commands::TABLE,
];

/// Fewer rows are an accident.
const ROWS_MIN: usize = 300;

#[test]
fn each_mistake_is_named_with_its_cure_and_nothing_is_sent() {
    let folder = Folder::new("mistakes");
    let names = folder.write("names.txt", "a.example A\n");
    let mut wrong = Vec::new();
    let mut rows = 0;
    for row in TABLES.iter().flat_map(|table| table.lines()) {
        if row.is_empty() {
            continue;
        }
        let columns: Vec<&str> = row.split(" | ").map(str::trim).collect();
        let [line, cause, cure] = columns[..] else {
            panic!("not a row: {row}");
        };
        let line = line.replace("NAMES", &names);
        let (error, hint) = throng(&line).refused();
        if !error.contains(cause) || !hint.contains(cure) {
            wrong.push(format!("{line}\n  {error}\n  {hint}"));
        }
        rows += 1;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(rows >= ROWS_MIN, "{rows} rows");
}
