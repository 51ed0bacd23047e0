//! Files that `servers/prepare` makes: in the folder that it is set to be, or in the user's cache.

use std::env;
use std::path::PathBuf;

use crate::host;

/// The path of such a file, as `mdbook/bin/mdbook`.
///
/// # Panics
/// It was not made.
pub fn path(file: &str) -> PathBuf {
    let path = folder().join(file);
    let shown = path.display();
    assert!(
        path.is_file(),
        "`{shown}` is not there: run servers/prepare"
    );
    path
}

/// As `throng` itself finds it.
fn folder() -> PathBuf {
    let set = |name| env::var_os(name).filter(|it| !it.is_empty());
    if let Some(folder) = set("THRONG_PREPARED_SERVERS") {
        return folder.into();
    }
    let cache = set("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| host::is_root().then(|| "/var/cache".into()));
    let in_home = || PathBuf::from(set("HOME").unwrap()).join(".cache");
    cache.unwrap_or_else(in_home).join("throng/servers")
}
