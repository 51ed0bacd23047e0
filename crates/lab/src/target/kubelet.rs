//! What kubelets know of pods, through `kubectl proxy` with the rights that a shell here has.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The socket at which they are asked, in a folder that is this user's alone.
const SOCKET: &str = "kubelet.sock";

/// Serves what kubelets know, at a socket in a private folder: at a port, every user of this host
/// could ask it.
#[derive(Debug)]
pub(super) struct KubeletProxy {
    child: Child,
    socket: PathBuf,
}

impl KubeletProxy {
    /// None if kubectl cannot be started: then the pod is not observed, which the record says.
    pub(super) fn start(context: &str, folder: &Path) -> Option<KubeletProxy> {
        let socket = folder.join(SOCKET);
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--", "kubectl", "--context"]);
        command.args([context, "proxy"]);
        command.arg(format!("--unix-socket={}", socket.display()));
        // Nothing else is to be had from it.
        command.arg("--accept-paths=^/api/v1/nodes/[^/]+/proxy/metrics/cadvisor$");
        command.arg("--reject-methods=POST,PUT,PATCH,DELETE");
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::null()).spawn().ok()?;
        let stdout = child.stdout.take();
        // Ended again if it does not serve.
        let proxy = KubeletProxy { child, socket };
        let mut line = String::new();
        let read = BufReader::new(stdout?).read_line(&mut line).ok()?;
        (read > 0).then_some(proxy)
    }

    /// What is to be observed of these pods (`NAMESPACE/NAME`, or `NAMESPACE/NAME*`) on a node.
    pub(super) fn source(&self, node: &str, pods: &str) -> String {
        let path = format!("/api/v1/nodes/{node}/proxy/metrics/cadvisor");
        format!("kubelet=unix:{}:{path},pod={pods}", self.socket.display())
    }
}

impl Drop for KubeletProxy {
    fn drop(&mut self) {
        // Both fail only if it has ended, which is what they are for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
