"""Two network namespaces with a veth pair between them: what kxdpgun needs.

They have no names and end with the processes in them. Needs root.
"""

import ipaddress
import itertools
import subprocess
import time

from . import processes, targets

NUMBERS = itertools.count(1)


class Namespace:
    """A network namespace; it exists as long as its holder runs."""

    def __init__(self):
        self.holder = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "--", "unshare", "--net"]
            + ["sh", "-c", "echo there; exec cat"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        # What unshare starts says something only after the namespace is made.
        self.holder.stdout.readline()

    def within(self):
        return ("nsenter", "--target", str(self.holder.pid), "--net", "--")

    def run(self, words):
        subprocess.run([*self.within(), *words.split()], check=True, capture_output=True)

    def close(self):
        self.holder.kill()
        self.holder.wait()


def connect(here, there):
    """A veth pair between two namespaces, its ends named like them; returns the address of the
    first. What a network card that is not there would still do has to be switched off, because
    kxdpgun reads frames as they are."""
    network = ipaddress.IPv4Address("10.53.0.0") + next(NUMBERS) * 256
    off = "tx off rx off gso off gro off tso off"
    here.run("ip link set lo up")
    here.run(f"ip link add here type veth peer name there netns {there.holder.pid}")
    for namespace, device, number in ((here, "here", 1), (there, "there", 2)):
        namespace.run(f"ip addr add {network + number}/24 dev {device}")
        namespace.run(f"ip link set {device} up")
        namespace.run(f"ethtool -K {device} {off}")
    return str(network + 1)


class VethKnot(targets.Printing):
    """Debian 13's knotd with DoQ in one namespace; the load comes from the other.

    kxdpgun 3.4 sends a message ID other than 0 over QUIC, against RFC 9250, section 4.2.1. knotd
    answers it; throng's responder does with `--doq-any-id`, which the tests of crate lab use.
    """

    def __init__(self, program, cpu):
        self.here, self.there = Namespace(), Namespace()
        try:
            self.address = connect(self.here, self.there)
            self.within, self.within_peer = self.here.within(), self.there.within()
            ports = {"doq": processes.free_port()}

            def command(folder):
                targets.own_certificate(folder)
                (folder / "zone.db").write_text(targets.zone_text())
                settings = folder / "knot.conf"
                settings.write_text(knot_settings(folder, self.address, ports["doq"]))
                return [*program, "-c", str(settings)]

            super().__init__("knotd over veth", command, cpu, ports)
            processes.pin_all_threads(self.process.pid, cpu)
        except BaseException:
            self.close_namespaces()
            raise

    def is_ready(self, transport, port):
        ready = "server started" in self.log.read_text(errors="replace")
        if not ready:
            time.sleep(0.02)
        return ready

    def close(self):
        super().close()
        self.close_namespaces()

    def close_namespaces(self):
        self.here.close()
        self.there.close()


def knot_settings(folder, address, port):
    """One worker of each kind, and more QUIC clients than the 10,000 of one run."""
    return f"""
server:
    rundir: "{folder}"
    listen: {address}@53
    listen-quic: {address}@{port}
    udp-workers: 1
    tcp-workers: 1
    background-workers: 1
    cert-file: "{folder}/certificate.pem"
    key-file: "{folder}/key.pem"
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
