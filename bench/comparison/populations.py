"""Populations: many clients, each at its own instants, and clients that follow a script."""

from . import tables, targets
from .rounds import AT_LEAST, loads, median, row_of, verdicts, with_goals

# The article's number of session clients, and what each of them asks a second.
CLIENTS = 24_000
EACH_QPS = 2
RATE_ERROR_PERCENT_MAX = 1.0
LATENESS_P99_MS_MAX = 5.0
CPU_RATIO_MAX = 1.5
FEW_CLIENTS = 200
# Total rates tried in turn for the highest that is held.
RATES_QPS = (60_000, 72_000, 84_000, 96_000, 108_000, 120_000)
DOT_CLIENTS = 10_000
DOT_RATE_QPS = 20_000
TCP_CONNECTIONS_MIN = 18_000
DOT_CONNECTIONS_MIN = 4_000
SCRIPTED_QPS_MIN = 300_000
# Processes that the responder needs for more connections than one may have open files.
PROCESSES = 2

HEAD = ["case", "asked/s", "offered/s", "answers/s", "p99 lateness ms", "CPU us/answer"]
HEAD += ["load g/s %", "lost", "RSS MB", "verdict", "runs"]

# Scripts, in words of docs/scripting.md.
SCRIPTS = {
    "one query at a time": """
function client(c)
  while true do c:query("www.bench.test", "A") end
end
""",
    "20 in flight": """
function client(c)
  for _ = 1, 20 do c:send("www.bench.test", "A") end
  while true do
    c:wait()
    c:send("www.bench.test", "A")
  end
end
""",
}


def row(name, asked_qps, runs):
    def cells(good):
        return [
            f"{asked_qps:,.0f}" if asked_qps else "",
            tables.spread([run.offered for run in good], "{:,.0f}"),
            tables.spread([run.qps for run in good], "{:,.0f}"),
            tables.spread([run.lateness_p99_ms for run in good]),
            tables.spread([run.window_us_per_answer for run in good]),
            loads(good),
            tables.least_to_most([run.lost for run in good]),
            tables.spread([run.rss_octets_max / 1e6 for run in good], "{:.0f}"),
            verdicts(good),
        ]

    return row_of(name, runs, HEAD, cells)


def of_clients(clients, rate_qps, **more):
    """Each client asks at a constant rate of its own, together `rate_qps`."""
    each = f"constant:{rate_qps / clients:.6g}"
    return {"clients": clients, "outstanding": None, "per_client": each, "workers": None} | more


def holds(run, rate_qps):
    """True if the run offered its rate, on time, and got its answers."""
    if run is None:
        return False
    error_percent = abs(run.offered / rate_qps - 1) * 100
    answered = run.qps / rate_qps
    is_on_time = run.lateness_p99_ms <= LATENESS_P99_MS_MAX
    return error_percent <= RATE_ERROR_PERCENT_MAX and answered >= 0.99 and is_on_time


def rate_error_percent(runs, rate_qps):
    errors = [abs(run.offered / rate_qps - 1) * 100 for run in runs if run]
    return max(errors) if errors else None


def population_goals(name, runs, rate_qps):
    return [
        (
            f"{name}: largest error of the offered rate",
            rate_error_percent(runs, rate_qps),
            RATE_ERROR_PERCENT_MAX,
            {"unit": " %"},
        ),
        (
            f"{name}: p99 send lateness",
            median(runs, "lateness_p99_ms"),
            LATENESS_P99_MS_MAX,
            {"unit": " ms"},
        ),
    ]


