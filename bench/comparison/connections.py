"""What connections cost: handshakes alone, and one query a connection."""

import contextlib
import os
import re
import statistics
from pathlib import Path

from . import knot, processes, tables, targets
from .rounds import AT_LEAST, loads, median, ratio, row_of, with_goals

# Connections that are set up at a time.
HANDSHAKES_AT_A_TIME = 50
FULL_PER_CPU_SECOND_MIN = 4_500
RESUMED_PER_CPU_SECOND_MIN = 8_000

LIBRARY_SHARE_MIN = 0.85
LIBRARY_SECONDS_MAX = 120

TCP_AT_A_TIME = 100
TCP_RATE_RATIO_MIN = 0.7
# Best peer with full handshakes, one query a connection: Shotgun, measured on this machine type.
DOT_PEER_PER_SECOND = 2_106
DOT_RATE_MIN = 2 * DOT_PEER_PER_SECOND
QUIC_RATE_MIN = 3_500
KXDPGUN_RATE_QPS = 3_000

# What served dnsperf best when it opens a connection for every query.
DNSPERF_CHURN = {"clients": 250, "outstanding": 250, "threads": 8}

HEAD = ["case", "connections/s", "per CPU second", "CPU us/connection", "server us/connection"]
HEAD += ["load g/s %", "resumed %", "lost or failed", "RSS MB", "runs"]


def row(name, runs):
    def cells(good):
        resumed = [run.resumed / run.connections * 100 for run in good if run.resumed is not None]
        return [
            tables.spread([run.connections_per_second for run in good], "{:,.0f}"),
            f"{statistics.median(run.connections_per_cpu_second for run in good):,.0f}",
            tables.spread([run.cpu_us_per_connection for run in good], "{:.1f}"),
            tables.spread([run.server_us_per_connection for run in good], "{:.1f}"),
            loads(good),
            f"{statistics.median(resumed):.0f}" if resumed else "",
            tables.least_to_most([run.lost + (run.connections_failed or 0) for run in good]),
            tables.spread([run.rss_octets_max / 1e6 for run in good], "{:.1f}"),
        ]

    return row_of(name, runs, HEAD, cells)


def measured(bench, label, start, cases):
    """Rows by name of all cases against the server that `start` starts, if it does."""
    try:
        with start() as target:
            return bench.alternate(label, target, cases)
    except targets.NotStarted as error:
        print(f"  {error}", flush=True)
        return {name: [] for name, *_ in cases}


def responder(bench, transport):
    return lambda: targets.responder(bench.programs.throng, bench.server_cpu, transport)


def handshake_cases(transport):
    base = {"clients": HANDSHAKES_AT_A_TIME, "outstanding": HANDSHAKES_AT_A_TIME}
    none, one = {"queries_per_connection": 0}, {"queries_per_connection": 1}
    return [
        (f"{transport} full", "throng", transport, base | none),
        (
            f"{transport} full, any certificate accepted",
            "throng",
            transport,
            base | none | {"certificate": None},
        ),
        (
            f"{transport} resumed",
            "throng",
            transport,
            base | none | {"resume": True},
        ),
        (
            f"{transport} resumed, with one query",
            "throng",
            transport,
            base | one | {"resume": True},
        ),
    ]


def handshakes(bench):
    """Handshakes, 50 at a time, against throng's responder; its certificate is of P-256.

    Connect, handshake and close without a query; those that resume wait for the ticket of the next,
    which comes after the handshake, or have one query. Per CPU second is connections by the CPU
    time of the generator's whole process, which is what the goals mean by a core: the server, whose
    core is full first, limits the rate that is reached.
    """
    rows, goals = [], []
    for transport in ("dot", "doh2", "doq"):
        if transport not in bench.transports:
            continue
        cases = handshake_cases(transport)
        results = measured(bench, "handshakes", responder(bench, transport), cases)
        rows += [row(name, runs) for name, runs in results.items()]
        for name, runs in results.items():
            least = FULL_PER_CPU_SECOND_MIN
            if "resumed" in name:
                least = RESUMED_PER_CPU_SECOND_MIN
            if transport == "dot" and "query" not in name:
                value = median(runs, "connections_per_cpu_second")
                goals.append((f"{name}, handshakes a CPU second", value, least, AT_LEAST))
    return with_goals(tables.table(HEAD, rows), goals)


