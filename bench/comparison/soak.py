"""A long run: what it costs in memory and open files, from its beginning to its end."""

import json
import os
import time
from dataclasses import dataclass
from pathlib import Path

from . import processes, tables, targets
from .rounds import with_goals

# Clients and their queries a second: 20,000 in all.
GROUPS = {"udp": (200, 10_000), "dot": (100, 5_000), "doq": (100, 5_000)}
# As many intervals as ten hours of seconds have: they are merged five times on the way.
INTERVALS = 36_000
SAMPLE_SECONDS = 10
SAMPLES_MIN = 30
ROWS_MAX = 12
RSS_MIB_MAX = 100
RECORD_MB_MAX = 50
# Wider intervals have somewhat wider histograms. A leak of a byte in five queries is more.
GROWTH_PERCENT_MAX = 10
GROWTH_MIB_FREE = 2
# For connecting before the run, and for the last responses and the record after it.
AROUND_SECONDS_MAX = 120
MIB = 1 << 20


@dataclass
class Sample:
    """What a process and its children had at one moment."""

    seconds: float
    rss_octets: int
    files: int


def scenario(bench, target, seconds):
    interval_ms = max(1, round(seconds * 1000 / INTERVALS))
    lines = [f'duration = "{seconds}s"', f'interval = "{interval_ms}ms"', "workers = 1"]
    lines.append(f'names = "{bench.names}"')
    for transport, (clients, rate_qps) in GROUPS.items():
        lines += ["", "[[clients]]", f'name = "{transport}"', f'transport = "{transport}"']
        lines += [f"count = {clients}", f'per-client = "constant:{rate_qps / clients:g}"']
        lines += [f'server = "{target.address}:{target.port(transport)}"']
        if transport != "udp":
            lines += [f'tls-ca = "{target.certificate}"', 'tls-name = "localhost"']
    return "\n".join(lines) + "\n"


def files_open(pid):
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return 0


def sample(process, started):
    family = processes.with_descendants(process.pid)
    return Sample(
        seconds=time.monotonic() - started,
        rss_octets=sum(processes.status_octets(member, "VmRSS") for member in family),
        files=sum(files_open(member) for member in family),
    )


def watched(bench, target, command, seconds):
    """Runs the generator; samples of both ends while it offers load, and its exit status."""
    samples = {"generator": [], "responder": []}
    started = time.monotonic()
    every = min(SAMPLE_SECONDS, seconds / SAMPLES_MIN)
    with open(bench.raw / "soak.txt", "wb") as output:
        process = processes.spawn(command, bench.generator_cpu, output)
    try:
        while process.poll() is None:
            elapsed = time.monotonic() - started
            if elapsed > seconds + AROUND_SECONDS_MAX:
                process.kill()
            if elapsed < seconds:
                samples["generator"].append(sample(process, started))
                samples["responder"].append(sample(target.process, started))
            time.sleep(every)
    finally:
        processes.stop(process)
    return samples, process.returncode


def most(samples, figure, span, seconds):
    """The most of a figure within a span of the run, given as shares of its length."""
    start, end = span[0] * seconds, span[1] * seconds
    values = [getattr(one, figure) for one in samples if start <= one.seconds < end]
    return max(values) if values else None


def growth(samples, figure, seconds, free):
    """By how many percent the last third has more than the one before, beyond what is free."""
    before = most(samples, figure, (1 / 3, 2 / 3), seconds)
    after = most(samples, figure, (2 / 3, 1), seconds)
    if not before or after is None:
        return None
    return max(0.0, (after - free) / before - 1) * 100


def table(samples, seconds):
    head = ["minutes", "generator RSS MiB", "files", "responder RSS MiB", "files"]
    count = min(ROWS_MAX, len(samples["generator"]))
    rows = []
    for number in range(count):
        span = (number / count, (number + 1) / count)
        row = ["-".join(f"{round(share * seconds / 60, 2):g}" for share in span)]
        for side in ("generator", "responder"):
            rss = most(samples[side], "rss_octets", span, seconds)
            row.append("" if rss is None else f"{rss / MIB:.1f}")
            row.append(most(samples[side], "files", span, seconds) or "")
        rows.append(row)
    return tables.table(head, rows)


def goals_of(samples, seconds, record):
    goals = []
    for side, of_side in samples.items():
        for figure, free in (("rss_octets", GROWTH_MIB_FREE * MIB), ("files", 0)):
            what = {"rss_octets": "memory", "files": "open files"}[figure]
            value = growth(of_side, figure, seconds, free)
            name = f"{side}: growth of {what} in the last third"
            goals.append((name, value, GROWTH_PERCENT_MAX, {"unit": " %"}))
    highest = most(samples["generator"], "rss_octets", (0, 1), seconds)
    rss_mib = highest / MIB if highest else None
    goals.append(("generator: most memory", rss_mib, RSS_MIB_MAX, {"unit": " MiB"}))
    size_mb = record.stat().st_size / 1e6 if record.exists() else None
    goals.append(("record", size_mb, RECORD_MB_MAX, {"unit": " MB"}))
    return goals


def outcome(record):
    """What came of the run, in words, by its record."""
    if not record.exists():
        return "There is no record."
    document = json.loads(record.read_text())
    counts, limit = document["total"]["counts"], document["verdict"]["limit"]
    merged = document.get("intervals_merged", 1)
    asked_ms = document["scenario"]["interval_ns"] / 1e6
    return (
        f"{counts['offered']:,} queries offered, {counts['responses']:,} answered; limit: {limit}; "
        f"{len(document['intervals']):,} intervals, of {merged} x {asked_ms:g} ms each."
    )


def soak(bench):
    """UDP, DoT and DoQ at once, 20,000 queries a second in all, for `--minutes`.

    Memory (VmRSS) and open files of generator and responder are looked at every 10 s; each row is
    the most within it. Both are flat if the last third of the run has at most 10 % more than the
    third before (of memory 2 MiB more are free). The interval is such that the record has as many
    as one of ten hours has by default.
    """
    seconds = bench.minutes * 60
    record = bench.raw / "soak.json"
    throng = bench.programs.throng
    with targets.responder_of(throng, bench.server_cpu, GROUPS) as target:
        path = Path(bench.raw) / "soak.toml"
        path.write_text(scenario(bench, target, seconds))
        command = [str(throng), "run", str(path), "--quiet", "--record", str(record)]
        samples, status = watched(bench, target, command, seconds)
    bench.results.append(
        {
            "label": "soak",
            "status": status,
            "samples": {side: [vars(one) for one in each] for side, each in samples.items()},
        }
    )
    goals = goals_of(samples, seconds, record)
    if status != 0:
        printed = (bench.raw / "soak.txt").read_text(errors="replace").strip()
        bench.failures.append(f"soak: the generator ended with status {status}: {printed}")
    for name, value, limit, _ in goals:
        if value is None or value > limit:
            bench.failures.append(f"soak: {name}: {value}, at most {limit}")
    is_flat = not bench.failures
    text = f"{outcome(record)} {'Flat.' if is_flat else '**Not flat.**'}"
    return with_goals(f"{text}\n\n{table(samples, seconds)}", goals)
