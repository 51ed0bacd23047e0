//! The packages of Throng: the same each time; installed, run and removed in a bare root.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::thread;

use serde_json::Value;
use testing::folder::Folder;
use testing::program::execute;

const THRONG: &str = env!("CARGO_BIN_EXE_throng");
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/package");
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Of `dpkg-deb` (1.21.10 and newer).
const QUICKLY: &str = "DPKG_DEB_COMPRESSOR_LEVEL=1";

/// The binary under test as `packaging/build` builds one: without paths of this machine.
fn binary_without_paths(folder: &Folder) -> String {
    let binary = folder.path("throng");
    execute(&format!("strip --strip-all -o {binary} {THRONG}")).succeeded();
    let home = || format!("{}/.cargo", env::var("HOME").unwrap());
    let cargo_home = env::var("CARGO_HOME").unwrap_or_else(|_| home());
    let sources = format!("{cargo_home}/registry/src");
    // Of the same length: nothing in the binary moves.
    let neutral = format!("{:_<1$}", "/crates", sources.len());
    let replace = format!("env LC_ALL=C sed --in-place s|{sources}|{neutral}|g {binary}");
    execute(&replace).succeeded();
    binary
}

/// Writes the packages of a binary to a folder of this name, after `before`; returns its path. They
/// are compressed little: that takes most of the time.
fn package(folder: &Folder, name: &str, binary: &str, before: &str) -> String {
    let path = folder.path(name);
    let script = folder.write(
        &format!("{name}.sh"),
        format!("{before}\n{QUICKLY} exec \"$@\""),
    );
    execute(&format!("bash {script} {SCRIPT} {path} {binary}")).succeeded();
    path
}

/// The names in a folder, in order.
fn names(folder: &str) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// The paths of all that is in a folder, but for what dpkg keeps.
fn tree(folder: &str) -> BTreeSet<String> {
    let found = execute(&format!("find {folder} -not -path {folder}/var/lib/dpkg/*"));
    found.succeeded().lines().map(str::to_owned).collect()
}

fn check_bill_of_materials(path: &str) {
    let bill: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(bill["bomFormat"], "CycloneDX");
    assert_eq!(bill["metadata"]["component"]["version"], VERSION);
    let crates = bill["components"].as_array().unwrap();
    assert!(crates.len() > 100, "{}", crates.len());
    assert!(crates.iter().any(|each| each["name"] == "rustls"));
    for each in crates {
        let licence = each["licenses"][0]["expression"].as_str().unwrap();
        let hash = each["hashes"][0]["content"].as_str().unwrap();
        let is_whole = !licence.is_empty() && !licence.contains('/') && hash.len() == 64;
        assert!(is_whole, "{each}");
    }
}

fn check_archive(folder: &Folder, archive: &str) {
    let name = Path::new(archive).file_name().unwrap().to_str().unwrap();
    let name = name.strip_suffix(".tar.gz").unwrap();
    let into = folder.path("unpacked");
    fs::create_dir(&into).unwrap();
    execute(&format!(
        "tar --extract --file {archive} --directory {into}"
    ))
    .succeeded();
    let unpacked = |path: &str| format!("{into}/{name}/{path}");
    for path in [
        "README.md",
        "LICENSE-APACHE",
        "LICENSE-MIT",
        "third-party.txt",
        "man/man1/throng.1",
        "man/man1/throng-run.1",
        "completions/throng.bash",
        "completions/_throng",
        "completions/throng.fish",
        "docs/README.md",
        "scenarios/sinodun.toml",
        "experiments/ceilings/experiment.toml",
        "deploy/grafana/run.json",
        "deploy/prometheus/alerts.yml",
    ] {
        assert!(Path::new(&unpacked(path)).is_file(), "{path}");
    }
    let printed = execute(&format!("{} --version", unpacked("kubectl-throng")));
    assert_eq!(printed.succeeded(), format!("throng {VERSION}\n"));
    let scenario = unpacked("scenarios/sinodun.toml");
    let throng = unpacked("throng");
    execute(&format!(
        "{throng} run {scenario} --driver sim --duration 1s"
    ))
    .succeeded();
    let notes = execute(&format!("readelf --notes {throng}")).succeeded();
    assert!(notes.contains("Build ID: "), "{notes}");
}

