"""Two network namespaces with a veth pair between them: what kxdpgun needs.

They have no names and end with the processes in them. Needs root.
"""

import ipaddress
import itertools
import subprocess

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


class VethResponder(targets.Printing):
    """throng's responder in one namespace; the load comes from the other."""

    def __init__(self, throng, cpu, transport):
        self.here, self.there = Namespace(), Namespace()
        try:
            self.connect()
            self.within, self.within_peer = self.here.within(), self.there.within()
            ports = {transport: processes.free_port()}
            command = targets.responder_command(throng, self.address, ports)
            super().__init__("throng responder over veth", command, cpu, ports)
        except BaseException:
            self.close_namespaces()
            raise

    def connect(self):
        """What a network card that is not there would still do has to be switched off, because
        kxdpgun reads frames as they are."""
        network = ipaddress.IPv4Address("10.53.0.0") + next(NUMBERS) * 256
        self.address = str(network + 1)
        off = "tx off rx off gso off gro off tso off"
        self.here.run("ip link set lo up")
        peer = f"peer name there netns {self.there.holder.pid}"
        self.here.run(f"ip link add here type veth {peer}")
        for namespace, device, number in ((self.here, "here", 1), (self.there, "there", 2)):
            namespace.run(f"ip addr add {network + number}/24 dev {device}")
            namespace.run(f"ip link set {device} up")
            namespace.run(f"ethtool -K {device} {off}")

    def close(self):
        super().close()
        self.close_namespaces()

    def close_namespaces(self):
        self.here.close()
        self.there.close()
