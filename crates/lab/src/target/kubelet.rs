//! Metrics of pods from their kubelets, through `kubectl proxy` with the rights of the calling
//! user.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The proxy's socket, in a folder that only this user can read.
const SOCKET: &str = "kubelet.sock";

/// Serves kubelets' metrics at a socket in a private folder: a port would be open to every user of
/// this host.
#[derive(Debug)]
pub(super) struct KubeletProxy {
    /// None if kubectl cannot be started: who observes its pods notes that nothing answers there.
    child: Option<Child>,
    socket: PathBuf,
}

impl KubeletProxy {
    /// Waits until it serves, or has ended.
    pub(super) fn start(context: &str, folder: &Path) -> KubeletProxy {
        let socket = folder.join(SOCKET);
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--", "kubectl", "--context"]);
        command.args([context, "proxy"]);
        command.arg(format!("--unix-socket={}", socket.display()));
        // The proxy serves only these paths.
        command.arg("--accept-paths=^/api/v1/nodes/[^/]+/proxy/metrics/cadvisor$");
        command.arg("--reject-methods=POST,PUT,PATCH,DELETE");
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::null()).spawn().ok();
        if let Some(stdout) = child.as_mut().and_then(|it| it.stdout.take()) {
            // If it ends, so does its output: the next scrape fails and says so.
            let _ = BufReader::new(stdout).read_line(&mut String::new());
        }
        KubeletProxy { child, socket }
    }

    /// The source to observe these pods (`NAMESPACE/NAME`, or `NAMESPACE/NAME*`) on a node.
    pub(super) fn source(&self, node: &str, pods: &str) -> String {
        let path = format!("/api/v1/nodes/{node}/proxy/metrics/cadvisor");
        format!("kubelet=unix:{}:{path},pod={pods}", self.socket.display())
    }
}

impl Drop for KubeletProxy {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            // Both fail only if the process has ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use measure::observation::ObservationMode;
    use observe::{Asked, Observer, Settings};

    use super::*;

    /// As where the path of its socket is too long, or kubectl may not read its configuration.
    #[test]
    fn a_pod_whose_proxy_does_not_serve_is_noted() {
        let folder = testing::folder::Folder::new("no-proxy");
        let proxy = KubeletProxy::start("no-such-context", Path::new(&folder.path("x")));
        let asked = Asked::parse(&proxy.source("n1", "lab/server")).unwrap();
        let settings = Settings {
            mode: ObservationMode::Around,
            period: Duration::from_secs(1),
            thread_cpu_time: || Duration::ZERO,
        };
        let observer = Observer::start(&[asked], Instant::now(), settings).unwrap();
        let observations = observer.finish();
        let [observation] = observations.as_slice() else {
            panic!("{observations:?}");
        };
        assert!(!observation.notes.is_empty(), "{observation:?}");
    }
}
