//! `CITATION.cff`: it cites the version that is built.

use std::fs;
use std::path::Path;

#[test]
fn citation_has_the_version_and_the_licences_of_the_workspace() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let citation = fs::read_to_string(root.join("CITATION.cff")).unwrap();
    let version = format!("version: {}", env!("CARGO_PKG_VERSION"));
    for line in ["cff-version: 1.2.0", "type: software", &version] {
        assert!(citation.lines().any(|it| it == line), "no line `{line}`");
    }
    let manifest = fs::read_to_string(root.join("Cargo.toml")).unwrap();
    let license = manifest
        .lines()
        .find_map(|it| it.strip_prefix("license = "));
    for license in license.unwrap().trim_matches('"').split(" OR ") {
        let line = format!("  - {license}");
        assert!(citation.lines().any(|it| it == line), "no line `{line}`");
    }
    // Fields that version 1.2.0 of the form requires.
    for field in ["message:", "title:", "authors:", "abstract:"] {
        assert!(citation.lines().any(|it| it.starts_with(field)), "{field}");
    }
}
