//! Every command line of README.md and the guides, run as it stands there.
//!
//! They run in network namespaces in which the addresses of the documents are a responder's, on
//! the standard ports. Only what a reader's network would have is added: the certificate that its
//! servers are known by. A command that takes long is interrupted, as a reader may do. Needs root.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use lab::target::Namespace;
use testing::folder::Folder;
use testing::program::{Finished, execute};

use crate::process::{Responder, THRONG};

/// A command is interrupted after that many seconds: on a busy host that can be before it has done
/// what the next one needs, so a document that failed is tried again with the second number.
const PATIENCE_SECONDS: [u32; 2] = [3, 20];

/// What a command may end with: done, a condition does not hold, a condition ended it (a busy host
/// answers late), interrupted.
const CODES: [i32; 4] = [0, 3, 4, 130];

const HOSTS: &str = "127.0.0.1 localhost\n192.0.2.1 ns.example.org\n";

/// The log of a server whose clients ask now and then.
fn query_log() -> String {
    let line = |n: usize| {
        format!(
            "22-Nov-2026 10:00:{:02}.000 queries: info: client @0x7f 192.0.2.{}#4000 \
             (www{n}.example.org): query: www{n}.example.org IN A +E(0) (192.0.2.1)\n",
            n % 60,
            n % 20 + 10,
        )
    };
    (0..60).map(line).collect()
}

/// Makes a certificate of `own.pem` for the servers of the documents.
const CERTIFY: &str = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes \
    -days 30 -subj /CN=ns.example.org -keyout own-key.pem -out own.pem -addext \
    subjectAltName=DNS:ns.example.org,IP:192.0.2.1,IP:192.0.2.2";

/// What readers have beside them when they come to a command.
const PREPARE: &str = "set -e
throng names records --zone example.org > names.txt
mkdir -p records old new copied/proc copied/sys
for name in records/1 records/2 records/3 old/1 old/2 new/1 new/2; do
    throng run --driver sim --duration 500ms --quiet --label server=a \\
        --record $name.json > /dev/null
done
cp records/1.json run.json
cp records/1.json a.json
cp records/2.json b.json
throng fit query.log -o office.toml 2> /dev/null
printf '192.0.2.1\\n192.0.2.2\\n' > servers.txt
";

/// The commands of one document, in the order in which they stand there.
struct Document {
    name: String,
    commands: Vec<String>,
}

fn documents(root: &Path) -> Vec<Document> {
    let mut paths = vec![root.join("README.md")];
    for entry in fs::read_dir(root.join("docs")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "md") {
            paths.push(path);
        }
    }
    // Its commands need a cluster: `tests/real/cluster` runs them.
    paths.retain(|path| !path.ends_with("kubernetes.md"));
    // Examples of the help; tests of that parse them.
    paths.retain(|path| !path.ends_with("commands.md"));
    paths.sort();
    let read = |path: PathBuf| Document {
        name: path.file_stem().unwrap().to_string_lossy().into_owned(),
        commands: commands(&fs::read_to_string(&path).unwrap()),
    };
    paths.into_iter().map(read).collect()
}

/// The lines in fenced blocks that begin with `throng` and an argument, whole if they go on below.
fn commands(text: &str) -> Vec<String> {
    let mut commands: Vec<String> = Vec::new();
    let mut is_fenced = false;
    let mut goes_on = false;
    for line in text.lines() {
        if line.starts_with("```") {
            is_fenced = !is_fenced;
        } else if goes_on && let Some(last) = commands.last_mut() {
            last.push_str(line);
        } else if is_fenced && is_command(line) {
            commands.push(line.to_owned());
        } else {
            continue;
        }
        goes_on = is_fenced && line.ends_with('\\');
        if let Some(last) = commands.last_mut().filter(|_| goes_on) {
            last.pop();
        }
    }
    commands
}

fn is_command(line: &str) -> bool {
    let argument = line.strip_prefix("throng ");
    argument.is_some_and(|rest| !rest.starts_with(|first: char| first.is_ascii_digit()))
}

/// The network of the documents, and `throng` as the first of its shell's path.
struct Network {
    namespace: Namespace,
    bin: PathBuf,
    hosts: String,
}

impl Network {
    fn new(folder: &Folder) -> Network {
        let namespace = Namespace::new().unwrap();
        let hosts = folder.write("hosts", HOSTS);
        let bin = folder.folder().join("bin");
        fs::create_dir(&bin).unwrap();
        // `--tls-ca` goes where the documents name a server and an encrypted transport.
        let ca = folder.path("own.pem");
        let script = format!(
            "#!/bin/sh\ncommand=$1\nshift\ncase \" $command $* \" in\n\
             *' --server '*' --transport do'*|*' --transport do'*' --server '*|*https://*|\
             ' compare-transports '*|*--servers*)\n\
             set -- --tls-ca {ca} \"$@\" ;;\nesac\n\
             exec timeout --foreground --preserve-status --signal=INT --kill-after=60 \
             $PATIENCE {THRONG} \"$command\" \"$@\"\n"
        );
        let throng = bin.join("throng");
        fs::write(&throng, script).unwrap();
        execute(&format!("chmod +x {}", throng.display())).succeeded();
        let network = Network {
            namespace,
            bin,
            hosts,
        };
        for line in [
            "ip link set lo up",
            "ip addr add 192.0.2.1/24 dev lo",
            "ip addr add 192.0.2.2/24 dev lo",
            "ip link add eth1 type veth peer name eth2",
        ] {
            network.shell(folder.folder(), line, 0).succeeded();
        }
        network
    }

