"""What is measured. Each section returns Markdown, its first line of documentation before that."""

import statistics

from . import capacity, connections, established, instructions, knot, populations, tables
from . import soak, targets, versions, views
from . import xdp as frames
from .generators import DNSPERF_MODES
from .rounds import AT_LEAST, HEAD, median, ratio, row, with_goals

# Goals, from the project's own statement of what it must reach: a first one, and what is wanted.
CPU_RATIO_MAX = {
    "udp": (0.50, 0.33),
    "tcp": (0.40, 0.25),
    "dot": (0.50, 0.25),
    "doh2": (0.40, 0.25),
}
QPS_RATIO_MIN = 0.98
OFFLOAD_QPS_MIN = (1_000_000, 4_000_000)
NO_OFFLOAD_QPS_RATIO_MIN = 1.6
SENDMMSG_RATIO_MIN = 0.9
# Open-loop rate at which few and many clients are compared.
CLIENTS_RATE_QPS = 50_000
CLIENTS_CPU_RATIO_MAX = 1.5
IDLE_OCTETS_MAX = {
    "tcp": 1_000,
    "dot": 2_560,
    "doh2": 12_000,
    "doq": 30_000,
    "doh3": 30_000,
}
RATE_ERROR_PERCENT_MAX = 0.1


def server(bench):
    """BIND, 200 clients, 1,000 outstanding, each transport that it has; DoH with POST.

    throng verifies BIND's certificate, dnsperf never does.
    """
    rows, goals = [], []
    for transport in (each for each in bench.transports if each in DNSPERF_MODES):
        with targets.named(bench.server_cpu) as target:
            cases = [(tool, tool, transport, {}) for tool in bench.tools]
            results = bench.alternate("server", target, cases)
        cpu = ratio(results, "throng", "dnsperf", "cpu_us_per_answer")
        qps = ratio(results, "throng", "dnsperf", "qps")
        what = f"{transport} CPU per answer, throng / dnsperf"
        goals += [(what, cpu, most, {}) for most in CPU_RATIO_MAX[transport]]
        goals.append((f"{transport} rate, throng / dnsperf", qps, QPS_RATIO_MIN, AT_LEAST))
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
    with targets.responder(bench.programs.throng, bench.server_cpu, "udp") as target:
        results = bench.alternate("responder", target, cases)
    goals = []
    for count in ("200 clients", "10 clients"):
        offloaded = median(results.get(f"throng, {count}", []), "qps")
        plain = (f"throng --no-offload, {count}", f"dnsperf, {count}")
        what = f"matched answers a second with offload, {count}"
        goals += [(what, offloaded, least, AT_LEAST) for least in OFFLOAD_QPS_MIN]
        what = f"rate without offload, throng / dnsperf, {count}"
        value = ratio(results, *plain, "qps")
        goals.append((what, value, NO_OFFLOAD_QPS_RATIO_MIN, AT_LEAST))
    rows = [row(name, runs) for name, runs in results.items()]
    return with_goals(tables.table(HEAD, rows), goals)


def datagrams(bench):
    """UDP without offload beside a bare C pair on sendmmsg and recvmmsg; 10 sockets, 1,000 out.

    The C program neither matches nor times what it receives. Against the pair's own answering half,
    which leaves most room to the generator, and against the responder, without offload too.
    """
    load = {"clients": 10, "offload": False}
    flags = ["--no-offload"]
    servers = [
        ("C pair", lambda: targets.datagram_loop(bench.programs.datagrams, bench.server_cpu)),
        (
            "responder",
            lambda: targets.responder(bench.programs.throng, bench.server_cpu, "udp", flags=flags),
        ),
    ]
    rows, goals = [], []
    for where, start in servers:
        names = (f"throng, server {where}", f"C, server {where}")
        cases = [(names[1], "C datagrams", "udp", load), (names[0], "throng", "udp", load)]
        with start() as target:
            results = bench.alternate("datagrams", target, cases)
        rows += [row(name, runs) for name, runs in results.items()]
        for what, figure, pair in (
            ("rate, throng / C", "qps", names),
            ("CPU per answer, C / throng", "cpu_us_per_answer", names[::-1]),
        ):
            value = ratio(results, *pair, figure)
            goals.append((f"{what}, server {where}", value, SENDMMSG_RATIO_MIN, AT_LEAST))
    return with_goals(tables.table(HEAD, rows), goals)


def open_target(bench, transport):
    """The responder, or BIND where throng is left out."""
    if "throng" in bench.tools:
        return targets.responder(bench.programs.throng, bench.server_cpu, transport)
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
    """User memory per idle client: the same run with two client counts, difference divided.

    A client has connected and asks about one query in the run. One run of each, not `--rounds`.
    """
    few, many = bench.idle_clients
    rows, goals = [], []
    for transport in (each for each in bench.transports if each in IDLE_OCTETS_MAX):
        tools = [tool for tool in bench.tools if tool == "throng" or transport in DNSPERF_MODES]
        try:
            with open_target(bench, transport) as target:
                octets = {tool: idle_octets(bench, target, tool, transport) for tool in tools}
        except targets.NotStarted as error:
            octets = dict.fromkeys(tools)
            print(f"  {error}", flush=True)
        for tool, value in octets.items():
            rows.append([tool, transport, "no result" if value is None else f"{value:,.0f}"])
        if "throng" in octets:
            what = f"octets per idle {transport} client"
            goals.append((what, octets["throng"], IDLE_OCTETS_MAX[transport], {}))
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
        if run.connections_open is not None and run.connections_open < count:
            print(f"  only {run.connections_open:,} of {count:,} clients connected", flush=True)
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
    "knot": knot.knot,
    "responder": responder,
    "datagrams": datagrams,
    "instructions": instructions.instructions,
    "established": established.established,
    "handshakes": connections.handshakes,
    "library": connections.library,
    "churn-tcp": connections.churn_tcp,
    "churn-dot": connections.churn_dot,
    "churn-quic": connections.churn_quic,
    "clients": clients,
    "memory": memory,
    "rate": rate,
    "populations": populations.populations,
    "sessions": populations.sessions,
    "scripts": populations.scripts,
    "compare": versions.compare,
    "capacity": capacity.capacity,
    "xdp": frames.xdp,
    "soak": soak.soak,
    "views": views.views,
}

# Sections that take longer than all others together: only when they are asked for.
LONG = {"compare", "soak", "views"}

# Sections that need throng as the server.
NEEDS_THRONG = {"datagrams", "instructions", "library"}
NEEDS_THRONG |= {"responder", "established", "handshakes", "churn-tcp", "churn-dot", "churn-quic"}
NEEDS_THRONG |= {"populations", "sessions", "scripts", "compare", "capacity", "xdp", "soak"}
NEEDS_THRONG |= {"views"}
