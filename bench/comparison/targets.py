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


class Target:
    """A running server; use it in a `with` block."""

    def __init__(self, name, command, cpu, ports):
        self.name = name
        self.ports = ports
        self.folder = tempfile.TemporaryDirectory(prefix="throng-bench-")
        self.log = Path(self.folder.name) / "server.log"
        self.command = command(Path(self.folder.name))
        with open(self.log, "wb") as output:
            self.process = processes.spawn(self.command, cpu, output)
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

    def wait_until_ready(self):
        deadline = time.monotonic() + START_SECONDS_MAX
        waiting = dict(self.ports)
        while waiting:
            if self.process.poll() is not None or time.monotonic() > deadline:
                tail = "\n".join(self.log.read_text(errors="replace").splitlines()[-20:])
                raise SystemExit(f"error: {self.name} did not start; it printed:\n{tail}")
            for transport, port in list(waiting.items()):
                if answers_udp(port) if transport == "udp" else accepts_tcp(port):
                    del waiting[transport]


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


def named(cpu, clients_max=20_000):
    """BIND with one thread and the 1,000-name zone, on UDP, TCP and DoT (its own certificate)."""
    do53, dot = processes.free_port(), processes.free_port()

    def command(folder):
        (folder / "zone.db").write_text(zone_text())
        (folder / "named.conf").write_text(
            f"""
controls {{ }};
options {{
  directory "{folder}"; pid-file "{folder}/named.pid"; session-keyfile "{folder}/session.key";
  managed-keys-directory "{folder}";
  recursion no; notify no; dnssec-validation no; empty-zones-enable no;
  tcp-clients {clients_max}; tcp-listen-queue 4096; udp-receive-buffer {RECEIVE_BUFFER_OCTETS};
  listen-on port {do53} {{ 127.0.0.1; }};
  listen-on port {dot} tls ephemeral {{ 127.0.0.1; }};
  listen-on-v6 {{ none; }};
}};
zone "{ZONE}" {{ type primary; file "zone.db"; }};
"""
        )
        return ["named", "-g", "-n", "1", "-U", "1", "-c", str(folder / "named.conf")]

    return Target("named", command, cpu, {"udp": do53, "tcp": do53, "dot": dot})


def responder(throng, cpu, transport):
    """throng's responder on one transport, answering any name."""
    port = processes.free_port()
    listen = f"{transport}:127.0.0.1:{port}"
    return Target(
        "throng responder",
        lambda _: [str(throng), "responder", "--listen", listen],
        cpu,
        {transport: port},
    )


def named_version():
    printed = subprocess.run(["named", "-v"], capture_output=True, text=True, check=True).stdout
    return " ".join(printed.split()[:2])
