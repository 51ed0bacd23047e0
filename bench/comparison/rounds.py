"""What all sections share: alternating runs of several cases, and their rows in a table."""

import statistics
from dataclasses import asdict, dataclass, field
from pathlib import Path

from . import generators, processes, tables
from .generators import ENCRYPTED, Load, Programs, RunFailed


@dataclass
class Bench:
    """What all sections share."""

    programs: Programs
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
    # Comparisons of each kind in section `compare`.
    pairs: int = 30
    sources: processes.SourceAddresses = field(default_factory=processes.SourceAddresses)
    # Every run, for raw/results.json.
    results: list = field(default_factory=list)
    # Length of section `soak`.
    minutes: float = 60
    # Budgets and limits that were passed: the only thing that makes `bench/run` fail.
    failures: list = field(default_factory=list)

    def load(self, target, transport, **options):
        options.setdefault("seconds", self.seconds)
        if transport in ENCRYPTED:
            options.setdefault("certificate", str(target.certificate))
        return Load(
            transport=transport,
            address=target.address,
            port=target.port(transport),
            names=self.names,
            sources=self.sources.next(),
            within=target.within_peer,
            **options,
        )

    def once(self, label, tool, target, load, watch_anonymous=False):
        """One run; None, and a line on the terminal, if it gave no result."""
        raw = self.raw / f"{len(self.results):03}-{label}-{tool.replace(' ', '-')}"
        dropped = processes.udp_receive_errors()
        entry = {"label": label, "tool": tool, "load": asdict(load)}
        self.results.append(entry)
        try:
            measured = generators.run(
                tool, self.programs, load, target, self.generator_cpu, raw, watch_anonymous
            )
        except RunFailed as error:
            entry["failed"] = str(error)
            print(f"  {label} {tool}: no result: {error}", flush=True)
            return None
        entry["measured"] = asdict(measured)
        entry["receive_buffer_drops"] = processes.udp_receive_errors() - dropped
        drops = f"buffer drops {entry['receive_buffer_drops']}"
        print(f"  {label} {tool}: {one_line(load, measured)}, {drops}", flush=True)
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

    def once_each(self, label, target, cases):
        """One run of every case, in order; for sections that alternate servers too."""
        runs = []
        for _, tool, transport, options in cases:
            load = self.load(target, transport, **options)
            runs.append(self.once(f"{label}-{transport}", tool, target, load))
        return runs


def one_line(load, measured):
    if load.queries_per_connection is None:
        rate, cost, of = measured.qps, measured.cpu_us_per_answer, "answers"
    else:
        rate, cost = measured.connections_per_second, measured.cpu_us_per_connection
        of = "connections"
    return f"{rate:,.0f} {of}/s, {cost:.2f} us each, lost {measured.lost}"


HEAD = ["generator", "answers/s", "CPU us/answer", "server us/answer"]
HEAD += ["load g/s %", "RSS MB", "lost", "runs"]


def row(name, runs):
    def cells(good):
        return [
            tables.spread([run.qps for run in good], "{:,.0f}"),
            tables.spread([run.cpu_us_per_answer for run in good]),
            tables.spread([run.server_us_per_answer for run in good]),
            loads(good),
            tables.spread([run.rss_octets_max / 1e6 for run in good], "{:.1f}"),
            tables.least_to_most([run.lost for run in good]),
        ]

    return row_of(name, runs, HEAD, cells)


def row_of(name, runs, head, cells):
    """The name, what `cells` makes of the runs that have a result, and how many those are."""
    good = [run for run in runs if run]
    middle = cells(good) if good else ["no result", *[""] * (len(head) - 3)]
    return [name, *middle, f"{len(good)} of {len(runs)}"]


def loads(good):
    """Percent of a core that generator and server used."""
    generator = statistics.median(run.cpu_seconds / run.wall_seconds for run in good)
    server = statistics.median(run.server_cpu_seconds / run.wall_seconds for run in good)
    return f"{generator * 100:.0f}/{server * 100:.0f}"


def verdicts(good):
    return "/".join(sorted({run.verdict for run in good if run.verdict}))


def median(runs, figure):
    values = [getattr(run, figure) for run in runs if run]
    return statistics.median(values) if values else None


def ratio(results, above, below, figure):
    """Median of one over median of the other; None if either has no result."""
    top, bottom = median(results.get(above, []), figure), median(results.get(below, []), figure)
    return top / bottom if top is not None and bottom else None


def with_goals(text, goals):
    """The text, then a line for each goal.

    `goals` holds (name, value or None if there is no result, limit, further arguments of
    `tables.goal`).
    """
    lines = [tables.goal(name, value, limit, **more) for name, value, limit, more in goals]
    return "\n\n".join(each for each in (text, "\n".join(lines)) if each)


AT_LEAST = {"at_least": True}
