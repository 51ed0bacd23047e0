"""`throng capacity` against the responder with a programmed ceiling: how near, and how soon."""

import json

from . import processes, tables, targets
from .generators import ENCRYPTED
from .rounds import with_goals

CEILINGS_QPS = (11_000, 23_000, 37_000)
TRANSPORTS = ("udp", "tcp", "dot")
# What happens to queries over the ceiling.
THEN = ("delay", "drop")
ERROR_PERCENT_MAX = 3
SECONDS_MAX = 60
# A search that has not ended by then has no result.
KILL_SECONDS = 180

HEAD = ["transport", "ceiling", "then", "found", "error %", "limit between", "seconds", "trials"]
HEAD += ["limit"]


def capacity(bench):
    """`throng capacity` against throng's responder, which answers up to a ceiling and no more.

    Over the ceiling queries queue (`delay`, 10,000 of them at most) or are dropped at once
    (`drop`). One search of each, with the defaults: less than 0.1 % lost and p99 below 10 ms.
    Seconds are those of the whole command.
    """
    rows, errors, seconds = [], [], []
    for transport in (each for each in TRANSPORTS if each in bench.transports):
        for ceiling in CEILINGS_QPS:
            for then in THEN:
                found = search(bench, transport, ceiling, then)
                rows.append(row(transport, ceiling, then, found))
                if found is None or found["answer"]["value"] is None:
                    errors.append(None)
                    continue
                errors.append(error_percent(found, ceiling))
                seconds.append(found["seconds"])
    is_whole = bool(errors) and None not in errors
    worst = max(errors, key=abs) if is_whole else None
    longest = max(seconds) if is_whole else None
    goals = [
        ("largest error", None if worst is None else abs(worst), ERROR_PERCENT_MAX, {"unit": " %"}),
        ("longest search", longest, SECONDS_MAX, {"unit": " s"}),
    ]
    return with_goals(tables.table(HEAD, rows), goals)


def search(bench, transport, ceiling, then):
    """The document of one search, with its seconds; None if it ended without any."""
    label = f"capacity-{transport}-{ceiling}-{then}"
    flags = ["--ceiling", f"{ceiling},then={then}"]
    throng = bench.programs.throng
    with targets.responder(throng, bench.server_cpu, transport, flags=flags) as target:
        server = f"{target.address}:{target.port(transport)}"
        command = [str(throng), "capacity", "--server", server, "--transport", transport]
        command += ["--names", bench.names, "--workers", "1", "--quiet", "--format", "json"]
        if transport in ENCRYPTED:
            command += ["--tls-ca", str(target.certificate)]
        output = bench.raw / f"{len(bench.results):03}-{label}.json"
        ended = processes.run(command, bench.generator_cpu, output, KILL_SECONDS)
    entry = {"label": label, "tool": "throng", "seconds": ended.wall_seconds}
    bench.results.append(entry)
    try:
        found = json.loads(output.read_text())
    except json.JSONDecodeError:
        entry["failed"] = f"no answer, exit status {ended.status}"
        print(f"  {label}: no result, see {output}", flush=True)
        return None
    entry["answer"] = found["answer"]
    found["seconds"] = ended.wall_seconds
    value = found["answer"]["value"]
    shown = "nothing" if value is None else f"{value:,.0f} qps"
    print(f"  {label}: {shown} in {ended.wall_seconds:.1f} s", flush=True)
    return found


def error_percent(found, ceiling):
    return (found["answer"]["value"] / ceiling - 1) * 100


def row(transport, ceiling, then, found):
    cells = [transport, f"{ceiling:,}", then]
    if found is None or found["answer"]["value"] is None:
        return [*cells, "no result", "", "", "", "", ""]
    answer = found["answer"]
    bounds = [answer["low"], answer["high"]]
    between = " to ".join("-" if bound is None else f"{bound:,.0f}" for bound in bounds)
    return [
        *cells,
        f"{answer['value']:,.0f}",
        f"{error_percent(found, ceiling):+.2f}",
        between,
        f"{found['seconds']:.1f}",
        len(found["trials"]),
        answer["limit"],
    ]
