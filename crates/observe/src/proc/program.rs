//! One program as a source: all of its processes added up.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use measure::observation::ServerFacts;

use super::counters::{Counters, ProcessKey, ProcessSums, uptime_ticks};
use super::diagnostics::Diagnostics;
use super::find::{FILES_MAX, Target, product_of, stat};
use super::inside::{Held, Inside, NotOpened};
use super::name::{loaded_path, program_name};
use super::sockets::{from_files, inodes_of, unix_paths};
use super::{Group, Listening, Root, Stat, row};
use crate::files::sha256;
use crate::gap::Gap;
use crate::members::MemberSum;
use crate::reading::{RawSample, Reading};
use crate::source::{Answer, Source};
use crate::stream::Allowance;

/// Threads that are looked at in each scrape, of all processes.
const THREADS_MAX: usize = 1_024;
/// Files of a program that are written to and watched, at most.
const WRITTEN_MAX: usize = 64;
/// Octets of a program that are hashed, at most.
const PROGRAM_OCTETS_MAX: u64 = 512 << 20;
/// The bit of a file's mode that lets its owner write.
const OWNER_WRITES: u32 = 0o200;
/// Octets of a configuration that are hashed, at most.
const CONFIGURATION_OCTETS_MAX: u64 = 16 << 20;

/// A running program.
pub(crate) struct Program {
    root: Root,
    target: Target,
    processes: Vec<(u32, Stat)>,
    /// Addresses at which its sockets wait for queries.
    addresses: BTreeSet<(bool, std::net::SocketAddr)>,
    /// Files that it had open for writing when it was found, each as a link in /proc.
    written: Vec<PathBuf>,
    /// How the kernel is asked for its sockets; none where only its files tell.
    diagnostics: Option<Diagnostics>,
    /// CPU time of each thread at the scrape before, nanoseconds, and when that was.
    threads: BTreeMap<u32, f64>,
    read_at: Option<std::time::Instant>,
    counted: ProcessSums,
    /// What the threads of each process have counted, those that have ended included.
    of_threads: BTreeMap<ProcessKey, OfThreads<MemberSum<u32>>>,
    /// Datagrams that had no room, of each socket, by its inode.
    udp_drops: MemberSum<u64>,
    /// Octets of each file that is written to, by its device and inode.
    octets_written: MemberSum<(u64, u64)>,
    /// What could not be known of it, and why.
    gaps: Vec<String>,
}

/// What the threads of a process count, by their numbers.
#[derive(Default)]
struct OfThreads<T> {
    run_queue_s: T,
    voluntary: T,
    involuntary: T,
}

/// What each thread has counted since it started.
type EachThread = OfThreads<BTreeMap<u32, f64>>;

/// All threads.
#[derive(Default)]
struct Threads {
    number: usize,
    has_run_queue: bool,
    cpu_ns: BTreeMap<u32, f64>,
}

impl Program {
    pub(crate) fn new(root: Root, target: Target) -> Program {
        Program {
            root,
            target,
            processes: Vec::new(),
            addresses: BTreeSet::new(),
            written: Vec::new(),
            diagnostics: None,
            threads: BTreeMap::new(),
            read_at: None,
            counted: ProcessSums::default(),
            of_threads: BTreeMap::new(),
            udp_drops: MemberSum::default(),
            octets_written: MemberSum::default(),
            gaps: Vec::new(),
        }
    }

    /// Looks for the processes, unless those that are known are still the same.
    fn find(&mut self) -> Result<(), Gap> {
        let is_same = |(pid, known): &(u32, Stat)| {
            stat(&self.root, *pid).is_some_and(|now| now.started == known.started)
        };
        if !self.processes.is_empty() && self.processes.iter().all(is_same) {
            return Ok(());
        }
        self.processes = self.target.processes(&self.root);
        self.addresses.clear();
        self.written.clear();
        for (pid, _) in &self.processes {
            let inodes = inodes_of(&self.root, *pid, FILES_MAX);
            let sockets = from_files(&self.root, *pid).into_iter();
            let own = sockets.filter(|socket| inodes.contains(&socket.inode));
            self.addresses.extend(own.map(|it| (it.is_tcp, it.address)));
            let left = WRITTEN_MAX - self.written.len();
            let written = written_by(&self.root, *pid).take(left);
            self.written.extend(written);
        }
        let first = self.processes.first().map(|(pid, _)| *pid);
        self.diagnostics = first.and_then(|pid| Diagnostics::of(&self.root, pid));
        match self.processes.is_empty() {
            true => Err(Gap::Gone(match &self.target {
                Target::Number(pid) => format!("there is no process {pid}"),
                Target::Name(name) => format!("there is no process `{name}`"),
                Target::Port(_, port) => format!("no process of this host serves port {port}"),
            })),
            false => Ok(()),
        }
    }

