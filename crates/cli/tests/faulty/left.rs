//! What a run must not leave behind: processes, namespaces, files, claims on files, ports.

use std::collections::BTreeMap;
use std::fs;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The variable that marks a run and all that it starts.
pub(crate) const MARK: &str = "THRONG_FAULT";

/// The processes of which a file of proc(5) says so; those without it have ended.
fn processes(file: &str, says: impl Fn(&[u8]) -> bool) -> Vec<String> {
    let all = fs::read_dir("/proc").unwrap().flatten();
    let numbers = all.filter_map(|it| it.file_name().into_string().ok());
    let numbers = numbers.filter(|it| it.bytes().all(|it| it.is_ascii_digit()));
    let is_one = |pid: &String| {
        let path = format!("/proc/{pid}/{file}");
        let link = |_| fs::read_link(&path).map(|it| it.into_os_string().into_encoded_bytes());
        fs::read(&path).or_else(link).is_ok_and(|it| says(&it))
    };
    numbers.filter(is_one).collect()
}

/// Processes that bear the mark.
pub(crate) fn marked(mark: &str) -> Vec<String> {
    let variable = format!("{MARK}={mark}");
    processes("environ", |all| {
        all.split(|it| *it == 0)
            .any(|each| each == variable.as_bytes())
    })
}

/// A network namespace by its number, as in proc(5).
pub(crate) fn namespace_of(pid: u32) -> Vec<u8> {
    let link = fs::read_link(format!("/proc/{pid}/ns/net")).unwrap();
    link.into_os_string().into_encoded_bytes()
}

/// Processes in a network namespace.
pub(crate) fn in_namespace(namespace: &[u8]) -> Vec<String> {
    processes("ns/net", |link| link == namespace)
}

/// True if somebody claims a file in this folder, as runs do for their records.
pub(crate) fn is_claimed(folder: &Path) -> bool {
    let folder = folder.metadata().unwrap();
    let claim = format!("@throng-writes-{:x}-{:x}-", folder.dev(), folder.ino());
    // Names are any octets.
    let names = fs::read("/proc/net/unix").unwrap();
    String::from_utf8_lossy(&names).contains(&claim)
}

/// True if somebody else can listen there.
pub(crate) fn is_free(address: SocketAddr, is_stream: bool) -> bool {
    match is_stream {
        true => TcpListener::bind(address).is_ok(),
        false => UdpSocket::bind(address).is_ok(),
    }
}

/// Names in a folder, each with its content if it is a file.
pub(crate) fn files_in(folder: &Path) -> BTreeMap<String, Option<Vec<u8>>> {
    let Ok(entries) = fs::read_dir(folder) else {
        return BTreeMap::new();
    };
    let entry = |it: fs::DirEntry| {
        let is_file = it.metadata().is_ok_and(|it| it.is_file());
        let content = is_file.then(|| fs::read(it.path()).unwrap_or_default());
        (it.file_name().to_string_lossy().into_owned(), content)
    };
    entries.flatten().map(entry).collect()
}
