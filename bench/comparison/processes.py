"""Processes pinned to one core, with what they cost: CPU time and memory.

CPU time is user plus system of the whole process, start-up included, from wait4. Memory is VmHWM
read while it runs: ru_maxrss starts at the size of the process that forked it.
"""

import ipaddress
import os
import resource
import signal
import socket
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

# How often a running process is looked at; each look costs some 0.1 ms on some core.
LOOK_SECONDS = 0.1


@dataclass
class Ended:
    """What one finished process cost."""

    status: int
    cpu_seconds: float
    wall_seconds: float
    rss_octets_max: int
    # (seconds since the start, anonymous octets), only if asked for.
    anonymous: list = field(default_factory=list)


def spawn(command, cpu, output, environment=None):
    """Starts a process on one core that dies with this script; all it prints goes to `output`."""

    def prepare():
        os.sched_setaffinity(0, {cpu})
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

    return subprocess.Popen(
        ["setpriv", "--pdeathsig", "KILL", "--", *command],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        preexec_fn=prepare,
        env=environment,
    )


def run(command, cpu, output_path, seconds_max, watch_anonymous=False):
    """Runs a process to its end, or kills it after `seconds_max`."""
    started = time.monotonic()
    with open(output_path, "wb") as output:
        process = spawn(command, cpu, output)
    rss_octets_max, anonymous = 0, []
    try:
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            elapsed = time.monotonic() - started
            if pid:
                break
            family = with_descendants(process.pid)
            rss_octets = sum(status_octets(member, "VmHWM") for member in family)
            rss_octets_max = max(rss_octets_max, rss_octets)
            if watch_anonymous:
                anonymous.append((elapsed, sum(anonymous_octets(member) for member in family)))
            if elapsed > seconds_max:
                process.send_signal(signal.SIGKILL)
            time.sleep(LOOK_SECONDS)
    except BaseException:
        process.kill()
        process.wait()
        raise
    # Tell Popen that the process was waited for.
    process.returncode = os.waitstatus_to_exitcode(status)
    return Ended(
        status=process.returncode,
        cpu_seconds=usage.ru_utime + usage.ru_stime,
        wall_seconds=elapsed,
        rss_octets_max=rss_octets_max,
        anonymous=anonymous,
    )


def pin_all_threads(pid, cpu):
    """Moves every thread of a running process to one core; for programs that pin themselves."""
    for _ in range(3):
        for task in Path(f"/proc/{pid}/task").iterdir():
            os.sched_setaffinity(int(task.name), {cpu})
        time.sleep(0.05)


def stop(process):
    """Kills and reaps a process that `spawn` started."""
    process.kill()
    process.wait()


def status_octets(pid, name):
    """One size of /proc/PID/status in octets; 0 once the process has ended."""
    return kibibytes_of(f"/proc/{pid}/status", name) * 1024


def anonymous_octets(pid):
    """Memory of its own, without file mappings; 0 once the process has ended."""
    return kibibytes_of(f"/proc/{pid}/smaps_rollup", "Anonymous") * 1024


def kibibytes_of(path, name):
    try:
        for line in Path(path).read_text().splitlines():
            if line.startswith(name + ":"):
                return int(line.split()[1])
    except (OSError, ProcessLookupError):
        pass
    return 0


def with_descendants(pid):
    """The process and those that it and its children have started, as far as they are there."""
    family = [pid]
    for member in family:
        try:
            tasks = list(Path(f"/proc/{member}/task").iterdir())
            children = [(task / "children").read_text().split() for task in tasks]
        except OSError:
            continue
        family += [int(child) for each in children for child in each]
    return family


def cpu_seconds(pid):
    """CPU time that a running process and its children have used, all their threads together."""
    ticks = 0
    for member in with_descendants(pid):
        fields = Path(f"/proc/{member}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def free_port():
    """A port that is free for UDP and TCP on 127.0.0.1 now."""
    for _ in range(100):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
            udp.bind(("127.0.0.1", 0))
            port = udp.getsockname()[1]
            with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as tcp:
                try:
                    tcp.bind(("127.0.0.1", port))
                    return port
                except OSError:
                    continue
    raise SystemExit("error: no port is free for UDP and TCP on 127.0.0.1")


@dataclass
class Sources:
    """Addresses of 127.0.0.0/8 that one run's load comes from."""

    first: str
    prefix: str


# How many addresses `Sources` are; each gives 28,232 ports unless the range was changed.
SOURCES = 16


class SourceAddresses:
    """Fresh source addresses for each run.

    Connections of an earlier run stay in TIME_WAIT for a minute and take ports of its address:
    dnsperf dies without a result when they are used up. Starts at a place that moves with time,
    for scripts run one after the other.
    """

    def __init__(self):
        self.number = int(time.time())

    def next(self):
        self.number = (self.number + 1) % 200_000
        first = ipaddress.IPv4Address("127.64.0.0") + self.number * SOURCES
        return Sources(first=str(first), prefix=f"{first}/28")


def udp_receive_errors():
    """Datagrams that the kernel dropped because a receive buffer was full, whole namespace."""
    names, values = [
        line.split()
        for line in Path("/proc/net/snmp").read_text().splitlines()
        if line.startswith("Udp:")
    ]
    return int(values[names.index("RcvbufErrors")])
