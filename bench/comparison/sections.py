"""What is measured. Each section returns Markdown."""

import statistics
from dataclasses import asdict, dataclass, field
from pathlib import Path

from . import generators, processes, tables, targets
from .generators import Load, RunFailed

# Goals, from the project's own statement of what it must reach.
CPU_RATIO_MAX = {"udp": 0.50, "tcp": 0.40, "dot": 0.50}
QPS_RATIO_MIN = 0.98
OFFLOAD_QPS_MIN = 1_000_000
NO_OFFLOAD_QPS_RATIO_MIN = 1.6
# Open-loop rate at which few and many clients are compared.
CLIENTS_RATE_QPS = 50_000
CLIENTS_CPU_RATIO_MAX = 1.5
IDLE_OCTETS_MAX = {"tcp": 1_000, "dot": 10_000}
RATE_ERROR_PERCENT_MAX = 0.1


@dataclass
class Bench:
    """What all sections share."""

    throng: Path
    tools: list
    rounds: int
    seconds: int
    transports: list
    raw: Path
    names: str
    generator_cpu: int = 0
    server_cpu: int = 1
    clients: tuple = (100, 10_000)
    idle_clients: tuple = (500, 5_000)
    sources: processes.SourceAddresses = field(default_factory=processes.SourceAddresses)
    # Every run, for raw/results.json.
    results: list = field(default_factory=list)

    def load(self, target, transport, **options):
        options.setdefault("seconds", self.seconds)
        return Load(
            transport=transport,
            port=target.port(transport),
            names=self.names,
            source=self.sources.next(),
            **options,
        )

    def once(self, label, tool, target, load, watch_anonymous=False):
        """One run; None, and a line on the terminal, if it gave no result."""
        raw = self.raw / f"{len(self.results):03}-{label}-{tool}"
        dropped = processes.udp_receive_errors()
        entry = {"label": label, "tool": tool, "load": asdict(load)}
        self.results.append(entry)
        try:
            measured = generators.run(
                tool, self.throng, load, target, self.generator_cpu, raw, watch_anonymous
            )
        except RunFailed as error:
            entry["failed"] = str(error)
            print(f"  {label} {tool}: no result: {error}", flush=True)
            return None
        entry["measured"] = asdict(measured)
        entry["receive_buffer_drops"] = processes.udp_receive_errors() - dropped
        print(
            f"  {label} {tool}: {measured.qps:,.0f} answers/s, "
            f"{measured.cpu_us_per_answer:.2f} us, lost {measured.lost}, "
            f"buffer drops {entry['receive_buffer_drops']}",
            flush=True,
        )
        return measured

    def alternate(self, label, target, cases):
        """Runs every case once a round, in reverse order every other round.

        `cases` is a list of (name, tool, transport, load options). Returns name -> results.
        """
        results = {name: [] for name, *_ in cases}
        for number in range(self.rounds):
            for name, tool, transport, options in cases[:: -1 if number % 2 else 1]:
                load = self.load(target, transport, **options)
                results[name].append(self.once(f"{label}-{transport}", tool, target, load))
        return results


HEAD = ["generator", "answers/s", "CPU us/answer", "server us/answer"]
HEAD += ["load g/s %", "RSS MB", "lost", "runs"]


def row(name, runs):
    good = [run for run in runs if run]
    if not good:
        return [name, "no result", "", "", "", "", "", f"0 of {len(runs)}"]
    generator_load = statistics.median(run.cpu_seconds / run.wall_seconds for run in good)
    server_load = statistics.median(run.server_cpu_seconds / run.wall_seconds for run in good)
    lost = [run.lost for run in good]
    return [
        name,
        tables.spread([run.qps for run in good], "{:,.0f}"),
        tables.spread([run.cpu_us_per_answer for run in good]),
        tables.spread([run.server_us_per_answer for run in good]),
        f"{generator_load * 100:.0f}/{server_load * 100:.0f}",
        tables.spread([run.rss_octets_max / 1e6 for run in good], "{:.1f}"),
        f"{min(lost)}-{max(lost)}" if max(lost) else "0",
        f"{len(good)} of {len(runs)}",
    ]