/// A root with the libraries of the binary, whose dpkg knows their packages, and nothing else.
fn bare_root(folder: &Folder) -> String {
    let root = folder.path("root");
    let libraries = execute(&format!("ldd {THRONG}")).succeeded();
    for library in libraries
        .split_whitespace()
        .filter(|it| it.starts_with('/'))
    {
        let to = format!("{root}{library}");
        fs::create_dir_all(Path::new(&to).parent().unwrap()).unwrap();
        fs::copy(library, &to).unwrap();
    }
    for path in ["var/lib/dpkg/info", "var/lib/dpkg/updates", "tmp"] {
        fs::create_dir_all(format!("{root}/{path}")).unwrap();
    }
    fs::set_permissions(format!("{root}/tmp"), PermissionsExt::from_mode(0o1777)).unwrap();
    let status = execute("dpkg-query --status libc6 libgcc-s1").succeeded();
    fs::write(format!("{root}/var/lib/dpkg/status"), status).unwrap();
    root
}

fn check_installation(folder: &Folder, deb: &str) {
    let root = bare_root(folder);
    let before = tree(&root);
    let dpkg = format!("dpkg --root={root} --log={}", folder.path("dpkg.log"));
    execute(&format!("{dpkg} --install {deb}")).succeeded();
    let installed = tree(&root);
    for path in [
        "bin/kubectl-throng",
        "share/man/man1/throng-names-records.1.gz",
        "share/bash-completion/completions/throng",
        "share/zsh/vendor-completions/_throng",
        "share/fish/vendor_completions.d/throng.fish",
    ] {
        assert!(installed.contains(&format!("{root}/usr/{path}")), "{path}");
    }
    assert_eq!(execute(&format!("{dpkg} --verify throng")).succeeded(), "");
    let user = format!("chroot --userspec=65534:65534 {root} /usr/bin");
    let version = execute(&format!("{user}/throng --version")).succeeded();
    assert_eq!(version, format!("throng {VERSION}\n"));
    // Without /proc, /dev and rights: what cannot be read is left out of the record.
    for transport in ["udp", "doh3"] {
        let line = format!("{user}/throng run --duration 1s --transport {transport}");
        let printed = execute(&line).succeeded();
        assert!(printed.contains("answered"), "{printed}");
    }
    // The same version once more is an upgrade.
    execute(&format!("{dpkg} --install {deb}")).succeeded();
    assert_eq!(tree(&root), installed);
    execute(&format!("{dpkg} --purge throng")).succeeded();
    assert_eq!(tree(&root), before);
}

#[test]
fn packages_are_the_same_each_time_and_install_and_run_and_are_removed() {
    let folder = Folder::new("package");
    let binary = binary_without_paths(&folder);
    let [first, second] = thread::scope(|scope| {
        let make = |name: &'static str, before: &'static str| {
            let (folder, binary) = (&folder, &binary);
            scope.spawn(move || package(folder, name, binary, before))
        };
        let other = "umask 077; export LC_ALL=C.UTF-8 TZ=Asia/Tokyo;";
        [make("first", ""), make("second", other)].map(|each| each.join().unwrap())
    });
    let made = names(&first);
    assert_eq!(made, names(&second));
    for name in &made {
        let read = |folder: &str| fs::read(format!("{folder}/{name}")).unwrap();
        assert!(read(&first) == read(&second), "{name} differs");
    }
    let named = |part: &str| {
        let found = made.iter().find(|name| name.contains(part));
        let found = found.unwrap_or_else(|| panic!("no {part} in {made:?}"));
        format!("{first}/{found}")
    };
    let sums = execute(&format!("env --chdir={first} sha256sum --check SHA256SUMS"));
    assert_eq!(sums.succeeded().lines().count(), 3);
    check_bill_of_materials(&named(".cdx.json"));
    check_archive(&folder, &named(".tar.gz"));

    let deb = named(".deb");
    let depends = execute(&format!("dpkg-deb --field {deb} Depends")).succeeded();
    for part in ["libc6 (>= 2.", "libgcc-s1 (>= "] {
        assert!(depends.contains(part), "{depends}");
    }
    let owner = fs::metadata("/proc/self").unwrap().uid();
    if owner == 0 {
        check_installation(&folder, &deb);
    } else {
        eprintln!("not tried: another root needs the rights of root");
    }
}

#[test]
fn binary_that_is_missing_or_has_paths_of_its_machine_is_not_packaged() {
    let folder = Folder::new("package-refused");
    let out = folder.path("out");
    let missing = folder.path("missing");
    let refused = execute(&format!("{SCRIPT} {out} {missing}"));
    refused.refused_with(&format!("no program `{missing}`"), "packaging/build");
    let refused = execute(&format!("{SCRIPT} {out} {THRONG}"));
    refused.refused_with("has paths of the machine", "packaging/build");
    assert_eq!(names(&out), [""; 0]);
}
