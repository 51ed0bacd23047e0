"""The load generators: their command lines and how their results are read.

All that depends on throng's flags and run record is in `throng_command` and `read_record`.
"""

import json
import re
import subprocess
from dataclasses import dataclass, field

from . import processes

# Kernel buffers of dnsperf's sockets, in KiB.
DNSPERF_BUFFER_KIBIBYTES = 2048

# dnsperf spreads its clients over threads of at most 256 sockets.
DNSPERF_SOCKETS_PER_THREAD = 256

# What dnsperf calls the transports that it has.
DNSPERF_MODES = {"udp": "udp", "tcp": "tcp", "dot": "dot", "doh2": "doh"}

ENCRYPTED = {"dot", "doh2", "doq", "doh3"}

# What a run may take beyond its duration: connecting, draining, writing the record.
SPARE_SECONDS = 60


@dataclass
class Load:
    """One run as asked for."""

    transport: str
    address: str
    port: int
    names: str
    seconds: int
    sources: processes.Sources
    # What the server's certificate is verified against; None for any certificate.
    certificate: str | None = None
    # Words before the command, for one that runs in another network namespace.
    within: tuple = ()
    clients: int = 200
    # None for open loop.
    outstanding: int | None = 1000
    rate_qps: int | None = None
    # Queries of one client that throng has due together.
    burst: int = 1
    offload: bool = True
    warmup_ms: int = 0
    # 0 for connections that are opened and closed; None for as many queries as there are.
    queries_per_connection: int | None = None
    resume: bool = False
    # Sending threads of dnsperf; as few as its clients need if None.
    threads: int | None = None
    # When each client of throng asks, in its notation, or the script that says so.
    per_client: str | None = None
    script: str | None = None
    # What throng sends by with AF_XDP; None for the kernel's sockets.
    interface: str | None = None
    # throng's workers; None for as many as it thinks right.
    workers: int | None = 1


@dataclass
class Measured:
    """One run as it came out; counts are of queries, or of connections where that is the load."""

    answered: int
    sent: int
    lost: int
    seconds: float
    cpu_seconds: float
    wall_seconds: float
    rss_octets_max: int
    server_cpu_seconds: float
    anonymous: list = field(default_factory=list)
    # Queries scheduled and the window in which they were, for open loop.
    offered: int | None = None
    verdict: str = ""
    # By how much queries left later than they were due.
    lateness_p99_ms: float = 0.0
    # CPU of the workers in the measured window only: without start-up and connection set-up.
    window_cpu_seconds: float | None = None
    # Connections that became usable, those of them that resumed a session, and those that failed.
    connections: int | None = None
    resumed: int | None = None
    connections_failed: int | None = None
    # Connections open at the end.
    connections_open: int | None = None

    @property
    def window_us_per_answer(self):
        return self.window_cpu_seconds / self.answered * 1e6

    @property
    def qps(self):
        return self.answered / self.seconds

    @property
    def cpu_us_per_answer(self):
        return self.cpu_seconds / self.answered * 1e6

    @property
    def server_us_per_answer(self):
        return self.server_cpu_seconds / self.answered * 1e6

    @property
    def connections_per_second(self):
        return self.connections / self.seconds

    @property
    def connections_per_cpu_second(self):
        return self.connections / self.cpu_seconds

    @property
    def cpu_us_per_connection(self):
        return self.cpu_seconds / self.connections * 1e6

    @property
    def server_us_per_connection(self):
        return self.server_cpu_seconds / self.connections * 1e6


class RunFailed(Exception):
    """A generator gave no result."""