def library(bench):
    """Full TLS 1.3 handshakes: throng over DoT beside the cryptographic library by itself.

    The library's are made in memory by the example `handshakes` of crate responder, of which the
    client's time counts. What throng has on top is the TCP connection: a bare one is that of the C
    loop against its own other half, with one query on it. All are CPU time of the generator.
    """
    if not os.access(bench.programs.handshakes, os.X_OK):
        return "Not run: it needs `cargo build --profile dist -p responder --example handshakes`."
    load = {"clients": HANDSHAKES_AT_A_TIME, "outstanding": HANDSHAKES_AT_A_TIME}
    full = [("throng dot full", "throng", "dot", load | {"queries_per_connection": 0})]
    bare = [("C loop", "C loop", "tcp", one_query(TCP_AT_A_TIME))]
    alone, connections, throng = [], [], []
    loop = targets.churn_loop(bench.programs.churn, bench.server_cpu)
    with responder(bench, "dot")() as target, loop as tcp:
        for _ in range(bench.rounds):
            alone.append(library_us(bench))
            connections += bench.once_each("library", tcp, bare)
            throng += bench.once_each("library", target, full)
    figures = {
        "library, client side": alone,
        "C loop, TCP and a query": [run.cpu_us_per_connection for run in connections if run],
        "throng dot full": [run.cpu_us_per_connection for run in throng if run],
    }
    rows = [[name, tables.spread(values, "{:.1f}")] for name, values in figures.items()]
    middle = [statistics.median(values) if values else None for values in figures.values()]
    goals = []
    if None not in middle:
        shares = (middle[0] / middle[2], (middle[0] + middle[1]) / middle[2])
        of_both = "throng / library and C loop together"
        goals = [
            ("full handshakes, throng / library", shares[0], LIBRARY_SHARE_MIN, AT_LEAST),
            (f"full handshakes, {of_both}", shares[1], LIBRARY_SHARE_MIN, AT_LEAST),
        ]
    return with_goals(tables.table(["what", "CPU us each"], rows), goals)


def library_us(bench):
    """CPU time of one full handshake of the library's client."""
    path = bench.raw / f"{len(bench.results):03}-handshakes.txt"
    command = [str(bench.programs.handshakes), "first"]
    processes.run(command, bench.generator_cpu, path, LIBRARY_SECONDS_MAX)
    found = re.search(r"full\s+(\d+)", path.read_text())
    us = 1e6 / float(found[1]) if found else None
    bench.results.append({"label": "library", "tool": "handshakes", "us": us})
    print(f"  library: {us:.1f} us a full handshake of the client", flush=True)
    return us


def one_query(clients):
    return {"queries_per_connection": 1, "clients": clients, "outstanding": clients}


def churn_tcp(bench):
    """One query a TCP connection: the bare C loop (100 at a time), throng (100), dnsperf (250).

    Against throng's responder, and against the answering half of the C loop, which leaves more
    room to the generator.
    """
    load = one_query(TCP_AT_A_TIME)
    servers = [
        ("responder", responder(bench, "tcp")),
        ("C loop", lambda: targets.churn_loop(bench.programs.churn, bench.server_cpu)),
    ]
    rows, goals = [], []
    for where, start in servers:
        cases = [(f"{tool}, server {where}", tool, "tcp", load) for tool in ("C loop", "throng")]
        if "dnsperf" in bench.tools:
            slow = one_query(TCP_AT_A_TIME) | DNSPERF_CHURN
            cases.append((f"dnsperf, server {where}", "dnsperf", "tcp", slow))
        results = measured(bench, "churn", start, cases)
        rows += [row(name, runs) for name, runs in results.items()]
        names = (f"throng, server {where}", f"C loop, server {where}")
        for what, figure in (
            ("rate", "connections_per_second"),
            ("connections a CPU second", "connections_per_cpu_second"),
        ):
            value = ratio(results, *names, figure)
            name = f"TCP {what}, throng / C loop, server {where}"
            goals.append((name, value, TCP_RATE_RATIO_MIN, AT_LEAST))
    return with_goals(tables.table(HEAD, rows), goals)


