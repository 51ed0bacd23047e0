"""Servers under test: BIND and throng's own responder, each pinned to one core."""

import socket
import subprocess
import tempfile
import time
from pathlib import Path

from . import processes

ZONE = "bench.test"
NAMES = 1000
START_SECONDS_MAX = 30

# Enough for 1,000 queries at once in the server's one socket: the kernel's usual default of
# 212,992 octets holds 277. The kernel cuts it to net.core.rmem_max.
RECEIVE_BUFFER_OCTETS = 4 * 1024 * 1024

# BIND takes 150 TCP clients, 300 HTTP clients and 100 streams a connection unless told.
CLIENTS_MAX = 20_000
STREAMS_MAX = 1_000

ENCRYPTED = {"dot", "doh2", "doq", "doh3"}


def zone_text():
    lines = [
        f"$ORIGIN {ZONE}.",
        "$TTL 1",
        f"@ IN SOA ns.{ZONE}. hostmaster.{ZONE}. 1 3600 600 86400 1",
        f"@ IN NS ns.{ZONE}.",
        "ns IN A 127.0.0.1",
    ]
    for number in range(1, NAMES + 1):
        lines.append(f"test-record-{number} IN A 192.0.{2 + number // 250}.{number % 250 + 1}")
    return "\n".join(lines) + "\n"


def names_text():
    return "".join(f"test-record-{number}.{ZONE} A\n" for number in range(1, NAMES + 1))


def soa_query():
    labels = b"".join(bytes([len(label)]) + label.encode() for label in ZONE.split("."))
    return b"\x74\x68\0\0\0\x01\0\0\0\0\0\0" + labels + b"\0\0\x06\0\x01"


class NotStarted(Exception):
    """A server did not start: this version of it may not have the transport."""


class Target:
    """A running server; use it in a `with` block."""

    # Address that the load goes to, and the words before the commands of server and generators if
    # they are in network namespaces.
    address = "127.0.0.1"
    within = ()
    within_peer = ()

    def __init__(self, name, command, cpu, ports):
        self.name = name
        self.ports = ports
        self.folder = tempfile.TemporaryDirectory(prefix="throng-bench-")
        # What its TLS certificate is verified against, if it has one.
        self.certificate = Path(self.folder.name) / "certificate.pem"
        self.log = Path(self.folder.name) / "server.log"
        try:
            self.command = [*self.within, *command(Path(self.folder.name))]
            with open(self.log, "wb") as output:
                self.process = processes.spawn(self.command, cpu, output)
        except BaseException:
            self.folder.cleanup()
            raise
        try:
            self.wait_until_ready()
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        processes.stop(self.process)
        self.folder.cleanup()

    def cpu_seconds(self):
        return processes.cpu_seconds(self.process.pid)

    def port(self, transport):
        return self.ports[transport]

    def is_ready(self, transport, port):
        return answers_udp(port) if transport == "udp" else accepts_tcp(port)

    def wait_until_ready(self):
        deadline = time.monotonic() + START_SECONDS_MAX
        waiting = dict(self.ports)
        while waiting:
            if self.process.poll() is not None or time.monotonic() > deadline:
                printed = self.log.read_text(errors="replace").strip().splitlines()
                last = " ".join(line.strip() for line in printed[-5:] if line.strip())
                raise NotStarted(f"{self.name} did not start: {last}")
            for transport, port in list(waiting.items()):
                if self.is_ready(transport, port):
                    del waiting[transport]


class Printing(Target):
    """A server that prints a line once it listens: for ports that no plain query can try."""

    def is_ready(self, transport, port):
        ready = "listening" in self.log.read_text(errors="replace")
        if not ready:
            time.sleep(0.02)
        return ready


def answers_udp(port):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.settimeout(0.2)
        probe.connect(("127.0.0.1", port))
        try:
            probe.send(soa_query())
            return probe.recv(512)[3] & 0x0F == 0
        except OSError:
            time.sleep(0.05)
            return False