def populations(bench):
    """Clients that each ask at their own constant rate, one query a segment, against the responder.

    24,000 clients are more than one process here may have open files, so generator and responder
    are two processes each, each pair on its own core. CPU per answer is that of the run's window.
    The highest rate held is the last of a list that was offered within 1 %, answered to 99 % and
    at most 5 ms late (p99); one run of each rate.
    """
    rows, goals = [], []
    rate_qps = CLIENTS * EACH_QPS
    for transport in (each for each in ("tcp", "dot") if each in bench.transports):
        many, few = f"{transport}, {CLIENTS:,} clients", f"{transport}, {FEW_CLIENTS} clients"
        asked = {many: rate_qps, few: rate_qps}
        seconds = max(bench.seconds, 6)
        cases = [
            (many, "throng", transport, of_clients(CLIENTS, rate_qps, seconds=seconds)),
            (few, "throng", transport, of_clients(FEW_CLIENTS, rate_qps, seconds=seconds)),
        ]
        if transport == "dot":
            name = f"dot, {DOT_CLIENTS:,} clients"
            asked[name] = DOT_RATE_QPS
            load = of_clients(DOT_CLIENTS, DOT_RATE_QPS, seconds=seconds)
            cases.append((name, "throng", transport, load))
        throng, cpu = bench.programs.throng, bench.server_cpu
        with targets.responder(throng, cpu, transport, PROCESSES) as target:
            results = bench.alternate("populations", target, cases)
            highest = highest_rate(bench, target, transport)
        rows += [row(name, asked[name], runs) for name, runs in results.items()]
        for name, runs in results.items():
            if name != few:
                goals += population_goals(name, runs, asked[name])
        costs = [median(results[name], "window_us_per_answer") for name in (many, few)]
        ratio = costs[0] / costs[1] if all(costs) else None
        goals.append((f"{many} / {FEW_CLIENTS}, CPU per answer", ratio, CPU_RATIO_MAX, {}))
        rows.append(row(f"{transport}, {CLIENTS:,} clients, highest rate held", *highest))
    return with_goals(tables.table(HEAD, rows), goals)


def highest_rate(bench, target, transport):
    """The highest rate that is held, and its run in a list."""
    held = (0, [])
    for rate_qps in RATES_QPS:
        load = bench.load(target, transport, **of_clients(CLIENTS, rate_qps, seconds=6))
        run = bench.once(f"populations-highest-{rate_qps}", "throng", target, load)
        if not holds(run, rate_qps):
            break
        held = (rate_qps, [run])
    return held


def sessions(bench):
    """Sessions of one query: every query of 2,000 clients opens a connection of its own.

    Each client keeps one query open (closed loop of its own, `closed:1`), with the statistics of
    every client kept; the rate is of new connections with an answer.
    """
    rows, goals = [], []
    limits = {"tcp": TCP_CONNECTIONS_MIN, "dot": DOT_CONNECTIONS_MIN}
    for transport in (each for each in limits if each in bench.transports):
        load = {
            "clients": 2_000,
            "outstanding": None,
            "per_client": "closed:1",
            "queries_per_connection": 1,
        }
        name = f"{transport}, one query a connection"
        with targets.responder(bench.programs.throng, bench.server_cpu, transport) as target:
            results = bench.alternate("sessions", target, [(name, "throng", transport, load)])
        runs = results[name]
        rows.append(row(name, None, runs))
        goals.append((f"{name}, a second", median(runs, "qps"), limits[transport], AT_LEAST))
    return with_goals(tables.table(HEAD, rows), goals)


def scripts(bench):
    """Clients that run a script in Lua, over UDP against the responder, one core each."""
    cases, folder = [], bench.raw
    for name, text in SCRIPTS.items():
        path = folder / f"{name.replace(' ', '-')}.lua"
        path.write_text(text)
        for count in (50, 200):
            load = {"clients": count, "outstanding": None, "script": str(path)}
            cases.append((f"{name}, {count} clients", "throng", "udp", load))
    with targets.responder(bench.programs.throng, bench.server_cpu, "udp") as target:
        results = bench.alternate("scripts", target, cases)
    rows = [row(name, None, runs) for name, runs in results.items()]
    goals = [
        (f"scripted queries a second, {name}", median(runs, "qps"), SCRIPTED_QPS_MIN, AT_LEAST)
        for name, runs in results.items()
    ]
    return with_goals(tables.table(HEAD, rows), goals)
