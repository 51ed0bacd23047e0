"""Instructions of the generator's own code for one query, counted by callgrind.

`throng ceiling` runs engine and responder on the null driver in virtual time; callgrind counts only
within the function that is the generator's turn, once the load is steady. So the count has no
start-up, no kernel, no peer, and does not depend on what else the machine does.
"""

import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

from . import tables
from .rounds import with_goals

BUDGETS = Path(__file__).resolve().parent.parent / "budgets.toml"
# Whose instructions are counted.
COUNTED = "*Rig*counted_turn*"
CLIENTS, OUTSTANDING, QUERIES = 20, 100, 10_000
SECONDS_MAX = 1800
# Functions that are named beside the count.
DEAREST = 6

HEAD = ["transport", "instructions/query", "budget", "asked", "dearest functions"]


def instructions(bench):
    """Instructions in user space for one query: closed loop on the null driver, bursts of five.

    Counted by callgrind in the generator's turns only; cryptography is that of a CPU with AES-NI
    and AVX2, which is what valgrind shows to programs.
    """
    if not shutil.which("valgrind"):
        sys.exit("error: `valgrind` is not installed\nhint: apt-get install valgrind")
    budgets = tomllib.loads(BUDGETS.read_text())
    # They do not disturb each other: what is counted is not time.
    with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        of = {each: pool.submit(count, bench, each) for each in bench.transports}
    rows, goals = [], []
    for transport in bench.transports:
        total, dearest = of[transport].result()
        budget = budgets[transport]
        per_query = total / QUERIES
        bench.results.append({"label": f"instructions-{transport}", "instructions": per_query})
        print(f"  {transport}: {per_query:,.0f}, budget {budget['instructions']:,}", flush=True)
        if per_query > budget["instructions"]:
            bench.failures.append(
                f"{transport}: {per_query:,.0f} instructions a query, "
                f"budget {budget['instructions']:,} ({BUDGETS.name})"
            )
        asked = budget.get("asked")
        figures = [f"{per_query:,.0f}", f"{budget['instructions']:,}"]
        figures.append(f"{asked:,}" if asked else "")
        rows.append([transport, *figures, ", ".join(dearest)])
        if asked:
            goals.append((f"{transport} instructions a query", per_query, asked, {}))
    return with_goals(tables.table(HEAD, rows), goals)


def count(bench, transport):
    """Instructions of all queries together, and the functions that take most of them."""
    profile = bench.raw / f"callgrind-{transport}.out"
    command = ["valgrind", "--tool=callgrind", f"--toggle-collect={COUNTED}"]
    command += [f"--callgrind-out-file={profile}", str(bench.programs.throng), "ceiling"]
    command += ["--transport", transport, "--clients", str(CLIENTS)]
    command += ["--outstanding", str(OUTSTANDING), "--queries", str(QUERIES)]
    ended = subprocess.run(
        command, capture_output=True, text=True, timeout=SECONDS_MAX, check=False
    )
    if ended.returncode != 0:
        sys.exit(f"error: {' '.join(command)}: {ended.stderr.strip().splitlines()[-1:]}")
    costs = own_costs(profile.read_text())
    total = sum(costs.values())
    if total < QUERIES:
        sys.exit(f"error: {profile} has no function that matches {COUNTED}")
    dearest = costs.most_common(DEAREST)
    return total, [f"{short(name)} {cost / QUERIES:,.0f}" for name, cost in dearest]


def own_costs(text):
    """What each function costs itself, without those that it calls, from callgrind's output."""
    names, costs = {}, Counter()
    function, is_call = None, False
    for line in text.splitlines():
        if found := re.match(r"(c?)fn=\((\d+)\)(?: (.*))?$", line):
            if found[3]:
                names[found[2]] = found[3]
            if not found[1]:
                function = found[2]
        elif line.startswith("calls="):
            # The next line is the cost of what was called.
            is_call = True
        elif function and (found := re.match(r"[+*\-\d]\S* (\d+)$", line)):
            if not is_call:
                costs[names[function]] += int(found[1])
            is_call = False
    return costs


def short(name):
    """A function's own name, and the type or module that it belongs to."""
    plain = re.sub(r"<impl ([\w:]+)>", r"\1", name)
    plain = re.sub(r"<([\w:]+)(<[^>]*>)? as [^>]*>", r"\1", plain).replace("<", "").replace(">", "")
    words = [word for word in plain.split("::") if word]
    return "`" + "::".join(words[-2:]) + "`"
