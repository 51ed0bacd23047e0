"""AF_XDP over a veth pair between two namespaces, beside kxdpgun. Needs root."""

import os

from . import processes, tables, targets, veth
from .rounds import AT_LEAST, HEAD, median, row, with_goals

# kxdpgun has no closed loop: it is asked for each of these, and its best is taken.
KXDPGUN_RATES_QPS = (200_000, 400_000, 800_000)
# Answers a second, throng's over kxdpgun's best.
RATE_RATIO_MIN = 1.5


class VethResponder(veth.VethTarget):
    """throng's responder over a veth pair."""

    # kxdpgun leaves its program on the interface, and only one can be there.
    peer_words = ("sh", "-c", 'ip link set there xdp off; exec "$@"', "sh")

    def __init__(self, throng, cpu, flags):
        ports = {"udp": processes.free_port()}

        def command(address):
            return targets.responder_command(throng, address, ports, flags=flags)

        super().__init__("throng responder over veth", command, cpu, ports)


def xdp(bench):
    """throng with AF_XDP, throng with sockets and kxdpgun against throng's responder over a veth
    pair: two namespaces, no offload, AF_XDP in native copy mode, the responder with sockets and
    with AF_XDP. throng has 200 clients with 1,000 outstanding in all and matches and times each
    response; kxdpgun does neither, and is asked for several rates, of which its best counts.
    """
    if os.geteuid() != 0:
        return "Not run: network namespaces and AF_XDP need root."
    cases = [
        ("throng xdp", "throng", "udp", {"interface": "there"}),
        ("throng sockets", "throng", "udp", {"offload": False}),
    ]
    if bench.programs.kxdpgun:
        cases += [
            (f"kxdpgun, asked for {rate:,}", "kxdpgun", "udp", {"rate_qps": rate})
            for rate in KXDPGUN_RATES_QPS
        ]
    rows, goals = [], []
    for words, flags in (("sockets", ()), ("xdp", ("--driver", "xdp", "--interface", "here"))):
        try:
            with VethResponder(bench.programs.throng, bench.server_cpu, flags) as target:
                results = bench.alternate(f"xdp-{words}", target, cases)
        except targets.NotStarted as error:
            print(f"  {error}", flush=True)
            continue
        rows += [row(f"{name}, responder on {words}", runs) for name, runs in results.items()]
        best = [median(runs, "qps") or 0 for name, runs in results.items() if "kxdpgun" in name]
        own = median(results["throng xdp"], "qps")
        ratio = own / max(best) if own and best and max(best) else None
        name = f"answers a second, responder on {words}, throng xdp / kxdpgun's best"
        goals.append((name, ratio, RATE_RATIO_MIN, AT_LEAST))
    return with_goals(tables.table(HEAD, rows), goals)