    /// The processes that were found.
    pub(crate) fn processes(&self) -> &[(u32, Stat)] {
        &self.processes
    }

    /// The profile of its product, by the program or the kernel's name of any of its processes.
    pub(crate) fn product(&self) -> Option<&'static crate::Profile> {
        self.processes.iter().find_map(|(pid, stat)| {
            let name = program_name(&self.root, *pid);
            (name.as_deref().and_then(product_of)).or_else(|| product_of(&stat.name))
        })
    }

    /// The name of its program.
    pub(crate) fn name(&self) -> Option<String> {
        let (pid, stat) = self.processes.first()?;
        let name = program_name(&self.root, *pid);
        Some(name.unwrap_or_else(|| stat.name.clone()))
    }

    /// Finds them now.
    pub(crate) fn found(root: Root, target: Target) -> Result<Program, Gap> {
        let mut program = Program::new(root, target);
        program.find()?;
        Ok(program)
    }

    /// TCP addresses at which it takes connections, without those at which it takes datagrams too.
    pub(crate) fn tcp_only(&self) -> Vec<std::net::SocketAddr> {
        let tcp = self.addresses.iter().filter(|(is_tcp, _)| *is_tcp);
        let alone = tcp.filter(|(_, address)| !self.addresses.contains(&(false, *address)));
        alone.map(|(_, address)| *address).collect()
    }

    /// Unix sockets that it has open: their paths, and in which file system they are.
    pub(crate) fn unix_sockets(&self) -> Vec<(Result<Inside, NotOpened>, String)> {
        let of_process = |(pid, known): &(u32, Stat)| {
            let held = Held::of(&self.root, *pid, known)?;
            let inside = held.inside();
            let text = self.root.text(&format!("proc/{pid}/net/unix"))?;
            let paths = unix_paths(&text, &inodes_of(&self.root, *pid, FILES_MAX));
            let folder = self
                .root
                .link(&format!("proc/{pid}/cwd"))
                .unwrap_or_default();
            let whole = |path: &String| {
                let near = path.strip_prefix("/proc/self/cwd/").unwrap_or(path);
                let whole = Path::new(&folder).join(near).display().to_string();
                (inside.clone(), whole)
            };
            let sockets: Vec<_> = paths.iter().map(whole).collect();
            held.is_there().then_some(sockets)
        };
        let of_processes = self.processes.iter().filter_map(of_process);
        of_processes.flatten().collect()
    }

    /// Counts what the threads of each process did; adds it to the counters of the processes.
    fn threads(&mut self, counters: &mut BTreeMap<ProcessKey, Counters>) -> Threads {
        let mut all = Threads::default();
        let mut of_threads = std::mem::take(&mut self.of_threads);
        of_threads.retain(|key, _| counters.contains_key(key));
        for (pid, known) in &self.processes {
            let key = (*pid, known.started);
            let mut each = EachThread::default();
            for thread in self.root.numbers(&format!("proc/{pid}/task")) {
                all.number += 1;
                if all.number <= THREADS_MAX {
                    let folder = format!("proc/{pid}/task/{thread}");
                    self.add_thread(&folder, thread, &mut all, &mut each);
                }
            }
            let Some(of_process) = counters.get_mut(&key) else {
                continue;
            };
            let sums = of_threads.entry(key).or_default();
            of_process.run_queue_s = sums.run_queue_s.add(each.run_queue_s);
            of_process.voluntary = sums.voluntary.add(each.voluntary);
            of_process.involuntary = sums.involuntary.add(each.involuntary);
        }
        self.of_threads = of_threads;
        all
    }

    fn add_thread(&self, folder: &str, thread: u32, all: &mut Threads, each: &mut EachThread) {
        let scheduled = self
            .root
            .text(&format!("{folder}/schedstat"))
            .unwrap_or_default();
        let mut cells = scheduled
            .split_ascii_whitespace()
            .map_while(|it| it.parse::<f64>().ok());
        if let (Some(cpu_ns), Some(waited_ns)) = (cells.next(), cells.next()) {
            all.has_run_queue = true;
            each.run_queue_s.insert(thread, waited_ns * 1e-9);
            all.cpu_ns.insert(thread, cpu_ns);
        }
        let status = self
            .root
            .text(&format!("{folder}/status"))
            .unwrap_or_default();
        let voluntary = row(&status, "voluntary_ctxt_switches");
        let involuntary = row(&status, "nonvoluntary_ctxt_switches");
        each.voluntary
            .extend(voluntary.map(|number| (thread, number)));
        each.involuntary
            .extend(involuntary.map(|number| (thread, number)));
    }

    /// How much of a CPU the busiest thread had since the scrape before.
    fn busiest(&mut self, cpu_ns: BTreeMap<u32, f64>) -> Option<f64> {
        let now = std::time::Instant::now();
        let before = self.read_at.replace(now);
        let known = std::mem::replace(&mut self.threads, cpu_ns);
        let wall_ns = now.duration_since(before?).as_nanos() as f64;
        let used = self.threads.iter();
        let used = used.filter_map(|(thread, now_ns)| Some(now_ns - known.get(thread)?));
        let most = used.reduce(f64::max)?;
        (wall_ns > 0.0).then(|| (most / wall_ns).max(0.0))
    }

    fn number_of_threads(&self) -> usize {
        let of_process = |(pid, _): &(u32, Stat)| self.root.numbers(&format!("proc/{pid}/task"));
        self.processes
            .iter()
            .map(of_process)
            .map(|it| it.len())
            .sum()
    }

    fn sum_of(&self, value: impl Fn(u32) -> Option<f64>) -> Option<f64> {
        let values = self.processes.iter().filter_map(|(pid, _)| value(*pid));
        values.reduce(|a, b| a + b)
    }

    fn sockets(&self) -> Vec<Listening> {
        let Some((pid, _)) = self.processes.first() else {
            return Vec::new();
        };
        let addresses = self.addresses.iter();
        let kinds: BTreeSet<(bool, bool)> = addresses
            .map(|(is_tcp, address)| (*is_tcp, address.is_ipv4()))
            .collect();
        let kinds: Vec<(bool, bool)> = kinds.into_iter().collect();
        let diagnostics = self.diagnostics.as_ref();
        let all = diagnostics.and_then(|it| it.listening(&kinds));
        let all = all.unwrap_or_else(|| from_files(&self.root, *pid));
        all.into_iter()
            .filter(|it| self.addresses.contains(&(it.is_tcp, it.address)))
            .collect()
    }

    fn add_sockets(&mut self, reading: &mut Reading) {
        let sockets = self.sockets();
        let udp = sockets.iter().filter(|it| !it.is_tcp);
        let drops: BTreeMap<u64, f64> = udp.map(|it| (it.inode, it.drops as f64)).collect();
        let drops = (!drops.is_empty()).then(|| self.udp_drops.add(drops));
        let sum = |is_tcp: bool, value: fn(&Listening) -> u64| {
            let of_kind = sockets.iter().filter(|it| it.is_tcp == is_tcp);
            let values: Vec<u64> = of_kind.map(value).collect();
            (!values.is_empty()).then(|| values.iter().sum::<u64>() as f64)
        };
        let most = sockets
            .iter()
            .filter(|it| !it.is_tcp)
            .map(|it| it.waiting)
            .max();
        for (name, value) in [
            ("udp.waiting", sum(false, |it| it.waiting)),
            ("udp.waiting_most", most.map(|octets| octets as f64)),
            ("udp.drops", drops),
            ("tcp.waiting", sum(true, |it| it.waiting)),
        ] {
            reading
                .samples
                .extend(value.map(|value| RawSample::plain(name, value)));
        }
        reading.samples.extend(rooms(&sockets));
        // Of the whole network namespace: the kernel counts them together.
        let Some((pid, _)) = self.processes.first() else {
            return;
        };
        let text = self
            .root
            .text(&format!("proc/{pid}/net/netstat"))
            .unwrap_or_default();
        for (name, wanted) in [
            ("listen.overflows", "ListenOverflows"),
            ("listen.drops", "ListenDrops"),
        ] {
            let value = super::host::counter(&text, "TcpExt", wanted);
            reading
                .samples
                .extend(value.map(|value| RawSample::plain(name, value)));
        }
    }
}

