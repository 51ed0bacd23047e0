"""What views cost a run: metrics with a scraper, a live page with browsers, a terminal view."""

import json
import os
import pty
import subprocess
import sys
import threading
import time
import urllib.request
from contextlib import ExitStack, contextmanager
from pathlib import Path

from . import instructions, processes, tables, targets
from .rounds import with_goals

# The worker's share of a run in virtual time: what it executes does not depend on the machine.
COUNTED = "*ThreadWorkers*step*"
COUNTED_QPS, COUNTED_SECONDS = 20_000, 10
INSTRUCTIONS_PERCENT_MAX = 0.1

PAIRS = 8
RATE_QPS, SECONDS = 20_000, 10
# Before the run's own time, for connecting; after it, for its record.
AROUND_SECONDS_MAX = 60
BROWSERS = 12
SCRAPE_SECONDS = 1
BROWSERS_CPU_PERCENT_MAX = 2
# The threads that serve views, as the kernel names them.
THREADS = ("metrics", "web", "tui")


def views(bench):
    """A run with all views and without, against the responder: instructions, latency, CPU.

    Instructions are those of the worker's turns in a simulated run of 20,000 queries a second for
    10 s, counted by callgrind. Then 2 x 8 runs in turn over UDP, 20,000 queries a second for 10 s.
    `throng compare` says whether they differ. All views are `--tui`, 12 browsers that follow the
    live page, and a scrape a second. These readers get the CPU time that no other process wants:
    elsewhere they are on machines of their own.
    """
    rows, percent = counted(bench)
    folders = {side: bench.raw / f"views-{side}" for side in ("none", "all")}
    for folder in folders.values():
        folder.mkdir()
    costs = []
    with targets.responder(bench.programs.throng, bench.server_cpu, "udp") as target:
        for number in range(PAIRS):
            for side in ("none", "all")[:: -1 if number % 2 else 1]:
                cost = followed(bench, target, folders[side] / f"{number}.json", side == "all")
                print(f"  views {side}, run {number + 1} of {PAIRS}", flush=True)
                costs += [cost] if side == "all" else []
    compared = compare(bench, folders)
    rows += threads_rows(costs)
    serving = max(100 * cost["web"] / SECONDS for cost in costs)
    goals = [
        ("instructions of a worker with views more than without", percent,
         INSTRUCTIONS_PERCENT_MAX, {"unit": " %"}),
        (f"CPU of the live page, {BROWSERS} browsers", serving, BROWSERS_CPU_PERCENT_MAX,
         {"unit": " %"}),
    ]
    text = f"{tables.table(['figure', 'without', 'with views'], rows)}\n\n{compared}"
    return with_goals(text, goals)


def counted(bench):
    """Instructions of the worker without views and with them, and by how many percent they grow."""
    counts = []
    for side in ("none", "all"):
        profile = bench.raw / f"views-{side}.callgrind"
        command = ["valgrind", "--tool=callgrind", f"--toggle-collect={COUNTED}"]
        command += [f"--callgrind-out-file={profile}", str(bench.programs.throng), "run"]
        command += ["--driver", "sim", "--names", bench.names, "--seed", "1"]
        command += ["--rate", str(COUNTED_QPS), "--duration", f"{COUNTED_SECONDS}s"]
        if side == "all":
            with all_views(command) as process:
                ended_well(process.wait(timeout=instructions.SECONDS_MAX))
        else:
            subprocess.run(
                command, check=True, capture_output=True, timeout=instructions.SECONDS_MAX
            )
        counts.append(sum(instructions.own_costs(profile.read_text()).values()))
    queries = COUNTED_QPS * COUNTED_SECONDS
    row = ["worker's instructions a query", *(f"{count / queries:,.1f}" for count in counts)]
    return [row], (counts[1] / counts[0] - 1) * 100


def threads_rows(costs):
    """CPU of each view's threads in percent of one CPU: least to most of the runs."""
    return [
        [f"CPU of `{name}` %", "", tables.spread([100 * cost[name] / SECONDS for cost in costs])]
        for name in THREADS
    ]


