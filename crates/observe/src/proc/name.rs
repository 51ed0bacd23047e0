//! The program of a process: from the link to its executable, its command line and its `comm`.
//!
//! `comm` is the weakest of the three: the first thread may rename itself (`isc-net-0000`,
//! `nsd: server 1`), and a program that the dynamic loader runs has the loader's.

use std::path::{Path, PathBuf};

use super::Root;

/// What the kernel adds to the link of an executable whose file was removed or replaced.
const DELETED: &str = " (deleted)";
/// Options of the dynamic loader that take the next argument as their value (ld.so(8)).
const LOADER_OPTIONS_WITH_VALUE: [&str; 7] = [
    "--argv0",
    "--audit",
    "--glibc-hwcaps-mask",
    "--glibc-hwcaps-prepend",
    "--inhibit-rpath",
    "--library-path",
    "--preload",
];

/// The files in /proc/PID that name a program.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ProcessFiles<'a> {
    /// Where the link `exe` leads; empty if this user may not read it.
    pub(super) exe: &'a str,
    /// `cmdline`, with its zero octets.
    pub(super) cmdline: &'a str,
    pub(super) comm: &'a str,
}

impl ProcessFiles<'_> {
    /// The program that the dynamic loader runs, as its command line names it; none of any other
    /// program.
    fn loaded(&self) -> Option<&str> {
        let words: Vec<&str> = self.cmdline.split_terminator('\0').collect();
        loaded_program(&words).filter(|_| is_loader(self.exe()))
    }

    fn exe(&self) -> &str {
        self.exe.strip_suffix(DELETED).unwrap_or(self.exe)
    }

    /// The name of the program, without a folder.
    pub(super) fn name(&self) -> String {
        if let Some(name) = self.loaded().or(Some(self.exe())).and_then(file_name) {
            return name.to_owned();
        }
        // Without the link: programs that show a state there write `NAME: STATE`.
        let first = self.cmdline.split('\0').next().unwrap_or_default();
        let first = first.split(": ").next().unwrap_or_default();
        let comm = self.comm.trim_end();
        let comm = comm.split(": ").next().unwrap_or_default();
        file_name(first).unwrap_or(comm).to_owned()
    }
}

fn file_name(path: &str) -> Option<&str> {
    Path::new(path).file_name()?.to_str()
}

/// True for the dynamic loaders of glibc (`ld-linux-x86-64.so.2`, `ld-2.31.so`, `ld64.so.2`) and of
/// musl (`ld-musl-x86_64.so.1`).
fn is_loader(path: &str) -> bool {
    let name = file_name(path).unwrap_or_default();
    let is_named = ["ld-", "ld.so", "ld64.so"]
        .iter()
        .any(|it| name.starts_with(it));
    is_named && name.contains(".so")
}

/// The first argument of the loader that is no option of its own.
fn loaded_program<'a>(words: &[&'a str]) -> Option<&'a str> {
    let mut arguments = words.iter().skip(1);
    while let Some(&word) = arguments.next() {
        match word {
            "--" => return arguments.next().copied(),
            _ if LOADER_OPTIONS_WITH_VALUE.contains(&word) => {
                arguments.next()?;
            }
            _ if word.starts_with("--") => {}
            _ => return Some(word),
        }
    }
    None
}

/// The name of the program of a process; none if the process has ended.
pub(super) fn program_name(root: &Root, pid: u32) -> Option<String> {
    read(root, pid, |files| files.name())
}

/// The path of the program that the dynamic loader runs in a process, as the process sees it; none
/// of any other program.
pub(super) fn loaded_path(root: &Root, pid: u32) -> Option<PathBuf> {
    let folder = root.link(&format!("proc/{pid}/cwd")).unwrap_or_default();
    let program = read(root, pid, |files| files.loaded().map(str::to_owned))??;
    Some(Path::new(&folder).join(program))
}

fn read<T>(root: &Root, pid: u32, name: impl Fn(ProcessFiles<'_>) -> T) -> Option<T> {
    let comm = root.text(&format!("proc/{pid}/comm"))?;
    let exe = root.link(&format!("proc/{pid}/exe")).unwrap_or_default();
    let cmdline = root
        .text(&format!("proc/{pid}/cmdline"))
        .unwrap_or_default();
    Some(name(ProcessFiles {
        exe: &exe,
        cmdline: &cmdline,
        comm: &comm,
    }))
}

#[cfg(test)]
mod tests {
    use super::ProcessFiles;

    fn name(exe: &str, words: &[&str], comm: &str) -> String {
        let cmdline: String = words.iter().map(|word| format!("{word}\0")).collect();
        let comm = format!("{comm}\n");
        ProcessFiles {
            exe,
            cmdline: &cmdline,
            comm: &comm,
        }
        .name()
    }

    #[test]
    fn name_is_that_of_the_executable_and_not_that_of_a_thread() {
        let nsd = ["/usr/sbin/nsd", "-d", "-c", "nsd.conf"];
        for comm in ["nsd: xfrd", "nsd: main", "nsd: server 1"] {
            assert_eq!(name("/usr/sbin/nsd", &nsd, comm), "nsd");
            // Another user's: its executable cannot be read.
            assert_eq!(name("", &nsd, comm), "nsd");
            assert_eq!(name("", &[], comm), "nsd");
        }
        let named = "/usr/sbin/named (deleted)";
        assert_eq!(name(named, &["named", "-g"], "isc-net-0000"), "named");
        let worker = ["nginx: worker process"];
        assert_eq!(name("", &worker, "nginx"), "nginx");
        assert_eq!(name("", &[], "kworker/0:1"), "kworker/0:1");
    }

    #[test]
    fn program_that_the_dynamic_loader_runs_has_its_own_name() {
        let loader = "/srv/lib/ld-linux-x86-64.so.2";
        let options = [loader, "--argv0", "knotd", "--library-path", "/srv/lib"];
        let knot = [&options[..], &["/srv/sbin/knotd", "-c", "knot.conf"]].concat();
        let comm = "ld-linux-x86-64";
        assert_eq!(name(loader, &knot, comm), "knotd");
        let plain = [loader, "--inhibit-cache", "./named", "named"];
        assert_eq!(name(loader, &plain, comm), "named");
        let musl = "/lib/ld-musl-x86_64.so.1";
        let words = [musl, "--library-path=/srv/lib", "--", "unbound"];
        assert_eq!(name(musl, &words, "ld-musl-x86_64."), "unbound");
        assert_eq!(
            name("/lib/ld-2.31.so", &["ld.so", "/bin/kresd"], ""),
            "kresd"
        );
        // Nothing to run: it is the loader.
        assert_eq!(
            name(loader, &[loader, "--list"], comm),
            "ld-linux-x86-64.so.2"
        );
    }

    #[test]
    fn linker_is_no_loader() {
        let words = ["ld", "a.o"];
        assert_eq!(
            name("/usr/bin/x86_64-linux-gnu-ld.bfd", &words, "ld"),
            "x86_64-linux-gnu-ld.bfd"
        );
        assert_eq!(name("/usr/bin/ld-proxy", &words, "ld-proxy"), "ld-proxy");
    }
}