def median(runs, figure):
    values = [getattr(run, figure) for run in runs if run]
    return statistics.median(values) if values else None


def ratio(results, above, below, figure):
    """Median of one over median of the other; None if either has no result."""
    top, bottom = median(results.get(above, []), figure), median(results.get(below, []), figure)
    return top / bottom if top is not None and bottom else None


def with_goals(text, goals):
    """The text, then a line for each goal whose value is known.

    `goals` holds (name, value or None, limit, further arguments of `tables.goal`).
    """
    known = [goal for goal in goals if goal[1] is not None]
    lines = [tables.goal(name, value, limit, **more) for name, value, limit, more in known]
    return "\n\n".join(each for each in (text, "\n".join(lines)) if each)


def server(bench):
    """BIND, 200 clients, 1,000 outstanding, each transport."""
    rows, goals = [], []
    for transport in bench.transports:
        with targets.named(bench.server_cpu) as target:
            cases = [(tool, tool, transport, {}) for tool in bench.tools]
            results = bench.alternate("server", target, cases)
        cpu = ratio(results, "throng", "dnsperf", "cpu_us_per_answer")
        qps = ratio(results, "throng", "dnsperf", "qps")
        goals += [
            (f"{transport} CPU per answer, throng / dnsperf", cpu, CPU_RATIO_MAX[transport], {}),
            (f"{transport} rate, throng / dnsperf", qps, QPS_RATIO_MIN, {"at_least": True}),
        ]
        rows += [row(f"{name} {transport}", runs) for name, runs in results.items()]
    return with_goals(tables.table(HEAD, rows), goals)


def responder(bench):
    """throng's responder over UDP, with UDP GSO and GRO and without, 200 clients and 10."""
    few = {"clients": 10}
    cases = [
        ("throng, 200 clients", "throng", "udp", {}),
        ("throng, 10 clients", "throng", "udp", few),
        ("throng --no-offload, 200 clients", "throng", "udp", {"offload": False}),
        ("throng --no-offload, 10 clients", "throng", "udp", {"offload": False} | few),
        ("dnsperf, 200 clients", "dnsperf", "udp", {}),
        ("dnsperf, 10 clients", "dnsperf", "udp", few),
    ]
    cases = [case for case in cases if case[1] in bench.tools]
    with targets.responder(bench.throng, bench.server_cpu, "udp") as target:
        results = bench.alternate("responder", target, cases)
    goals = []
    for count in ("200 clients", "10 clients"):
        offloaded = median(results.get(f"throng, {count}", []), "qps")
        plain = (f"throng --no-offload, {count}", f"dnsperf, {count}")
        goals += [
            (
                f"matched answers a second with offload, {count}",
                offloaded,
                OFFLOAD_QPS_MIN,
                {"at_least": True},
            ),
            (
                f"rate without offload, throng / dnsperf, {count}",
                ratio(results, *plain, "qps"),
                NO_OFFLOAD_QPS_RATIO_MIN,
                {"at_least": True},
            ),
        ]
    rows = [row(name, runs) for name, runs in results.items()]
    return with_goals(tables.table(HEAD, rows), goals)


def open_target(bench, transport):
    """The responder, or BIND where throng is left out."""
    if "throng" in bench.tools:
        return targets.responder(bench.throng, bench.server_cpu, transport)
    return targets.named(bench.server_cpu)