def rate_goals(name, results, least):
    """One for the rate, one for what a CPU second gives."""
    figures = {
        "connections a second": "connections_per_second",
        "connections a CPU second": "connections_per_cpu_second",
    }
    return [
        (f"{name}, {what}", median(results[name], figure), least, AT_LEAST)
        for what, figure in figures.items()
    ]


def churn_dot(bench):
    """One query a DoT connection, full handshakes, against throng's responder.

    The best peer, Shotgun, reached 2,106 a second here (not run again); dnsperf runs beside.
    """
    load = one_query(HANDSHAKES_AT_A_TIME)
    cases = [
        ("throng dot", "throng", "dot", load),
        ("throng dot, any certificate accepted", "throng", "dot", load | {"certificate": None}),
    ]
    if "dnsperf" in bench.tools:
        cases.append(("dnsperf dot", "dnsperf", "dot", load | DNSPERF_CHURN))
    results = measured(bench, "churn", responder(bench, "dot"), cases)
    names = ("throng dot", "throng dot, any certificate accepted")
    goals = [goal for name in names for goal in rate_goals(name, results, DOT_RATE_MIN)]
    return with_goals(tables.table(HEAD, [row(*each) for each in results.items()]), goals)


def churn_quic(bench):
    """One query a QUIC connection (DoQ), full handshakes, against throng's responder.

    kxdpgun, which does not verify certificates, runs over a veth pair between two namespaces
    against knotd with one worker, throng beside it: kxdpgun's message ID is not 0, and throng's
    responder ends such connections unless it is told not to (`--doq-any-id`).
    """
    load = one_query(HANDSHAKES_AT_A_TIME)
    anybody = load | {"certificate": None}
    cases = [
        ("throng doq", "throng", "doq", load),
        ("throng doq, any certificate accepted", "throng", "doq", anybody),
    ]
    results = measured(bench, "churn", responder(bench, "doq"), cases)
    note = "kxdpgun was not run: it needs root and `servers/prepare`."
    if bench.programs.kxdpgun and os.geteuid() == 0:
        results |= churn_quic_over_veth(bench, load, anybody)
        note = f"kxdpgun asks {KXDPGUN_RATE_QPS:,} a second: it has no closed loop."
    goals = rate_goals("throng doq", results, QUIC_RATE_MIN)
    rows = [row(name, runs) for name, runs in results.items()]
    return with_goals(f"{note}\n\n{tables.table(HEAD, rows)}", goals)


def churn_quic_over_veth(bench, load, anybody):
    cases = [
        ("throng doq, knotd over veth", "throng", "doq", anybody),
        ("kxdpgun doq, knotd over veth", "kxdpgun", "doq", load | {"rate_qps": KXDPGUN_RATE_QPS}),
    ]
    knotd = bench.programs.knotd
    return measured(bench, "churn-veth", lambda: knot.VethKnot(knotd, bench.server_cpu), cases)


def debian13_words(servers, name):
    """The command of one of Debian 13's programs, unpacked by servers/prepare; empty if not."""
    root = Path(servers) / "debian13"
    program = root / "usr/sbin" / name
    with contextlib.suppress(StopIteration, OSError):
        libraries = next((root / "usr/lib").glob("*-linux-gnu"))
        loader = next(libraries.glob("ld-linux*"))
        if program.is_file():
            words = [loader, "--argv0", name, "--library-path", libraries, program]
            return tuple(str(word) for word in words)
    return ()
