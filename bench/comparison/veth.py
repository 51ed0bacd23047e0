"""Two network namespaces with a veth pair between them: what kxdpgun needs.

They have no names and end with the processes in them. Needs root.
"""

import ipaddress
import itertools
import subprocess

from . import targets

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


class VethTarget(targets.Printing):
    """A server in a namespace of its own; the load comes from another, by interface `there`."""

    # Words before the generators' command, within their namespace.
    peer_words = ()

    def __init__(self, name, make_command, cpu, ports):
        """`make_command` gets the server's address, for which there is none before the pair."""
        self.here, self.there = Namespace(), Namespace()
        try:
            self.address = connect(self.here, self.there)
            self.within = self.here.within()
            self.within_peer = (*self.there.within(), *self.peer_words)
            super().__init__(name, make_command(self.address), cpu, ports)
        except BaseException:
            self.close_namespaces()
            raise

    def close(self):
        super().close()
        self.close_namespaces()

    def close_namespaces(self):
        self.here.close()
        self.there.close()
