//! The package for Debian in bare systems of Debian 12 and 13, where nothing builds anything: apt
//! installs an older version, upgrades and removes it; a user without rights runs it.

use std::fs;
use std::thread;

use measure::{DriverKind, RunRecord};
use testing::folder::Folder;
use testing::prepared;
use testing::program::execute;

const VERSION: &str = env!("CARGO_PKG_VERSION");
const SYSTEMS: [&str; 2] = ["bookworm", "trixie"];
const TRANSPORTS: &str = "udp,tcp,dot,doh2,doh3,doq";
/// Only the older version has it.
const OF_OLDER: &str = "usr/share/doc/throng/older";

/// In namespaces that end with it. Changes of SYSTEM are in memory; FOLDER is `/tmp` in it. The
/// network namespace `far` is another host to AF_XDP.
const LINES: &str = r#"
set -eu
unset TMPDIR
export HOME=/tmp/home PATH=/usr/sbin:/usr/bin LC_ALL=C DEBIAN_FRONTEND=noninteractive
mount -t tmpfs none /run
mkdir /run/changes /run/work /run/system
mount -t overlay none /run/system -o lowerdir=SYSTEM,upperdir=/run/changes,workdir=/run/work
cd /run/system
mount --bind FOLDER tmp
mount -t proc none proc
mount -t sysfs none sys
mount --rbind /dev dev
ip link set lo up
install -d --owner=65534 tmp/home tmp/records
system() { chroot . "$@"; }
user() { chroot --userspec=65534:65534 . "$@"; }
apt() { system apt-get --quiet --yes "$@" >>tmp/apt 2>&1 || { cat tmp/apt >&2; exit 1; }; }
content() { find . -xdev ! -path './var/*' | sort; }
content >/run/before
if system which cc make python3; then exit 1; fi

apt install /tmp/older.deb
system dpkg-query --show throng
test -e OF_OLDER
apt install /tmp/throng.deb
system dpkg-query --show throng
test ! -e OF_OLDER
system dpkg --verify throng

user kubectl-throng --version
run="throng run --quiet"
self() { user $run --record "/tmp/records/$@" >/dev/null; }
user throng compare-transports --quiet --transports TRANSPORTS --queries 300 \
    --records /tmp/records >/dev/null
self streams --transport tcp --clients 40 --queries 500
scripts=/usr/share/doc/throng/examples/scenarios/scripts
self script --script $scripts/stub.lua --clients 50 --duration 1s

ip netns add far
ip link add near type veth peer name far netns far
ip address add 10.78.0.1/24 dev near
ip link set near up
ip -n far address add 10.78.0.2/24 dev far
ip -n far link set far up
mkfifo /run/printed
ip netns exec far chroot . throng responder --listen udp:10.78.0.2:5353 >/run/printed &
exec 3</run/printed
read -r _ <&3
user throng names records --zone example.org >tmp/names
far="--server 10.78.0.2:5353 --names /tmp/names --queries 300"
self far $far
xdp="--driver xdp --interface near"
if user $run $xdp $far 2>&1; then exit 1; fi
system $run $xdp $far --record /tmp/xdp >/dev/null
mv tmp/xdp tmp/records
kill $!

apt purge throng
echo left
content | comm -3 /run/before -
find tmp/home -mindepth 1
"#;

/// The same package with a lower version, and a file that this one does not have.
fn write_older(folder: &Folder, deb: &str) -> String {
    let (content, older) = (folder.path("older"), folder.path("older.deb"));
    execute(&format!("dpkg-deb --raw-extract {deb} {content}")).succeeded();
    fs::write(format!("{content}/{OF_OLDER}"), "").unwrap();
    let control = format!("{content}/DEBIAN/control");
    let text = fs::read_to_string(&control).unwrap();
    let lower = format!("Version: {VERSION}~older");
    fs::write(
        &control,
        text.replace(&format!("Version: {VERSION}"), &lower),
    )
    .unwrap();
    execute(&format!(
        "dpkg-deb -Znone --root-owner-group --build {content} {older}"
    ))
    .succeeded();
    older
}

pub(crate) fn check(folder: &Folder, deb: &str) {
    let older = write_older(folder, deb);
    thread::scope(|scope| {
        for name in SYSTEMS {
            let older = &older;
            scope.spawn(move || check_system(folder, name, older, deb));
        }
    });
}

fn check_system(folder: &Folder, name: &str, older: &str, deb: &str) {
    let shared = folder.path(&format!("in-{name}"));
    fs::create_dir(&shared).unwrap();
    fs::hard_link(older, format!("{shared}/older.deb")).unwrap();
    fs::hard_link(deb, format!("{shared}/throng.deb")).unwrap();
    let version = prepared::path(&format!("{name}/etc/debian_version"));
    let system = version.ancestors().nth(2).unwrap().canonicalize().unwrap();
    let lines = LINES
        .replace("OF_OLDER", OF_OLDER)
        .replace("TRANSPORTS", TRANSPORTS)
        .replace("SYSTEM", &system.display().to_string())
        .replace("FOLDER", &shared);
    let script = folder.write(&format!("{name}.sh"), lines);
    let namespaces = "unshare --mount --net --pid --fork --kill-child";
    let printed = execute(&format!("{namespaces} bash {script}")).succeeded();
    let expected = format!(
        "throng\t{VERSION}~older-1\nthrong\t{VERSION}-1\nthrong {VERSION}\n\
         error: cannot open the driver: AF_XDP is not permitted here; it needs root, or the \
         capabilities CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF\n\
         hint: let --driver auto choose, or use --driver epoll\nleft\n"
    );
    assert_eq!(printed, expected, "{name}");
    check_records(&format!("{shared}/records"));
}

/// What was run has been answered, and says by which driver and why.
fn check_records(folder: &str) {
    let of_transports = TRANSPORTS.split(',').map(|it| format!("{it}-1.json"));
    let others = ["streams", "script", "far", "xdp"].map(str::to_owned);
    for name in of_transports.chain(others) {
        let text = fs::read_to_string(format!("{folder}/{name}")).unwrap();
        let record = RunRecord::from_json(&text).unwrap();
        let counts = &record.total.counts;
        assert!(counts.responses > 0, "{name}: {counts:?}");
        assert_eq!(counts.check_identity(), Ok(()), "{name}");
        let (driver, reason) = (record.driver, record.driver_reason.unwrap());
        match name.as_str() {
            "xdp" => assert_eq!(driver, DriverKind::Xdp, "{reason}"),
            // Kernels may forbid io_uring.
            _ if driver == DriverKind::Uring => assert!(reason.starts_with("uring: "), "{reason}"),
            _ => assert!(reason.starts_with("epoll: "), "{name}: {reason}"),
        }
    }
}