impl Source for Program {
    fn read(&mut self, allowance: &Allowance) -> Result<Answer, Gap> {
        self.find()?;
        let mut reading = Reading::default();
        let stats: Vec<(u32, Stat)> = (self.processes.iter())
            .filter_map(|(pid, _)| Some((*pid, stat(&self.root, *pid)?)))
            .collect();
        let each = stats.iter();
        let mut counters: BTreeMap<ProcessKey, Counters> = each
            .map(|(pid, it)| ((*pid, it.started), it.into()))
            .collect();
        let threads = self.threads(&mut counters);
        let scheduled = threads.has_run_queue;
        let uptime_ticks = uptime_ticks(&self.root);
        let sums = self.counted.add(counters, uptime_ticks);
        let status =
            |pid: u32, wanted: &str| row(&self.root.text(&format!("proc/{pid}/status"))?, wanted);
        // The size of its table of file descriptors.
        let files = |pid: u32| {
            let places = status(pid, "FDSize").unwrap_or(f64::MAX);
            self.root.count(&format!("proc/{pid}/fd"), places)
        };
        for (name, value) in [
            ("cpu.user", Some(sums.user_s)),
            ("cpu.system", Some(sums.system_s)),
            (
                "memory",
                self.sum_of(|pid| Some(status(pid, "VmRSS")? * 1_024.0)),
            ),
            ("files", self.sum_of(files)),
            ("files.written", self.written()),
            (
                "processes.stopped",
                Some(stats.iter().filter(|(_, it)| it.is_stopped).count() as f64),
            ),
            ("faults.major", Some(sums.major_faults)),
            ("threads", Some(threads.number as f64)),
            ("processes", Some(self.processes.len() as f64)),
            ("switches.voluntary", Some(sums.voluntary)),
            ("switches.involuntary", Some(sums.involuntary)),
            ("run_queue", scheduled.then_some(sums.run_queue_s)),
        ] {
            reading
                .samples
                .extend(value.map(|value| RawSample::plain(name, value)));
        }
        if let Some(value) = self.busiest(threads.cpu_ns) {
            reading
                .samples
                .push(RawSample::plain("cpu.busiest_thread", value));
        }
        self.add_sockets(&mut reading);
        let first = self.processes.first().map(|(pid, _)| *pid);
        if let Some(group) = first.and_then(|pid| Group::of(&self.root, pid)) {
            reading.samples.extend(group.samples(&self.root));
        }
        allowance.left()?;
        Ok(Answer { reading, octets: 0 })
    }

