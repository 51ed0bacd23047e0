//! The cluster, and commands where its nodes are reached.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use testing::folder::Folder;
use testing::program::Finished;

/// A command that is still there after that many seconds is killed, and its test fails. A busy
/// machine takes minutes to start all pods of an experiment.
const SECONDS_MAX: &str = "1200";

/// Run in the cluster: says where its folder is and what its DNS answers, then waits for the end of
/// its input.
const AT_ONCE: &str = "echo \"$CLUSTER\"; dig +short +tries=1 @10.96.0.10 \
                       kubernetes.default.svc.cluster.local; exec cat";

/// Waits of scripts: until a command succeeds, ten minutes at most, and not longer than a process
/// runs where there is one that makes it so. The shell has no event for what another program says.
const WAITS: &str = r#"
await() {
    local end=$((SECONDS + 600))
    until "$@"; do
        ((SECONDS < end)) || { echo "timed out waiting for $*" >&2; return 1; }
        read -t 0.1 <> <(:) || :
    done
}
await_of() {
    local process=$1 has_ended=no
    shift
    is_or_ended() { "$@" && return; kill -0 $process 2>/dev/null && return 1; has_ended=yes; }
    await is_or_ended "$@"
    [ $has_ended = no ] || "$@" || { echo "process $process ended before $*" >&2; return 1; }
}
"#;

/// A cluster, until dropped: its command reads a pipe of ours.
pub(crate) struct Cluster {
    /// The process that all of the cluster belongs to, as it is seen from here.
    first_process: String,
    folder: PathBuf,
    /// Where commands have their temporary files, if not where all have them.
    temporary: Option<PathBuf>,
    /// None of one that another has started.
    command: Option<Until>,
}

/// What the cluster ends with.
struct Until {
    process: Child,
    closed: Option<ChildStdin>,
}

impl Cluster {
    pub(crate) fn start() -> Cluster {
        let images = Folder::new("images");
        let image = image(&images);
        let mut command = Command::new(script("run"));
        command.args(["--image", &image]);
        command.args(["sh", "-c", AT_ONCE]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let until_closed = process.stdin.take().unwrap();
        let mut stdout = BufReader::new(process.stdout.take().unwrap());
        let folder = line(&mut stdout);
        assert!(!folder.is_empty(), "the cluster did not start: see above");
        // It is not asked twice.
        let api_server = line(&mut stdout);
        assert_eq!(api_server, "10.96.0.1", "the cluster's DNS did not answer");
        Cluster {
            first_process: in_namespaces_of_its_own(process.id()),
            folder: PathBuf::from(folder),
            temporary: None,
            command: Some(Until {
                process,
                closed: Some(until_closed),
            }),
        }
    }

    /// The same cluster for cases beside others: what `throng lab` lists and ends is their own.
    pub(crate) fn apart(&self, name: &str) -> Cluster {
        // Beside the cluster's folder: the path of a Unix socket has 107 bytes at most.
        let temporary = std::env::temp_dir().join(format!("throng-{name}"));
        fs::create_dir(&temporary).unwrap();
        Cluster {
            first_process: self.first_process.clone(),
            folder: self.folder.clone(),
            temporary: Some(temporary),
            command: None,
        }
    }

    /// Waits until the cluster has ended by itself, and returns its exit code.
    pub(crate) fn exit_code(mut self) -> Option<i32> {
        let ended = self.command.as_mut().unwrap().process.wait().unwrap();
        assert!(!self.folder.exists(), "{} is left", self.folder.display());
        ended.code()
    }

    /// A path in the cluster's folder.
    pub(crate) fn path(&self, name: &str) -> String {
        self.folder.join(name).to_str().unwrap().to_owned()
    }

    /// Runs a command of the shell with standard input, with `kubectl`, access to everything, and
    /// [`WAITS`].
    pub(crate) fn shell(&self, line: &str, stdin: &str) -> Finished {
        let binaries =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/servers/kubernetes");
        let path = format!("{}:{}", binaries.display(), std::env::var("PATH").unwrap());
        let mut command = Command::new("timeout");
        command.args(["--foreground", "--signal=KILL", SECONDS_MAX]);
        command.args(["nsenter", "--target", &self.first_process]);
        command.args(["--net", "--mount", "--ipc", "--pid", "--wdns=."]);
        // `nsenter` waits for a child, which would outlive it if it were killed.
        let script = format!("{WAITS}{line}");
        command.args(["setpriv", "--pdeathsig", "KILL", "bash", "-c", &script]);
        command.env("PATH", path);
        command.env("KUBECONFIG", self.path("pki/admin.kubeconfig"));
        command.envs(self.temporary.iter().map(|it| ("TMPDIR", it)));
        command.stdin(Stdio::piped());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(stdin.as_bytes())
            .unwrap();
        Finished::new(line, child.wait_with_output().unwrap())
    }

    /// What `kubectl` prints, after exit code 0.
    pub(crate) fn kubectl(&self, arguments: &str) -> String {
        let printed = self.shell(&format!("kubectl {arguments}"), "").succeeded();
        printed.trim_end().to_owned()
    }

    /// Makes what a manifest says.
    pub(crate) fn apply(&self, manifest: &str) {
        self.shell("kubectl apply -f -", manifest).succeeded();
    }

    /// Runs `throng` where nodes, pods and services are reached.
    pub(crate) fn throng(&self, flags: &str) -> Finished {
        self.shell(&format!("exec {} {flags}", crate::process::THRONG), "")
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            // One that is not empty stays, and the test has left something.
            let _ = fs::remove_dir(temporary);
        }
        if let Some(mut command) = self.command.take() {
            drop(command.closed.take());
            let _ = command.process.wait();
        }
    }
}

/// A script that clusters are made by.
pub(crate) fn script(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cluster");
    folder.join(name)
}

/// Makes the image of the binary under test. Nodes have read it when the cluster has started.
fn image(folder: &Folder) -> String {
    let path = folder.path("throng.tar");
    let mut command = Command::new(script("throng-image"));
    let made = command.args([&path, crate::process::THRONG]).output();
    Finished::new("throng-image", made.unwrap()).succeeded();
    path
}

fn line(stdout: &mut BufReader<ChildStdout>) -> String {
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    line.trim_end().to_owned()
}

/// The first process in the namespaces that the command `run` has made: the child of the
/// `unshare` that is below it.
fn in_namespaces_of_its_own(run: u32) -> String {
    let child_of = |process: String| {
        let path = format!("/proc/{process}/task/{process}/children");
        let children = fs::read_to_string(path).unwrap();
        children.split_whitespace().next().unwrap().to_owned()
    };
    child_of(child_of(run.to_string()))
}
