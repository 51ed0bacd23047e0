"""The two load generators: their command lines and how their results are read.

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

# What a run may take beyond its duration: connecting, draining, writing the record.
SPARE_SECONDS = 60


@dataclass
class Load:
    """One run as asked for."""

    transport: str
    port: int
    names: str
    seconds: int
    source: str
    clients: int = 200
    # None for open loop.
    outstanding: int | None = 1000
    rate_qps: int | None = None
    offload: bool = True


@dataclass
class Measured:
    """One run as it came out; counts are of queries."""

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
    # CPU of the workers in the measured window only: without start-up and connection set-up.
    window_cpu_seconds: float | None = None

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


class RunFailed(Exception):
    """A generator gave no result."""


def dnsperf_command(load):
    command = ["dnsperf", "-f", "inet", "-m", load.transport, "-s", "127.0.0.1"]
    command += ["-p", str(load.port), "-a", load.source, "-d", load.names]
    command += ["-b", str(DNSPERF_BUFFER_KIBIBYTES), "-t", "1", "-l", str(load.seconds)]
    command += ["-c", str(load.clients)]
    threads = -(-load.clients // DNSPERF_SOCKETS_PER_THREAD)
    command += ["-T", str(threads)]
    if load.rate_qps is not None:
        command += ["-Q", str(load.rate_qps)]
    if load.outstanding is not None:
        command += ["-q", str(load.outstanding)]
    return command


def throng_command(throng, load, record):
    command = [str(throng), "run", "--server", f"127.0.0.1:{load.port}"]
    command += ["--transport", load.transport, "--names", load.names]
    command += ["--clients", str(load.clients), "--duration", f"{load.seconds}s"]
    command += ["--timeout", "1s", "--workers", "1", "--cpus", "0"]
    command += ["--local-address", load.source, "--format", "json", "--record", str(record)]
    if load.outstanding is not None:
        command += ["--outstanding", str(load.outstanding)]
    if load.rate_qps is not None:
        command += ["--rate", str(load.rate_qps)]
    if load.transport == "dot":
        command += ["--tls-insecure"]
    if not load.offload:
        command += ["--no-offload"]
    return command


def read_dnsperf(text):
    """Counts from dnsperf's statistics."""

    def number(label):
        found = re.search(rf"{label}:\s+([0-9.]+)", text)
        if not found:
            raise RunFailed(f"dnsperf printed no `{label}`")
        return float(found[1])

    return {
        "answered": int(number("Queries completed")),
        "sent": int(number("Queries sent")),
        "lost": int(number("Queries lost")),
        "seconds": number(r"Run time \(s\)"),
    }


def read_record(text):
    """Counts from a run record."""
    try:
        record = json.loads(text)
        counts = record["total"]["counts"]
        seconds = record["measured_ns"] / 1e9
        not_sent = sum(counts["not_sent"].values())
        # Responses of the drain were paid for too, but are outside the window for rates: scale
        # the window so that answered / seconds is the achieved QPS of the record.
        in_window = record["responses_in_window"]
        return {
            "answered": counts["responses"],
            "sent": counts["sent"],
            "lost": counts["timeouts"] + counts["connection_losses"] + not_sent,
            "seconds": seconds * counts["responses"] / in_window,
            "offered": counts["offered"] / seconds,
            "verdict": record["verdict"]["limit"],
            "window_cpu_seconds": sum(worker["cpu_ns"] for worker in record["workers"]) / 1e9,
        }
    except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
        raise RunFailed(f"the run record has not what was expected: {error!r}") from error


def run(tool, throng, load, target, cpu, raw, watch_anonymous=False):
    """Runs one generator once; `raw` is the path for its results, without a suffix."""
    printed = raw.with_suffix(".txt")
    record = raw.with_suffix(".json")
    if tool == "dnsperf":
        command = dnsperf_command(load)
    else:
        command = throng_command(throng, load, record)
    server_before = target.cpu_seconds()
    seconds_max = load.seconds + SPARE_SECONDS
    ended = processes.run(command, cpu, printed, seconds_max, watch_anonymous)
    server_cpu_seconds = target.cpu_seconds() - server_before
    text = printed.read_text(errors="replace")
    if ended.status != 0:
        last = text.strip().splitlines()[-1:] or ["nothing printed"]
        raise RunFailed(f"{tool} ended with status {ended.status}: {last[0]}")
    if tool == "dnsperf":
        counts = read_dnsperf(text)
    else:
        counts = read_record(record.read_text())
    if counts["answered"] == 0:
        raise RunFailed(f"{tool} got no response")
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