    fn facts(&mut self) -> ServerFacts {
        if self.find().is_err() {
            return ServerFacts::default();
        }
        let first = self.processes.first();
        let held = first.and_then(|(pid, known)| Some((*pid, Held::of(&self.root, *pid, known)?)));
        let Some((pid, held)) = held else {
            return ServerFacts::default();
        };
        let inside = held.inside();
        let loaded = loaded_path(&self.root, pid).map(|path| Named::at(path, &inside));
        // The link leads to the program even if its file was replaced.
        let exe = || Named {
            path: PathBuf::from(
                self.root
                    .link(&format!("proc/{pid}/exe"))
                    .unwrap_or_default(),
            ),
            opened: held.program(),
        };
        let binary = loaded.unwrap_or_else(exe);
        let configuration = self.configuration(pid, &inside);
        let name = self.name();
        let product = self.product().map(|it| it.product.to_owned());
        let facts = ServerFacts {
            process_id: Some(pid),
            binary: binary.shown(),
            configuration: configuration.as_ref().and_then(Named::shown),
            threads: Some(self.number_of_threads() as u64),
            cpus: self.cpus(),
            quota_cpus: Group::of(&self.root, pid).and_then(|it| it.quota_cpus(&self.root)),
            ..ServerFacts::default()
        };
        // Otherwise some of it may be that of another process.
        if !held.is_there() {
            return ServerFacts::default();
        }
        let is_known = product.is_some();
        let gaps = &mut self.gaps;
        gaps.clear();
        ServerFacts {
            product: product.or(name),
            binary_sha256: binary.sha256("program", PROGRAM_OCTETS_MAX, gaps),
            // `-c` of another product may be anything.
            configuration_sha256: configuration
                .filter(|it| is_known || it.opened.is_ok())
                .and_then(|it| it.sha256("configuration", CONFIGURATION_OCTETS_MAX, gaps)),
            ..facts
        }
    }

