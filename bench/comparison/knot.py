"""Debian 13's knotd over veth, where kxdpgun can be beside throng and dnsperf. Needs root."""

import os
import time

from . import processes, tables, targets, veth
from .generators import DNSPERF_MODES
from .rounds import AT_LEAST, HEAD, ratio, row, with_goals

# Transports that knotd 3.4 has.
TRANSPORTS = ("udp", "tcp", "dot", "doq")
# What generators that have no closed loop are asked for, and those beside them.
RATE_QPS = 100_000
# kxdpgun sends so many at a time.
BURST = 10
# knotd's receive buffer is net.core.rmem_default, which holds some 277 queries; a QUIC connection
# may have 4 streams there.
OUTSTANDING = {"udp": 200, "tcp": 1_000, "dot": 1_000, "doq": 800}
# CPU per answer, throng's sockets over kxdpgun's AF_XDP.
CPU_RATIO_MAX = 1.0
QPS_RATIO_MIN = 0.98


class VethKnot(veth.VethTarget):
    """knotd with one UDP worker in one namespace; the load comes from the other.

    A TCP worker of knotd 3.4 does one handshake at a time, waiting for the client: dnsperf stalls
    over DoT if there are few of them.

    kxdpgun 3.4 sends a message ID other than 0 over QUIC, against RFC 9250, section 4.2.1. knotd
    answers it; throng's responder does with `--doq-any-id`, which the tests of crate lab use.
    """

    peer_words = ("sh", "-c", 'ip link set there xdp off; exec "$@"', "sh")

    def __init__(self, program, cpu):
        # Each in a namespace of its own, so that its ports are free.
        ports = {"udp": 53, "tcp": 53, "dot": 853, "doq": 853}

        def make_command(address):
            def command(folder):
                targets.own_certificate(folder)
                (folder / "zone.db").write_text(targets.zone_text())
                settings = folder / "knot.conf"
                settings.write_text(knot_settings(folder, address, ports))
                return [*program, "-c", str(settings)]

            return command

        super().__init__("knotd over veth", make_command, cpu, ports)
        # It binds its threads itself.
        processes.pin_all_threads(self.process.pid, cpu)

    def is_ready(self, transport, port):
        ready = "server started" in self.log.read_text(errors="replace")
        if not ready:
            time.sleep(0.02)
        return ready


def knot_settings(folder, address, ports):
    """As many clients of each transport as a run may have."""
    return f"""
server:
    rundir: "{folder}"
    listen: {address}@{ports["udp"]}
    listen-tls: {address}@{ports["dot"]}
    listen-quic: {address}@{ports["doq"]}
    udp-workers: 1
    tcp-workers: 32
    background-workers: 1
    cert-file: "{folder}/certificate.pem"
    key-file: "{folder}/key.pem"
    tcp-max-clients: {targets.CLIENTS_MAX}
    quic-max-clients: {targets.CLIENTS_MAX}
log:
  - target: stderr
    any: info
database:
    storage: "{folder}"
control:
    listen: "{folder}/control"
template:
  - id: default
    storage: "{folder}"
    zonefile-sync: -1
    journal-content: none
zone:
  - domain: "{targets.ZONE}"
    file: "zone.db"
"""


def knot(bench):
    """knotd over a veth pair: two namespaces, no offload; every generator over each transport that
    both have, 200 clients with 1,000 outstanding (UDP 200, DoQ 800), and over UDP at a rate of
    100,000 a second too: kxdpgun has no closed loop. It sends ten at a time, neither matches nor
    times responses; its one query a connection over QUIC is in section churn-quic.
    """
    if os.geteuid() != 0:
        return "Not run: network namespaces and AF_XDP need root."
    if not bench.programs.knotd:
        return "Not run: it needs `servers/prepare`."
    rows, goals = [], []
    for transport in (each for each in bench.transports if each in TRANSPORTS):
        with VethKnot(bench.programs.knotd, bench.server_cpu) as target:
            results = bench.alternate("knot", target, cases_of(bench, transport))
        rows += [row(name, runs) for name, runs in results.items()]
        goals += goals_of(bench, transport, results)
    return with_goals(tables.table(HEAD, rows), goals)


def cases_of(bench, transport):
    """All generators that have this transport."""
    load = {"outstanding": OUTSTANDING[transport], "offload": False}
    tools = [tool for tool in bench.tools if tool == "throng" or transport in DNSPERF_MODES]
    cases = [(f"{tool} {transport}", tool, transport, load) for tool in tools]
    if transport != "udp":
        return cases
    frames = {"interface": "there"}
    cases += [("throng udp, AF_XDP", "throng", "udp", load | frames)]
    rated = {"outstanding": None, "rate_qps": RATE_QPS, "offload": False}
    at_rate = [
        ("dnsperf", "dnsperf", rated),
        ("throng", "throng", rated),
        ("throng", "throng", rated | {"burst": BURST}),
        ("throng, AF_XDP", "throng", rated | frames),
        ("throng, AF_XDP", "throng", rated | frames | {"burst": BURST}),
        # It sends in batches of ten.
        ("kxdpgun, AF_XDP", "kxdpgun", {"rate_qps": RATE_QPS, "burst": BURST}),
    ]
    wanted = {*bench.tools, "kxdpgun"}
    return cases + [
        (named(name, options), tool, "udp", options)
        for name, tool, options in at_rate
        if tool in wanted
    ]


def named(name, options):
    bursts = f" in bursts of {BURST}" if "burst" in options else ""
    return f"{name}, {RATE_QPS:,} qps{bursts}"


def goals_of(bench, transport, results):
    """What is asked of throng beside its peers."""
    goals = []
    if "dnsperf" in bench.tools and transport in DNSPERF_MODES:
        value = ratio(results, f"throng {transport}", f"dnsperf {transport}", "qps")
        goals.append((f"{transport} rate, throng / dnsperf", value, QPS_RATIO_MIN, AT_LEAST))
    if transport == "udp":
        below = named("kxdpgun, AF_XDP", {"burst": BURST})
        for name in ("throng", "throng, AF_XDP"):
            above = named(name, {"burst": BURST})
            value = ratio(results, above, below, "cpu_us_per_answer")
            goals.append((f"CPU per answer, {above} / kxdpgun", value, CPU_RATIO_MAX, {}))
    return goals