def accepts_tcp(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
        return True
    except OSError:
        time.sleep(0.05)
        return False


def own_certificate(folder):
    """A P-256 certificate for localhost, certificate.pem and key.pem in `folder`.

    It is no CA: a verifying client refuses a CA's certificate as that of a server.
    """
    settings = folder / "certificate.conf"
    settings.write_text(
        "[req]\ndistinguished_name = name\nprompt = no\nx509_extensions = server\n"
        "[name]\nCN = localhost\n"
        "[server]\nbasicConstraints = critical, CA:FALSE\n"
        "subjectAltName = DNS:localhost, IP:127.0.0.1\n"
    )
    command = ["openssl", "req", "-x509", "-new", "-nodes", "-days", "30", "-config", settings]
    command += ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
    command += ["-keyout", folder / "key.pem", "-out", folder / "certificate.pem"]
    subprocess.run(command, check=True, capture_output=True)


def named(cpu):
    """BIND with one thread and the 1,000-name zone on UDP, TCP, DoT and DoH."""
    do53, dot, doh2 = (processes.free_port() for _ in range(3))

    def command(folder):
        own_certificate(folder)
        (folder / "zone.db").write_text(zone_text())
        (folder / "named.conf").write_text(
            f"""
controls {{ }};
tls own {{ cert-file "{folder}/certificate.pem"; key-file "{folder}/key.pem"; }};
http own {{
  endpoints {{ "/dns-query"; }};
  listener-clients {CLIENTS_MAX}; streams-per-connection {STREAMS_MAX};
}};
options {{
  directory "{folder}"; pid-file "{folder}/named.pid"; session-keyfile "{folder}/session.key";
  managed-keys-directory "{folder}";
  recursion no; notify no; dnssec-validation no; empty-zones-enable no;
  tcp-clients {CLIENTS_MAX}; tcp-listen-queue 4096; udp-receive-buffer {RECEIVE_BUFFER_OCTETS};
  listen-on port {do53} {{ 127.0.0.1; }};
  listen-on port {dot} tls own {{ 127.0.0.1; }};
  listen-on port {doh2} tls own http own {{ 127.0.0.1; }};
  listen-on-v6 {{ none; }};
}};
zone "{ZONE}" {{ type primary; file "zone.db"; }};
"""
        )
        return ["named", "-g", "-n", "1", "-U", "1", "-c", str(folder / "named.conf")]

    ports = {"udp": do53, "tcp": do53, "dot": dot, "doh2": doh2}
    return Target("named", command, cpu, ports)


def responder_command(throng, address, ports, processes_wanted=1, flags=()):
    """Makes the responder's command line for its folder; it answers any name."""

    def command(folder):
        words = [str(throng), "responder", "--processes", str(processes_wanted), *flags]
        for transport, port in ports.items():
            words += ["--listen", f"{transport}:{address}:{port}"]
        if ports.keys() & ENCRYPTED:
            own_certificate(folder)
            words += ["--tls-cert", str(folder / "certificate.pem")]
            words += ["--tls-key", str(folder / "key.pem")]
        return words

    return command


def responder(throng, cpu, transport, processes_wanted=1, flags=()):
    """throng's responder on one transport."""
    return responder_of(throng, cpu, [transport], processes_wanted, flags)


def responder_of(throng, cpu, transports, processes_wanted=1, flags=()):
    """throng's responder on several transports."""
    ports = {transport: processes.free_port() for transport in transports}
    command = responder_command(throng, Target.address, ports, processes_wanted, flags)
    return Printing("throng responder", command, cpu, ports)


def churn_loop(program, cpu):
    """The bare C loop of loops/churn.c: every query over TCP comes back with QR set."""
    ports = {"tcp": processes.free_port()}
    return Printing("C loop", lambda _: [str(program), "answer", str(ports["tcp"])], cpu, ports)


def datagram_loop(program, cpu):
    """The answering half of loops/datagrams.c: every query comes back with QR set."""
    ports = {"udp": processes.free_port()}
    return Printing("C pair", lambda _: [str(program), "answer", str(ports["udp"])], cpu, ports)


def named_version():
    printed = subprocess.run(["named", "-v"], capture_output=True, text=True, check=True).stdout
    return " ".join(printed.split()[:2])