    fn shell(&self, folder: &Path, line: &str, patience: u32) -> Finished {
        let path = std::env::var("PATH").unwrap();
        let mut command = self.namespace.command("unshare");
        command.args(["--mount", "sh", "-c"]);
        command.arg(format!(
            "mount -t sysfs sysfs /sys\nmount --bind {} /etc/hosts\n\
             mkdir -p /run/netns\nmount -t tmpfs tmpfs /run/netns\n{line}",
            self.hosts
        ));
        command.current_dir(folder);
        command.env("PATH", format!("{}:{path}", self.bin.display()));
        command.env("GITHUB_STEP_SUMMARY", "summary.md");
        // For `timeout`, 0 is without end.
        command.env("PATIENCE", patience.to_string());
        Finished::new(line, command.output().unwrap())
    }

    fn responder(&self, folder: &Folder) -> Responder {
        let listen = ["192.0.2.1", "192.0.2.2"].map(|address| {
            let at = |place: &str| place.replace(':', &format!(":{address}:"));
            let places = [
                "udp:53", "tcp:53", "dot:853", "dot:8853", "doq:853", "doh2:443", "doh3:443",
            ];
            places.map(at).join(",")
        });
        let (certificate, key) = (folder.path("own.pem"), folder.path("own-key.pem"));
        let flags = format!("--tls-cert {certificate} --tls-key {key}");
        Responder::start_by(self.namespace.command(THRONG), &listen.join(","), &flags)
    }
}

/// A folder with what the commands of a document need.
fn furnish(folder: &Folder, network: &Network, root: &Path) {
    for log in ["query.log", "query.log.1"] {
        folder.write(log, query_log());
    }
    let copy = |from: &str, to: &str| fs::copy(root.join(from), folder.path(to)).unwrap();
    copy("fuzz/corpus/capture/udp.pcap", "capture.pcap");
    copy("scenarios/scripts/browser.lua", "page.lua");
    std::os::unix::fs::symlink(root.join("scenarios"), folder.path("scenarios")).unwrap();
    network.shell(folder.folder(), PREPARE, 0).succeeded();
}

/// The commands of a document that did not end as they should, with what they said.
fn failures(document: &Document, network: &Network, root: &Path, patience: u32) -> Vec<String> {
    let folder = Folder::new(&format!("document-{}", document.name));
    furnish(&folder, network, root);
    let ran = document.commands.iter().map(|line| {
        let finished = network.shell(folder.folder(), line, patience);
        let is_good = finished.code.is_some_and(|code| CODES.contains(&code));
        let said = format!(
            "{}: {line}\n{:?} {}",
            document.name, finished.code, finished.stderr
        );
        (!is_good).then_some(said)
    });
    ran.flatten().collect()
}

#[test]
fn every_command_of_the_documents_runs_as_it_stands_there() {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    if !status.lines().any(|line| line.starts_with("Uid:\t0\t")) {
        eprintln!("not tried: network namespaces need root");
        return;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let root = root.canonicalize().unwrap();
    let documents = documents(&root);
    let count: usize = documents.iter().map(|each| each.commands.len()).sum();
    assert!(count > 50, "only {count} commands are found");
    let folder = Folder::new("documents");
    let mut certify = Command::new("sh");
    certify.args(["-c", CERTIFY]).current_dir(folder.folder());
    Finished::new("openssl", certify.output().unwrap()).succeeded();
    let network = Network::new(&folder);
    let _responder = network.responder(&folder);
    let [first, again] = PATIENCE_SECONDS;
    let failed: Vec<&Document> = thread::scope(|scope| {
        let with_commands = documents.iter().filter(|each| !each.commands.is_empty());
        let running: Vec<_> = with_commands
            .map(|it| (it, scope.spawn(|| failures(it, &network, &root, first))))
            .collect();
        let ended = running.into_iter();
        let ended = ended.map(|(document, each)| (document, each.join().unwrap()));
        let failed = ended.filter(|(_, failures)| !failures.is_empty());
        failed.map(|(document, _)| document).collect()
    });
    let failed = failed.into_iter();
    let failed: Vec<String> = failed
        .flat_map(|it| failures(it, &network, &root, again))
        .collect();
    // What a `lab down` has not ended that was interrupted itself.
    network.shell(folder.folder(), "throng lab down --all", again);
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn commands_are_found_in_blocks_and_whole() {
    let text = "throng outside\n```\nthrong run \\\n  --rate 5  # five\nthrong 0.1.0: udp\n \
                throng within\n```\nthrong after\n```toml\nbefore = 1\n```\n";
    assert_eq!(commands(text), ["throng run   --rate 5  # five"]);
}
