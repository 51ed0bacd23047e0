//! Network namespaces without names: gone with the last process in them.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// A new network namespace with only a loopback interface, which is down. Needs root.
///
/// It lasts as long as this, or until the thread that made it dies.
#[derive(Debug)]
pub struct Namespace {
    holder: Child,
}

impl Namespace {
    /// Makes one and waits until it is there.
    ///
    /// # Errors
    /// This process may not create one, or `setpriv` or `unshare` is not installed (package
    /// util-linux).
    pub fn new() -> io::Result<Namespace> {
        let mut holder = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "--", "unshare", "--net"])
            .args(["sh", "-c", "echo there; exec cat"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        // Output of the command that `unshare` runs means that the namespace exists.
        let stdout = holder.stdout.take();
        let namespace = Namespace { holder };
        let mut line = String::new();
        if let Some(stdout) = stdout {
            BufReader::new(stdout).read_line(&mut line)?;
        }
        match line.as_str() {
            "there\n" => Ok(namespace),
            _ => Err(io::Error::other("a network namespace may not be made here")),
        }
    }

    /// The process in it, by which `ip link ... netns` knows it.
    pub fn id(&self) -> u32 {
        self.holder.id()
    }

    /// Moves the calling thread there permanently, with all processes that it starts from then on.
    ///
    /// # Errors
    /// The thread may not.
    pub fn enter(&self) -> io::Result<()> {
        driver::namespace::enter(&File::open(format!("/proc/{}/ns/net", self.id()))?)
    }

    /// `program`, to be run in it.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--target", &self.id().to_string(), "--net", "--"]);
        command.arg(program);
        command
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // Both fail only if the process has ended already.
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}
