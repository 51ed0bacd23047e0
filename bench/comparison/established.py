"""Established connections, encrypted, against the responder: answers a second on one core."""

from . import tables, targets
from .generators import DNSPERF_MODES
from .rounds import AT_LEAST, loads, median, row_of, verdicts, with_goals

# Answers a second on one core each; DoH/3 has no goal.
QPS_MIN = {"dot": 350_000, "doh2": 250_000, "doq": 120_000}
TRANSPORTS = ("dot", "doh2", "doq", "doh3")
OUTSTANDING = 1000
CLIENTS = (10, 200)

HEAD = ["generator, transport, clients", "answers/s", "CPU us/answer", "server us/answer"]
HEAD += ["load g/s %", "lost", "verdict", "runs"]


def row(name, runs):
    def cells(good):
        # Without set-up where the tool tells; the server's share of it cannot be told apart.
        costs = [
            run.cpu_us_per_answer if run.window_cpu_seconds is None else run.window_us_per_answer
            for run in good
        ]
        return [
            tables.spread([run.qps for run in good], "{:,.0f}"),
            tables.spread(costs),
            tables.spread([run.server_us_per_answer for run in good]),
            loads(good),
            tables.least_to_most([run.lost for run in good]),
            verdicts(good),
        ]

    return row_of(name, runs, HEAD, cells)


def cases_of(bench, transport):
    throng = {"outstanding": OUTSTANDING, "warmup_ms": 500}
    cases = [
        (f"throng {transport}, {count}", "throng", transport, throng | {"clients": count})
        for count in CLIENTS
    ]
    if transport in DNSPERF_MODES and "dnsperf" in bench.tools:
        cases.append((f"dnsperf {transport}, {CLIENTS[-1]}", "dnsperf", transport, {}))
    return cases


def established(bench):
    """throng's responder, 1,000 outstanding over 10 and over 200 clients, encrypted transports.

    Connections stand before throng's measured window begins (a warm-up of 0.5 s), and its CPU per
    answer is that of the window. dnsperf's includes its 200 handshakes. DoH is with POST.
    """
    rows, goals = [], []
    for transport in (each for each in TRANSPORTS if each in bench.transports):
        cases = cases_of(bench, transport)
        try:
            with targets.responder(bench.programs.throng, bench.server_cpu, transport) as target:
                results = bench.alternate("established", target, cases)
        except targets.NotStarted as error:
            print(f"  {error}", flush=True)
            results = {name: [] for name, *_ in cases}
        rows += [row(name, runs) for name, runs in results.items()]
        if transport in QPS_MIN:
            rates = {
                count: median(results[f"throng {transport}, {count}"], "qps") for count in CLIENTS
            }
            what = f"{transport} answers a second"
            goals += [
                (f"{what}, {count} clients", rate, QPS_MIN[transport], AT_LEAST)
                for count, rate in rates.items()
            ]
    return with_goals(tables.table(HEAD, rows), goals)