def clients(bench):
    """CPU per query with few and with many TCP clients, one query a segment in all of them.

    With a fixed number outstanding, few clients would pipeline and many would not: the ratio would
    measure batching. So each client has one query outstanding, or all get the same open-loop rate.
    The ratio leaves out connection set-up, which a run of a few seconds would not amortise.
    """
    few, many = bench.clients
    closed = [
        (f"{tool}, {count:,} clients, one outstanding each", tool, "tcp",
         {"clients": count, "outstanding": count})
        for tool in bench.tools
        for count in (few, many)
    ]
    rate = {"outstanding": None, "rate_qps": CLIENTS_RATE_QPS}
    opened = [
        (f"throng, {count:,} clients, {CLIENTS_RATE_QPS:,} qps", "throng", "tcp",
         {"clients": count} | rate)
        for count in (few, many)
        if "throng" in bench.tools
    ]
    with open_target(bench, "tcp") as target:
        server_name = target.name
        results = bench.alternate("clients", target, closed + opened)
    goals = []
    if "throng" in bench.tools:
        for how in ("one outstanding each", f"{CLIENTS_RATE_QPS:,} qps"):
            names = (f"throng, {many:,} clients, {how}", f"throng, {few:,} clients, {how}")
            value = ratio(results, *names, "window_us_per_answer")
            what = f"throng CPU per answer without set-up, {many:,} clients / {few:,}, {how}"
            goals.append((what, value, CLIENTS_CPU_RATIO_MAX, {}))
    rows = [row(name, runs) for name, runs in results.items()]
    return with_goals(f"Server: {server_name}.\n\n{tables.table(HEAD, rows)}", goals)


def settled_octets(run):
    """Anonymous memory once all clients are connected: the median of the run's last third."""
    late = [octets for seconds, octets in run.anonymous if seconds > run.wall_seconds * 2 / 3]
    return statistics.median([octets for octets in late if octets] or [0])


def memory(bench):
    """User memory per idle client: the same run with two client counts, difference divided."""
    few, many = bench.idle_clients
    rows, goals = [], []
    for transport in (each for each in bench.transports if each in IDLE_OCTETS_MAX):
        with open_target(bench, transport) as target:
            for tool in bench.tools:
                octets = idle_octets(bench, target, tool, transport)
                shown = "no result" if octets is None else f"{octets:,.0f}"
                rows.append([tool, transport, shown])
                if tool == "throng":
                    what = f"octets per idle {transport} client"
                    goals.append((what, octets, IDLE_OCTETS_MAX[transport], {}))
    head = ["generator", "transport", f"octets per client, {few:,} to {many:,} clients"]
    return with_goals(tables.table(head, rows), goals)


def idle_octets(bench, target, tool, transport):
    few, many = bench.idle_clients
    # Long enough to connect all clients well before its last third; each asks about once.
    options = {"seconds": 12, "outstanding": None, "rate_qps": 500}
    settled = []
    for count in (few, many):
        load = bench.load(target, transport, clients=count, **options)
        run = bench.once(f"memory-{transport}-{count}", tool, target, load, watch_anonymous=True)
        if run is None:
            return None
        settled.append(settled_octets(run))
    return (settled[1] - settled[0]) / (many - few)


def rate(bench):
    """Open loop at 20,000 queries a second for 10 s: how exactly the rate is offered."""
    rate_qps, seconds = 20_000, 10
    options = {"seconds": seconds, "outstanding": None, "rate_qps": rate_qps}
    cases = [(tool, tool, "udp", options) for tool in bench.tools]
    with open_target(bench, "udp") as target:
        server_name = target.name
        results = bench.alternate("rate", target, cases)
    rows, worst = [], None
    for name, runs in results.items():
        errors = [rate_error_percent(run, rate_qps) for run in runs if run]
        rows.append([name, tables.spread(errors, "{:.3f}"), *row(name, runs)[1:3]])
        if name == "throng" and errors:
            worst = max(errors)
    head = ["generator", "error of the offered rate %", *HEAD[1:3]]
    what = "largest error of the offered rate, throng"
    goals = [(what, worst, RATE_ERROR_PERCENT_MAX, {"unit": " %"})]
    return with_goals(f"Server: {server_name}.\n\n{tables.table(head, rows)}", goals)


def rate_error_percent(run, rate_qps):
    # dnsperf does not say what it scheduled; what it sent is the nearest.
    offered_qps = run.offered if run.offered is not None else run.sent / run.seconds
    return abs(offered_qps / rate_qps - 1) * 100


SECTIONS = {
    "server": server,
    "responder": responder,
    "clients": clients,
    "memory": memory,
    "rate": rate,
}

# Sections that need throng as the server.
NEEDS_THRONG = {"responder"}
