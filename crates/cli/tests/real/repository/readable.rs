//! Accessibility of reports on results other than run records; tests of crate web check those.

use std::fs;

use testing::browser;
use testing::folder::Folder;
use testing::program::execute;

use crate::validated;

const THRONG: &str = env!("CARGO_BIN_EXE_throng");

#[test]
fn reports_on_searches_ramps_and_comparisons_are_accessible() {
    let folder = Folder::new("readable");
    let results = validated::printed(&folder);
    let results = results.iter().filter(|it| it.schema != "run-record");
    let mut kinds = 0;
    for result in results {
        let page = format!("{}.html", result.path);
        let line = format!("{THRONG} report {} --output {page}", result.path);
        execute(&line).succeeded();
        let found = browser::violations(&folder, &fs::read_to_string(&page).unwrap());
        assert!(found.is_empty(), "{}: {found:#?}", result.schema);
        kinds += 1;
    }
    assert_eq!(kinds, 4);
}
