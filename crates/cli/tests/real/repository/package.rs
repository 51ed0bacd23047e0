//! The packages of Throng: the same each time; installed, run and removed in a bare root.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::thread;
use std::time::Instant;

use lab::run::{SocketUse, serve};
use proto::Transport;
use responder::ResponderConfig;
use serde_json::Value;
use testing::folder::Folder;
use testing::host::is_root_for;
use testing::prepared;
use testing::program::{Finished, execute};

use crate::installed;

const THRONG: &str = env!("CARGO_BIN_EXE_throng");
const PACKAGING: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging");
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Of `dpkg-deb` (1.21.10 and newer): compressing takes most of the time.
pub(crate) const QUICKLY: (&str, &str) = ("DPKG_DEB_COMPRESSOR_LEVEL", "1");

/// Where the scripts find mdBook.
pub(crate) fn prepared_programs() -> (&'static str, String) {
    let mdbook = prepared::path("mdbook/bin/mdbook");
    let folder = mdbook.ancestors().nth(3).unwrap();
    ("THRONG_PREPARED_SERVERS", folder.display().to_string())
}

/// The binary under test as `packaging/build` builds one: without paths of this machine.
pub(crate) fn binary_without_paths(folder: &Folder) -> String {
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

/// Writes the packages of a binary to a folder of this name, after `before`; returns its path.
fn package(folder: &Folder, name: &str, binary: &str, before: &str) -> String {
    let path = folder.path(name);
    let variables = [(QUICKLY.0, QUICKLY.1.to_owned()), prepared_programs()];
    let exports = variables.map(|(name, value)| format!("export {name}={value}\n"));
    let script = folder.write(
        &format!("{name}.sh"),
        format!("{before}\n{}exec \"$@\"", exports.concat()),
    );
    let made = execute(&format!(
        "bash {script} {PACKAGING}/package {path} {binary}"
    ));
    assert!(!made.stderr.contains("left out"), "{}", made.stderr);
    made.succeeded();
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

/// The paths of all that is in a folder, but for what rpm keeps.
fn tree(folder: &str) -> BTreeSet<String> {
    let found = execute(&format!("find {folder} -not -path {folder}/var/lib/*"));
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
        "html/index.html",
        "html/licenses.txt",
        "scenarios/sinodun.toml",
        "experiments/ceilings/experiment.toml",
        "deploy/ci/action.yml",
        "deploy/grafana/run.json",
        "deploy/helm/throng/files/run.json",
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
    check_first_verdict(folder, archive, name);
    let notes = execute(&format!("readelf --notes {throng}")).succeeded();
    assert!(notes.contains("Build ID: "), "{notes}");
}

/// README's first example against a server of this host: three commands from the archive to a
/// verdict, with the one that unpacks it. Prints how long they take.
fn check_first_verdict(folder: &Folder, archive: &str, name: &str) {
    let config = ResponderConfig {
        listen: vec![(Transport::Udp, "127.0.0.1:0".parse().unwrap())],
        ..ResponderConfig::default()
    };
    let serving = serve(&config, &[], SocketUse::default()).unwrap();
    let server = serving.address(Transport::Udp).unwrap();
    let readme = fs::read_to_string(format!("{PACKAGING}/../README.md")).unwrap();
    let mut blocks = readme.split("```\n");
    let example = blocks.find(|block| block.starts_with("throng names "));
    let example = example.expect("README begins with names and a run");
    let lines: Vec<&str> = example.lines().collect();
    assert!(lines.len() == 2 && lines[1].starts_with("throng run --server 192.0.2.1 "));
    let lines = example.replace("192.0.2.1", &server.to_string());
    let home = folder.path("newcomer");
    fs::create_dir(&home).unwrap();
    let script = format!(
        "set -eu\ncd {home}\nexport HOME={home} PATH={home}/{name}:$PATH\n\
         tar --extract --file {archive}\n{lines}"
    );
    let script = folder.write("newcomer.sh", script);
    let began = Instant::now();
    let printed = execute(&format!("bash {script}")).succeeded();
    let seconds = began.elapsed().as_secs_f64();
    drop(serving);
    let first = printed.lines().next().unwrap_or_default();
    let begins = ["Limit: ", "Undecided: "];
    assert!(begins.iter().any(|it| first.starts_with(it)), "{printed}");
    assert!(first.contains(" answered, "), "{printed}");
    eprintln!("three commands from the archive to a verdict took {seconds:.1} s: {first}");
}

/// A root with the libraries of the binary, and nothing else.
fn bare_root(folder: &Folder, name: &str) -> String {
    let root = folder.path(name);
    let libraries = execute(&format!("ldd {THRONG}")).succeeded();
    for library in libraries
        .split_whitespace()
        .filter(|it| it.starts_with('/'))
    {
        let to = format!("{root}{library}");
        fs::create_dir_all(Path::new(&to).parent().unwrap()).unwrap();
        fs::copy(library, &to).unwrap();
    }
    let temporary = format!("{root}/tmp");
    fs::create_dir_all(&temporary).unwrap();
    fs::set_permissions(&temporary, PermissionsExt::from_mode(0o1777)).unwrap();
    root
}

/// Runs the program that is installed in a root, as a user without rights.
fn check_program(root: &str) {
    let user = format!("chroot --userspec=65534:65534 {root} /usr/bin");
    let version = execute(&format!("{user}/kubectl-throng --version")).succeeded();
    assert_eq!(version, format!("throng {VERSION}\n"));
    // Without /proc, /dev and rights: what cannot be read is left out of the record.
    for transport in ["udp", "doh3"] {
        let line = format!("{user}/throng run --duration 1s --transport {transport}");
        let printed = execute(&line).succeeded();
        assert!(printed.contains("answered"), "{printed}");
    }
}

/// What packages for distributions have in common, below `/usr`.
const INSTALLED: [&str; 9] = [
    "bin/kubectl-throng",
    "share/man/man1/kubectl-throng.1.gz",
    "share/man/man1/throng-names-records.1.gz",
    "share/bash-completion/completions/throng",
    "share/fish/vendor_completions.d/throng.fish",
    "share/doc/throng/README.md",
    "share/doc/throng/docs/README.md",
    "share/doc/throng/html/index.html",
    "share/doc/throng/examples/scenarios/sinodun.toml",
];

fn check_deb(deb: &str) {
    let depends = execute(&format!("dpkg-deb --field {deb} Depends")).succeeded();
    for part in ["libc6 (>= 2.", "libgcc-s1 (>= "] {
        assert!(depends.contains(part), "{depends}");
    }
    let files = execute(&format!("dpkg-deb --contents {deb}")).succeeded();
    for path in [&INSTALLED[..], &["share/zsh/vendor-completions/_throng"]].concat() {
        assert!(files.contains(&format!(" ./usr/{path}")), "{path}");
    }
    let lintian = "lintian --allow-root --fail-on error,warning";
    assert_eq!(execute(&format!("{lintian} {deb}")).succeeded(), "");
}

/// rpm with a home in the folder: its database is there.
fn rpm(folder: &Folder, arguments: &str) -> Finished {
    execute(&format!("env HOME={} rpm {arguments}", folder.path("home")))
}

fn check_rpm(folder: &Folder, package: &str) {
    let query = |option: &str| rpm(folder, &format!("-qp {option} {package}")).succeeded();
    let requires = query("--requires");
    for part in ["libc.so.6(GLIBC_2.", "libgcc_s.so.1(GCC_"] {
        assert!(requires.contains(part), "{requires}");
    }
    // Examples may run other programs.
    assert!(!requires.contains("/bin/"), "{requires}");
    assert_eq!(query("--scripts --triggers"), "");
    let licences = query("--licensefiles");
    let names: Vec<&str> = licences
        .lines()
        .filter_map(|it| it.rsplit('/').next())
        .collect();
    assert_eq!(names, ["LICENSE-APACHE", "LICENSE-MIT", "third-party.txt"]);
    let files = query("--list");
    let files: BTreeSet<&str> = files.lines().collect();
    for path in [&INSTALLED[..], &["share/zsh/site-functions/_throng"]].concat() {
        assert!(files.contains(format!("/usr/{path}").as_str()), "{path}");
    }
    rpm(folder, &format!("--checksig --nosignature {package}")).succeeded();
}

fn check_rpm_installation(folder: &Folder, package: &str) {
    let root = bare_root(folder, "fedora");
    // Its database knows no package of the libraries.
    let in_root = |arguments: &str| {
        let options = format!("--root {root} --dbpath /var/lib/rpm --nodeps");
        rpm(folder, &format!("{options} {arguments}")).succeeded()
    };
    in_root(&format!("--install {package}"));
    let installed = tree(&root);
    assert_eq!(in_root("--verify throng"), "");
    check_program(&root);
    in_root(&format!("--upgrade --replacepkgs {package}"));
    assert_eq!(tree(&root), installed);
    in_root("--erase throng");
    // Folders stay that the packages of a distribution have.
    let left: Vec<String> = tree(&root)
        .into_iter()
        .filter(|it| it.contains("/usr/"))
        .collect();
    assert!(left.iter().all(|path| Path::new(path).is_dir()), "{left:?}");
    assert!(
        !left.iter().any(|path| path.ends_with("/throng")),
        "{left:?}"
    );
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
    assert_eq!(sums.succeeded().lines().count(), 4);
    check_bill_of_materials(&named(".cdx.json"));
    check_archive(&folder, &named(".tar.gz"));

    let deb = named(".deb");
    let rpm = named(".rpm");
    let is_root = is_root_for("installations in another root");
    thread::scope(|scope| {
        scope.spawn(|| check_deb(&deb));
        if is_root {
            scope.spawn(|| installed::check(&folder, &deb));
        }
        check_rpm(&folder, &rpm);
        if is_root {
            check_rpm_installation(&folder, &rpm);
        }
    });
}

#[test]
fn binary_that_is_missing_or_has_paths_of_its_machine_is_not_packaged() {
    let folder = Folder::new("package-refused");
    let out = folder.path("out");
    let missing = folder.path("missing");
    let refused = execute(&format!("{PACKAGING}/package {out} {missing}"));
    refused.refused_with(&format!("no program `{missing}`"), "packaging/build");
    let refused = execute(&format!("{PACKAGING}/package {out} {THRONG}"));
    refused.refused_with("has paths of the machine", "packaging/build");
    assert_eq!(names(&out), [""; 0]);
}

#[test]
fn machine_is_that_of_the_elf_header_and_another_one_is_emulated() {
    let folder = Folder::new("package-machine");
    let parts = format!("{PACKAGING}/parts");
    let script = format!(
        ". {parts}/begin.bash\n. {parts}/machine.bash\nrequire() {{ echo \"needs $*\"; }}\n\
         uname() {{ echo x86_64; }}\nfind_machine \"$1\"\n\
         echo \"$architecture $machine $strip ${{emulator[*]}}\"\n"
    );
    let script = folder.write("find.sh", script);
    let find = |machine: u8| {
        // 64 bits, little-endian, position-independent; without segments and sections.
        let mut header = [0; 64];
        header[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
        (header[16], header[18], header[20], header[52]) = (3, machine, 1, 64);
        let binary = folder.write(&format!("elf-{machine}"), header);
        execute(&format!("bash {script} {binary}"))
    };
    assert_eq!(find(62).succeeded(), "amd64 x86_64 strip \n");
    let arm = "needs aarch64-linux-gnu-strip qemu-aarch64-static\n\
               arm64 aarch64 aarch64-linux-gnu-strip \
               qemu-aarch64-static -L /usr/aarch64-linux-gnu\n";
    assert_eq!(find(183).succeeded(), arm);
    find(243).refused_with("is for another architecture", "x86-64 or AArch64");
}

#[test]
fn what_lacks_its_program_is_left_out_or_refused_with_what_installs_it() {
    let folder = Folder::new("package-programs");
    let check = |call: &str| {
        let common = format!("{PACKAGING}/parts/begin.bash");
        let script = format!(". {common}; PATH=/nowhere\n{call}\n");
        execute(&format!("bash {}", folder.write("check.sh", script)))
    };
    let left_out = check("! can_make rpmbuild 'the .rpm'");
    let line = "left out: the .rpm; `rpmbuild` is not installed: apt-get install rpm\n";
    assert_eq!(left_out.stderr, line);
    left_out.succeeded();
    check("require gpg").refused_with("`gpg` is not installed", "apt-get install gnupg");
}