    fn gaps(&mut self) -> Vec<String> {
        std::mem::take(&mut self.gaps)
    }
}

/// A file that a process named, and what came of opening it.
struct Named {
    path: PathBuf,
    opened: Result<File, NotOpened>,
}

impl Named {
    /// The file at a path in the file system that the process sees.
    fn at(path: PathBuf, inside: &Result<Inside, NotOpened>) -> Named {
        let opened = match inside {
            Ok(inside) => inside.file(&path),
            Err(why) => Err(why.clone()),
        };
        Named { path, opened }
    }

    fn shown(&self) -> Option<String> {
        let shown = self.path.display().to_string();
        (!shown.is_empty()).then_some(shown)
    }

    /// Its hash, or else why there is none.
    fn sha256(self, what: &str, octets_max: u64, gaps: &mut Vec<String>) -> Option<String> {
        let shown = self.shown();
        let why = match self.opened {
            Ok(file) => match sha256(file, octets_max) {
                Some(hash) => return Some(hash),
                None => format!("it cannot be read, or has more than {octets_max} bytes"),
            },
            Err(why) => why.to_string(),
        };
        let named = shown.map(|path| format!(" `{path}`"));
        let named = named.unwrap_or_default();
        gaps.push(format!("its {what}{named} is not hashed: {why}"));
        None
    }
}

impl Program {
    /// CPUs that any of its processes may run on: workers may be bound to other ones than the
    /// process that started them.
    fn cpus(&self) -> Option<String> {
        let of_process = |(pid, _): &(u32, Stat)| {
            let status = self.root.text(&format!("proc/{pid}/status"))?;
            let mut lines = status.lines();
            let list = lines.find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
            Some(list.trim().to_owned())
        };
        let lists: Vec<String> = self.processes.iter().filter_map(of_process).collect();
        joined_cpus(&lists)
    }

    /// How long the files are, together, that it had open for writing when it was found: a log
    /// grows. None if there are none, or if this user may not see them.
    fn written(&mut self) -> Option<f64> {
        let found = self
            .written
            .iter()
            .filter_map(|path| fs::metadata(path).ok());
        // Standard output and standard error are often one.
        let each: BTreeMap<(u64, u64), f64> = found
            .map(|file| ((file.dev(), file.ino()), file.len() as f64))
            .collect();
        (!each.is_empty()).then(|| self.octets_written.add(each))
    }

    /// The file that its command line names as its configuration; PowerDNS names a folder.
    fn configuration(&self, pid: u32, inside: &Result<Inside, NotOpened>) -> Option<Named> {
        let text = self.root.text(&format!("proc/{pid}/cmdline"))?;
        let words: Vec<&str> = text.split('\0').collect();
        let folder = self
            .root
            .link(&format!("proc/{pid}/cwd"))
            .unwrap_or_default();
        let folder = Path::new(&folder);
        let names = ["-c", "-C", "-f", "-conf", "--config", "--conf"];
        if let Some(file) = argument(&words, &names) {
            return Some(Named::at(folder.join(file), inside));
        }
        let folder = folder.join(argument(&words, &["--config-dir"])?);
        let names = ["pdns.conf", "recursor.yml", "recursor.conf"];
        let files = names.into_iter();
        let mut files = files.map(|name| Named::at(folder.join(name), inside));
        files.find(|file| !matches!(file.opened, Err(NotOpened::Missing)))
    }
}

/// What one of these arguments is given, as `NAME VALUE` or `NAME=VALUE`.
fn argument<'a>(words: &[&'a str], names: &[&str]) -> Option<&'a str> {
    words.iter().enumerate().find_map(|(at, word)| {
        let next = || words.get(at + 1).copied().unwrap_or_default();
        let (name, value) = word.split_once('=').unwrap_or_else(|| (word, next()));
        (names.contains(&name) && !value.is_empty()).then_some(value)
    })
}

