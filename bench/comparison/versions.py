"""Does `throng compare` tell a slower target from noise? False alarms, and what is caught."""

import json
import subprocess

from . import tables, targets
from .rounds import AT_LEAST, with_goals

# What every response of the target takes; the slower one takes 10 % more.
DELAY_US = 5_000
SLOWER_US = 5_500
FALSE_ALARMS_MAX = 0.05
CAUGHT_MIN = 0.95
# Runs of A compared with A, from which the noise of single runs is known.
NOISE_RUNS = 30
# Intervals of a run: a run of 3 s has 30.
INTERVAL = "100ms"


def one_run(bench, target, file):
    """One run of throng against the target, its record in `file`."""
    words = [str(bench.programs.throng), "run", "--quiet", "--names", bench.names]
    words += ["--server", f"{target.address}:{target.port('udp')}", "--outstanding", "20"]
    words += ["--workers", "1", "--cpus", str(bench.generator_cpu), "--interval", INTERVAL]
    words += ["--duration", f"{bench.seconds}s", "--record", str(file)]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def found(bench, a, b, *flags):
    """What `throng compare` found of B."""
    words = [str(bench.programs.throng), "compare", str(a), str(b), "--format", "json", *flags]
    ended = subprocess.run(words, check=True, capture_output=True, text=True)
    return json.loads(ended.stdout)["finding"]


def delayed(bench, delay_us):
    return targets.responder(
        bench.programs.throng, bench.server_cpu, "udp", flags=["--delay", f"{delay_us}us"]
    )


def alternate(bench, sides, folder, rounds):
    """Runs of both sides in turn, ABBA; returns their folders."""
    for name, _ in sides:
        (folder / name).mkdir(parents=True, exist_ok=True)
    for number in range(rounds):
        for name, target in sides[:: -1 if number % 2 else 1]:
            one_run(bench, target, folder / name / f"{number:03}.json")
    return [folder / name for name, _ in sides]


def single(bench, usual, slower, folder):
    """Pairs of one run each, with noise known from runs of A compared with A."""
    alternate(bench, [("noise", usual)], folder, NOISE_RUNS)
    results = {}
    for name, other in (("A/A", usual), ("A/B", slower)):
        sides = [("a", usual), ("b", other)]
        a, b = alternate(bench, sides, folder / name.replace("/", ""), bench.pairs)
        files = [f"{number:03}.json" for number in range(bench.pairs)]
        results[name] = [
            found(bench, a / file, b / file, "--noise", str(folder / "noise")) for file in files
        ]
    return results


def several(bench, usual, slower, folder):
    """Comparisons of several runs a side, which bring their own noise."""
    results = {}
    for name, other in (("A/A", usual), ("A/B", slower)):
        results[name] = []
        for number in range(bench.pairs):
            sides = [("a", usual), ("b", other)]
            place = folder / name.replace("/", "") / f"{number:03}"
            a, b = alternate(bench, sides, place, bench.rounds)
            results[name].append(found(bench, a, b))
    return results


def judged(name, results):
    """A row for each kind of comparison, and the goals."""
    rows = []
    for kind, findings in results.items():
        counts = [findings.count(each) for each in ("slower", "faster", "mixed")]
        counts += [findings.count(each) for each in ("same", "cannot_tell")]
        rows.append([f"{name}, {kind}", str(len(findings)), *map(str, counts)])
    alarms = sum(each in ("slower", "faster", "mixed") for each in results["A/A"])
    caught = results["A/B"].count("slower")
    goals = [
        (f"{name}: false alarms of A/A", alarms / len(results["A/A"]), FALSE_ALARMS_MAX, {}),
        (f"{name}: 10 % slower caught", caught / len(results["A/B"]), CAUGHT_MIN, AT_LEAST),
    ]
    return rows, goals


def compare(bench):
    """throng compare: the same responder twice, and one whose responses take 10 % longer.

    Single pairs with 30 runs of noise, then comparisons of several runs a side (`--rounds`; with
    one there are none).
    """
    head = ["comparison", "number", "slower", "faster", "mixed", "same", "cannot tell"]
    rows, goals = [], []
    with delayed(bench, DELAY_US) as usual, delayed(bench, SLOWER_US) as slower:
        methods = [("one run a side", single), ("several runs a side", several)]
        for name, method in methods[: 1 if bench.rounds == 1 else None]:
            folder = bench.raw / f"compare-{method.__name__}"
            results = method(bench, usual, slower, folder)
            bench.results.append({"label": f"compare {name}", "findings": results})
            more_rows, more_goals = judged(name, results)
            rows += more_rows
            goals += more_goals
            print(f"  compare {name}: {results}", flush=True)
    return with_goals(tables.table(head, rows), goals)
