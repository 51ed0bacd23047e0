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
    child: Child,
    socket: PathBuf,
}

impl KubeletProxy {
    /// None if kubectl cannot be started; then the pod is not observed, and the record notes it.
    pub(super) fn start(context: &str, folder: &Path) -> Option<KubeletProxy> {
        let socket = folder.join(SOCKET);
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--", "kubectl", "--context"]);
        command.args([context, "proxy"]);
        command.arg(format!("--unix-socket={}", socket.display()));
        // The proxy serves only these paths.
        command.arg("--accept-paths=^/api/v1/nodes/[^/]+/proxy/metrics/cadvisor$");
        command.arg("--reject-methods=POST,PUT,PATCH,DELETE");
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::null()).spawn().ok()?;
        let stdout = child.stdout.take();
        // Dropped, and so ended, if it does not serve.
        let proxy = KubeletProxy { child, socket };
        let mut line = String::new();
        let read = BufReader::new(stdout?).read_line(&mut line).ok()?;
        (read > 0).then_some(proxy)
    }

    /// The source to observe these pods (`NAMESPACE/NAME`, or `NAMESPACE/NAME*`) on a node.
    pub(super) fn source(&self, node: &str, pods: &str) -> String {
        let path = format!("/api/v1/nodes/{node}/proxy/metrics/cadvisor");
        format!("kubelet=unix:{}:{path},pod={pods}", self.socket.display())
    }
}

impl Drop for KubeletProxy {
    fn drop(&mut self) {
        // Both fail only if the process has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