/// The CPUs of lists such as `0-3,8`, as one such list; none without a list that can be read.
fn joined_cpus(lists: &[String]) -> Option<String> {
    let ranges = lists.iter().flat_map(|list| list.split(','));
    let ranges = ranges.map(|range| range.split_once('-').unwrap_or((range, range)));
    let ranges: Option<Vec<(u32, u32)>> = ranges
        .map(|(first, last)| Some((first.parse().ok()?, last.parse().ok()?)))
        .collect();
    let mut ranges = ranges?;
    ranges.sort_unstable();
    let mut joined: Vec<(u32, u32)> = Vec::new();
    for (first, last) in ranges {
        match joined
            .last_mut()
            .filter(|known| first <= known.1.saturating_add(1))
        {
            Some(known) => known.1 = known.1.max(last),
            None => joined.push((first, last)),
        }
    }
    let shown = |(first, last): &(u32, u32)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    let joined: Vec<String> = joined.iter().map(shown).collect();
    (!joined.is_empty()).then(|| joined.join(","))
}

/// What the sockets of each port have room for, that of the smallest.
fn rooms(sockets: &[Listening]) -> impl Iterator<Item = RawSample> {
    let mut rooms: BTreeMap<(bool, u16), u64> = BTreeMap::new();
    for socket in sockets {
        if let Some(room) = socket.room {
            let least = rooms.entry((socket.is_tcp, socket.address.port()));
            least
                .and_modify(|least| *least = room.min(*least))
                .or_insert(room);
        }
    }
    rooms.into_iter().map(|((is_tcp, port), room)| {
        let name = if is_tcp { "tcp.room" } else { "udp.room" };
        RawSample {
            labels: vec![("port".to_owned(), port.to_string())],
            ..RawSample::plain(name, room as f64)
        }
    })
}

/// Links to the regular files that a process has open for writing.
fn written_by(root: &Root, pid: u32) -> impl Iterator<Item = PathBuf> {
    let files = root.numbers(&format!("proc/{pid}/fd")).into_iter();
    let paths = files
        .take(FILES_MAX)
        .map(move |file| root.path(&format!("proc/{pid}/fd/{file}")));
    // The link has the rights with which the file was opened, and leads to it.
    paths.filter(|path| {
        let link = fs::symlink_metadata(path);
        let is_for_writing = link.is_ok_and(|link| link.mode() & OWNER_WRITES != 0);
        is_for_writing && fs::metadata(path).is_ok_and(|file| file.is_file())
    })
}

/// A control group alone.
pub(crate) struct GroupSource {
    root: Root,
    group: Group,
}

impl GroupSource {
    /// That of a process, or that at a path below /sys/fs/cgroup.
    pub(crate) fn new(root: Root, place: &str) -> Result<GroupSource, String> {
        let group = match place.contains('/') && !place.starts_with(':') {
            true => Group::at(place),
            false => {
                let target = Target::parse(place)?;
                let found = target.processes(&root);
                let first = found.first().map(|(pid, _)| *pid);
                let group = first.and_then(|pid| Group::of(&root, pid));
                group.ok_or_else(|| format!("there is no process `{place}`"))?
            }
        };
        Ok(GroupSource { root, group })
    }
}

impl Source for GroupSource {
    fn read(&mut self, _allowance: &Allowance) -> Result<Answer, Gap> {
        let samples = self.group.samples(&self.root);
        if samples.is_empty() {
            return Err(Gap::Gone("there is no such control group".to_owned()));
        }
        let reading = Reading {
            samples,
            ..Reading::default()
        };
        Ok(Answer { reading, octets: 0 })
    }

    fn facts(&mut self) -> ServerFacts {
        ServerFacts {
            quota_cpus: self.group.quota_cpus(&self.root),
            ..ServerFacts::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{argument, joined_cpus};

    #[test]
    fn cpus_of_several_processes_are_one_list() {
        let joined = |lists: &[&str]| {
            let lists: Vec<String> = lists.iter().map(|&list| list.to_owned()).collect();
            joined_cpus(&lists)
        };
        assert_eq!(joined(&["0-3,8"]).as_deref(), Some("0-3,8"));
        assert_eq!(joined(&["0", "1", "5-7", "6"]).as_deref(), Some("0-1,5-7"));
        assert_eq!(joined(&["x"]), None);
        assert_eq!(joined(&[]), None);
    }

    #[test]
    fn arguments_are_given_behind_a_name_or_with_it() {
        let words = ["named", "-g", "-c", "a.conf", "--config=b", "--config-dir="];
        assert_eq!(argument(&words, &["-c"]), Some("a.conf"));
        assert_eq!(argument(&words, &["--conf", "--config"]), Some("b"));
        assert_eq!(argument(&words, &["--config-dir"]), None);
        assert_eq!(argument(&words[..3], &["-c"]), None);
    }
}