def dnsperf_command(load):
    command = ["dnsperf", "-f", "inet", "-m", DNSPERF_MODES[load.transport], "-s", load.address]
    command += ["-p", str(load.port), "-d", load.names]
    if not load.within:
        command += ["-a", load.sources.first]
    command += ["-b", str(DNSPERF_BUFFER_KIBIBYTES), "-t", "1", "-l", str(load.seconds)]
    command += ["-c", str(load.clients)]
    threads = load.threads or -(-load.clients // DNSPERF_SOCKETS_PER_THREAD)
    command += ["-T", str(threads)]
    if load.transport == "doh2":
        command += ["-O", "doh-uri=https://localhost/dns-query", "-O", "doh-method=POST"]
    if load.queries_per_connection:
        command += ["-O", f"num-queries-per-conn={load.queries_per_connection}"]
    if load.rate_qps is not None:
        command += ["-Q", str(load.rate_qps)]
    if load.outstanding is not None:
        command += ["-q", str(load.outstanding)]
    return command


def throng_command(throng, load, cpu, record):
    command = [str(throng), "run", "--server", f"{load.address}:{load.port}"]
    command += ["--transport", load.transport, "--names", load.names]
    command += ["--clients", str(load.clients), "--duration", f"{load.seconds}s"]
    command += ["--timeout", "1s", "--cpus", str(cpu)]
    if load.workers:
        command += ["--workers", str(load.workers)]
    if load.per_client:
        command += ["--per-client", load.per_client]
    if load.script:
        command += ["--script", load.script]
    command += ["--format", "json", "--record", str(record)]
    if load.queries_per_connection is not None:
        command += ["--queries-per-connection", str(load.queries_per_connection)]
        sources = load.sources.prefix
    else:
        sources = load.sources.first
    if not load.within:
        command += ["--local-address", sources]
    if load.outstanding is not None and load.queries_per_connection != 0:
        command += ["--outstanding", str(load.outstanding)]
    if load.rate_qps is not None:
        command += ["--rate", str(load.rate_qps)]
    if load.burst > 1:
        command += ["--burst", str(load.burst)]
    if load.warmup_ms:
        command += ["--warmup", f"{load.warmup_ms}ms"]
    if load.transport in ENCRYPTED:
        trust = ["--tls-insecure"]
        if load.certificate:
            trust = ["--tls-ca", load.certificate, "--tls-name", "localhost"]
        command += trust
    if load.resume:
        command += ["--tls-resume", "always"]
    if load.interface:
        command += ["--driver", "xdp", "--interface", load.interface]
    if not load.offload:
        command += ["--no-offload"]
    return command


def churn_command(program, load):
    """The C loop: one query a connection over TCP."""
    command = [str(program), "ask", str(load.port), str(load.seconds), str(load.clients)]
    return command + [load.sources.first, str(processes.SOURCES)]


def datagrams_command(program, load):
    """The C pair's asking half: UDP without offload."""
    command = [str(program), "ask", str(load.port), str(load.seconds), load.sources.first]
    return command + [str(load.clients), str(load.outstanding)]


def kxdpgun_command(program, load, cpu):
    """UDP, or one query a connection over QUIC, from one core and one queue."""
    command = [*program, "-t", str(load.seconds), "-Q", str(load.rate_qps), "-i", load.names]
    if load.transport == "doq":
        command += ["-U"]
    return command + ["-F", f"{cpu}s1", "-p", str(load.port), load.address]


def number_after(tool, label, text):
    found = re.search(rf"{label}:?\s+([0-9.]+)", text)
    if not found:
        raise RunFailed(f"{tool} printed no `{label}`")
    return float(found[1])


def read_dnsperf(text):
    """Counts from dnsperf's statistics."""
    number = {
        label: number_after("dnsperf", label, text)
        for label in ("Queries completed", "Queries sent", "Queries lost", r"Run time \(s\)")
    }
    return {
        "answered": int(number["Queries completed"]),
        "sent": int(number["Queries sent"]),
        "lost": int(number["Queries lost"]),
        "seconds": number[r"Run time \(s\)"],
    }


def read_churn(text):
    """Counts that the C loop printed."""
    number = {label: number_after("churn", label, text) for label in ("connections", "failed")}
    done, failed = int(number["connections"]), int(number["failed"])
    seconds = number_after("churn", "seconds", text)
    return {"answered": done, "sent": done + failed, "lost": failed, "seconds": seconds}


def read_datagrams(text):
    """Counts that the C pair's asking half printed."""
    number = {label: number_after("datagrams", label, text) for label in ("answered", "lost")}
    answered, lost = int(number["answered"]), int(number["lost"])
    seconds = number_after("datagrams", "seconds", text)
    return {"answered": answered, "sent": answered + lost, "lost": lost, "seconds": seconds}


def read_kxdpgun_udp(text):
    """As `read_kxdpgun`, without connections."""
    labels = ("total queries", "total replies", "duration")
    sent, replies, seconds = (number_after("kxdpgun", label, text) for label in labels)
    return {
        "answered": int(replies),
        "sent": int(sent),
        "lost": int(sent - replies),
        "seconds": seconds,
    }


def read_kxdpgun(text):
    """Counts from kxdpgun's statistics; the rate is of replies in the time that it sent."""
    number = {
        label: number_after("kxdpgun", label, text)
        for label in ("total initials", "total handshakes", "total replies", "duration")
    }
    sent, replies = int(number["total initials"]), int(number["total replies"])
    return {
        "answered": replies,
        "sent": sent,
        "lost": sent - replies,
        "seconds": number["duration"],
        "connections": min(int(number["total handshakes"]), replies),
    }


def read_record(text):
    """Counts from a run record."""
    try:
        record = json.loads(text)
        counts = record["total"]["counts"]
        seconds = record["measured_ns"] / 1e9
        not_sent = sum(counts["not_sent"].values())
        connections = counts["connections"]
        # Responses of the drain were paid for too, but are outside the window for rates: scale
        # the window so that answered / seconds is the achieved QPS of the record.
        in_window = record["responses_in_window"]
        scale = counts["responses"] / in_window if in_window else 1
        return {
            "answered": counts["responses"],
            "sent": counts["sent"],
            "lost": counts["timeouts"] + counts["connection_losses"] + not_sent,
            "seconds": seconds * scale,
            "offered": counts["offered"] / seconds,
            "verdict": record["verdict"]["limit"],
            "lateness_p99_ms": lateness_p99_ms(record),
            "window_cpu_seconds": sum(worker["cpu_ns"] for worker in record["workers"]) / 1e9,
            "connections": usable(connections, record["scenario"]["transport"]),
            "resumed": connections["handshakes"]["resumed"],
            "connections_failed": sum(failures(connections["failed"])),
            "connections_open": record["total"]["connections_open"],
        }
    except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
        raise RunFailed(f"the run record has not what was expected: {error!r}") from error


def lateness_p99_ms(record):
    """From the histogram of the record: [index, count] pairs in the layout that it names."""
    return percentile_ns(record["total"]["distributions"]["send_lateness"], 0.99) / 1e6


def percentile_ns(histogram, share):
    """The least upper bound of its values that `share` of them keep; 0 without values.

    `buckets` holds distances between non-empty buckets and their counts in turn; the layout has 128
    buckets a power of two.
    """
    if histogram["layout"] != "log-linear-128-ns-2^36":
        raise RunFailed(f"a histogram of layout {histogram['layout']}")
    index, seen, wanted = 0, 0, share * histogram["count"]
    for distance, count in zip(histogram["buckets"][::2], histogram["buckets"][1::2]):
        index, seen = index + distance, seen + count
        if seen >= wanted:
            break
    shift = max((index >> 7) - 1, 0)
    low = index if index < 128 else (128 + (index & 127)) << shift
    return low + (1 << shift) - 1 if histogram["count"] else 0


def usable(connections, transport):
    """Connections that could carry a query: for encrypted ones the handshake has to be over."""
    if transport in ENCRYPTED:
        return connections["handshakes"]["full"] + connections["handshakes"]["resumed"]
    return connections["established"]


def failures(failed):
    """Every count of a group; some are counts by code."""
    for value in failed.values():
        if isinstance(value, dict):
            yield from failures(value)
        elif isinstance(value, int):
            yield value


@dataclass
class Programs:
    """Where the programs are that are not looked up by name."""

    throng: object
    churn: object = None
    datagrams: object = None
    # The example of crate responder; measures the library, if it was built.
    handshakes: object = None
    kxdpgun: tuple = ()
    knotd: tuple = ()


def command_and_reader(tool, programs, load, cpu, record):
    """The command line of one run, and what reads its counts from what it printed."""
    if tool == "dnsperf":
        return dnsperf_command(load), read_dnsperf
    if tool == "C loop":
        return churn_command(programs.churn, load), read_churn
    if tool == "C datagrams":
        return datagrams_command(programs.datagrams, load), read_datagrams
    if tool == "kxdpgun":
        read = read_kxdpgun if load.transport == "doq" else read_kxdpgun_udp
        return kxdpgun_command(programs.kxdpgun, load, cpu), read
    return throng_command(programs.throng, load, cpu, record), lambda _: read_record(
        record.read_text()
    )


def run(tool, programs, load, target, cpu, raw, watch_anonymous=False):
    """Runs one generator once; `raw` is the path for its results, without a suffix."""
    printed = raw.with_suffix(".txt")
    command, read = command_and_reader(tool, programs, load, cpu, raw.with_suffix(".json"))
    server_before = target.cpu_seconds()
    seconds_max = load.seconds + SPARE_SECONDS
    command = [*load.within, *command]
    ended = processes.run(command, cpu, printed, seconds_max, watch_anonymous)
    server_cpu_seconds = target.cpu_seconds() - server_before
    text = printed.read_text(errors="replace")
    if ended.status != 0:
        last = text.strip().splitlines()[-1:] or ["nothing printed"]
        raise RunFailed(f"{tool} ended with status {ended.status}: {last[0]}")
    counts = read(text)
    if load.queries_per_connection == 1:
        # The others do not tell how many connections they opened.
        counts.setdefault("connections", counts["answered"])
    if counts["answered"] == 0 and load.queries_per_connection != 0:
        raise RunFailed(f"{tool} got no response")
    if load.queries_per_connection is not None and not counts["connections"]:
        raise RunFailed(f"{tool} got no connection")
    return Measured(
        **counts,
        cpu_seconds=ended.cpu_seconds,
        wall_seconds=ended.wall_seconds,
        rss_octets_max=ended.rss_octets_max,
        server_cpu_seconds=server_cpu_seconds,
        anonymous=ended.anonymous,
    )


def dnsperf_version():
    printed = subprocess.run(["dnsperf", "-h"], capture_output=True, text=True, check=False)
    found = re.search(r"Version (\S+)", printed.stdout + printed.stderr)
    return found[1] if found else "unknown"