def followed(bench, target, record, with_views):
    """One run, followed by all views or by none; CPU seconds of the threads that serve them."""
    command = [str(bench.programs.throng), "run", "--names", bench.names, "--duration"]
    command += [f"{SECONDS}s", "--server", f"{target.address}:{target.port('udp')}"]
    command += ["--rate", str(RATE_QPS), "--workers", "1", "--record", str(record)]
    command += ["--cpus", str(bench.generator_cpu)]
    if not with_views:
        subprocess.run(
            command, check=True, capture_output=True, timeout=SECONDS + AROUND_SECONDS_MAX
        )
        return {}
    with all_views(command) as process:
        return cpu_until_ended(process)


@contextmanager
def all_views(command):
    """The process of a run that all views follow."""
    ports = {name: processes.free_port() for name in ("metrics", "web")}
    for name, port in ports.items():
        command += [f"--{name}", f"127.0.0.1:{port}"]
    with terminal([*command, "--tui"]) as process, behind_others(), ExitStack() as readers:
        readers.enter_context(repeated(lambda: scrape(ports["metrics"])))
        for _ in range(BROWSERS):
            readers.enter_context(repeated(lambda: follow(ports["web"])))
        yield process


def ended_well(code):
    """Ends the benchmark if a run with views did not."""
    if code != 0:
        sys.exit(f"error: a run with views ended with {code}")


@contextmanager
def behind_others():
    """This thread, and those that it starts, run when no other process wants the CPU."""
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


@contextmanager
def terminal(command):
    """A process whose terminal is read as fast as it writes."""
    ours, its = pty.openpty()

    def read():
        try:
            while os.read(ours, 65536):
                pass
        except OSError:
            # The process has closed its end.
            pass

    process = subprocess.Popen(
        ["setpriv", "--pdeathsig", "KILL", "setsid", "--ctty", *command],
        stdin=its, stdout=its, stderr=its,
        env=os.environ | {"TERM": "xterm-256color", "COLUMNS": "100", "LINES": "40"},
    )
    os.close(its)
    reader = threading.Thread(target=read, daemon=True)
    with behind_others():
        reader.start()
    try:
        yield process
    finally:
        processes.stop(process)
        reader.join(timeout=AROUND_SECONDS_MAX)
        os.close(ours)


@contextmanager
def repeated(once):
    """A thread that does something each second, whatever of it fails: the run may be over."""
    ended = threading.Event()

    def repeat():
        while not ended.wait(SCRAPE_SECONDS):
            try:
                once()
            except OSError:
                pass

    thread = threading.Thread(target=repeat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(timeout=AROUND_SECONDS_MAX)


def scrape(port):
    urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5).read()


def follow(port):
    """Reads the events of the live page until they end, as a browser does."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/events", timeout=5) as events:
        while events.read(65536):
            pass


def cpu_until_ended(process):
    """The most CPU seconds that each view's threads were seen to have used."""
    most = dict.fromkeys(THREADS, 0.0)
    deadline = time.monotonic() + SECONDS + AROUND_SECONDS_MAX
    while process.poll() is None:
        if time.monotonic() > deadline:
            process.kill()
        used = dict.fromkeys(THREADS, 0.0)
        for task in Path(f"/proc/{process.pid}/task").glob("*"):
            try:
                name = (task / "comm").read_text().strip()
                ran_ns = int((task / "schedstat").read_text().split()[0])
            except OSError:
                continue
            if name in used:
                used[name] += ran_ns / 1e9
        most = {name: max(most[name], used[name]) for name in THREADS}
        time.sleep(0.2)
    ended_well(process.returncode)
    return most


def compare(bench, folders):
    """What `throng compare` says of the runs without views and those with all."""
    command = [str(bench.programs.throng), "compare", str(folders["none"]), str(folders["all"])]
    ended = subprocess.run(
        [*command, "--format", "json"], capture_output=True, text=True, timeout=300, check=False
    )
    (bench.raw / "views-compare.json").write_text(ended.stdout)
    bench.results.append({"label": "views", "compare": json.loads(ended.stdout)})
    text = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False).stdout
    return f"`throng compare`, A without views, B with all:\n\n```\n{text.strip()}\n```"
