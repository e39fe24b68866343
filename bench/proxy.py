"""Our proxy against a direct connection, side by side: throughput of one upload, round trip of 100 bytes, CPU.

``python -m bench.proxy [--rounds N] [--megabytes N] [--pings N]``. Sink, echo and proxy are processes of their own;
the variants of a round take turns in a shuffled order, and each figure is the median over the rounds. With
``TOXIPROXY_SERVER`` set to the real binary it takes part.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

import psutil

_BLOCK = 64 * 1024
_HOST = "127.0.0.1"


@dataclass
class Figures:
    """What the rounds of one variant measured."""

    megabytes_per_s: list[float] = field(default_factory=list)
    cpu_s_per_gb: list[float] = field(default_factory=list)
    ping_p50_us: list[float] = field(default_factory=list)
    ping_p99_us: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class ProxyVariant:
    """Where to connect for one way through, and the process in between, if any."""

    name: str
    sink_port: int
    echo_port: int
    process: psutil.Process | None


# --- the peers, each a process of its own


def _serve_forever(handle: Callable[[socket.socket], None]) -> None:
    listener = socket.create_server((_HOST, 0))
    print(listener.getsockname()[1], flush=True)
    while True:
        connection, _ = listener.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=handle, args=(connection,), daemon=True).start()


def _sink(connection: socket.socket) -> None:
    """Read as many bytes as the first 8 say, then answer one byte."""
    buffer = bytearray(256 * 1024)
    with connection:
        remaining = int.from_bytes(connection.recv(8, socket.MSG_WAITALL), "big")
        while remaining > 0:
            received = connection.recv_into(buffer)
            if not received:
                return
            remaining -= received
        connection.sendall(b"k")


def _echo(connection: socket.socket) -> None:
    with connection:
        while data := connection.recv(_BLOCK):
            connection.sendall(data)


def _proxy() -> None:
    import asyncio

    from chaos.proxy.server import run

    asyncio.run(run(_HOST, 0, 1, lambda port: print(port, flush=True)))


_CHILDREN: dict[str, Callable[[], None]] = {
    "sink": lambda: _serve_forever(_sink),
    "echo": lambda: _serve_forever(_echo),
    "proxy": _proxy,
}


@contextmanager
def child(role: str) -> Iterator[tuple[int, psutil.Process]]:
    """A child of this program in one role: its port and its process."""
    command = [sys.executable, "-m", "bench.proxy", "--child", role]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield int(process.stdout.readline()), psutil.Process(process.pid)
        finally:
            process.terminate()


@contextmanager
def _toxiproxy(binary: str) -> Iterator[tuple[int, psutil.Process]]:
    """The real server, on a port that was free a moment ago."""
    with socket.create_server((_HOST, 0)) as probe:
        port = probe.getsockname()[1]
    with subprocess.Popen([binary, "-host", _HOST, "-port", str(port)], stdout=subprocess.DEVNULL) as process:
        try:
            for _ in range(100):
                with socket.socket() as attempt:
                    if attempt.connect_ex((_HOST, port)) == 0:
                        break
                time.sleep(0.05)  # the proxy signals nothing when it listens
            yield port, psutil.Process(process.pid)
        finally:
            process.terminate()


# --- measuring


def _call(api_port: int, path: str, body: dict[str, object]) -> dict[str, object]:
    request = urllib.request.Request(f"http://{_HOST}:{api_port}{path}", json.dumps(body).encode(), method="POST")
    with urllib.request.urlopen(request, timeout=5) as response:
        answer: dict[str, object] = json.load(response)
        return answer


def _through(api_port: int, name: str, target_port: int, toxic: dict[str, object] | None) -> int:
    body: dict[str, object] = {"name": name, "listen": f"{_HOST}:0", "upstream": f"{_HOST}:{target_port}"}
    listen = str(_call(api_port, "/proxies", body)["listen"])
    if toxic is not None:
        for stream in ("upstream", "downstream"):
            _call(api_port, f"/proxies/{name}/toxics", toxic | {"stream": stream})
    return int(listen.rpartition(":")[2])


def _connect(port: int) -> socket.socket:
    connection = socket.create_connection((_HOST, port), timeout=60)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def _upload_s(port: int, size: int) -> float:
    block = bytes(_BLOCK)
    with _connect(port) as connection:
        started = time.perf_counter()
        connection.sendall(size.to_bytes(8, "big"))
        for _ in range(size // _BLOCK):
            connection.sendall(block)
        if connection.recv(1) != b"k":
            raise ConnectionError("the sink did not get everything")
        return time.perf_counter() - started


def _pings_us(port: int, count: int) -> list[float]:
    message = bytes(100)
    samples = []
    with _connect(port) as connection:
        for _ in range(count):
            started = time.perf_counter()
            connection.sendall(message)
            received = 0
            while received < len(message):
                received += len(connection.recv(len(message)))
            samples.append((time.perf_counter() - started) * 1e6)
    return sorted(samples[count // 10 :])


def _measure(variant: ProxyVariant, figures: Figures, size: int, pings: int) -> None:
    cpu_before = sum(variant.process.cpu_times()[:2]) if variant.process else 0.0
    elapsed = _upload_s(variant.sink_port, size)
    if variant.process:
        cpu_s = sum(variant.process.cpu_times()[:2]) - cpu_before
        figures.cpu_s_per_gb.append(cpu_s / (size / 1e9))
    figures.megabytes_per_s.append(size / elapsed / 1e6)
    samples = _pings_us(variant.echo_port, pings)
    figures.ping_p50_us.append(samples[len(samples) // 2])
    figures.ping_p99_us.append(samples[len(samples) * 99 // 100])


def _variants(stack: ExitStack) -> list[ProxyVariant]:
    sink_port, _ = stack.enter_context(child("sink"))
    echo_port, _ = stack.enter_context(child("echo"))
    servers = [("gapless", *stack.enter_context(child("proxy")))]
    binary = os.environ.get("TOXIPROXY_SERVER")
    if binary:
        servers.append(("toxiproxy", *stack.enter_context(_toxiproxy(binary))))
    variants = [ProxyVariant("direct", sink_port, echo_port, None)]
    no_delay: dict[str, object] = {"type": "latency", "attributes": {"latency": 0}}
    for name, api_port, process in servers:
        for suffix, toxic in (("", None), ("+latency0", no_delay)):
            ports = [
                _through(api_port, f"{kind}{suffix}", port, toxic)
                for kind, port in (("sink", sink_port), ("echo", echo_port))
            ]
            variants.append(ProxyVariant(name + suffix, ports[0], ports[1], process))
    return variants


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--megabytes", type=int, default=512, help="size of one upload")
    parser.add_argument("--pings", type=int, default=3000)
    parser.add_argument("--child", choices=_CHILDREN, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        _CHILDREN[arguments.child]()
        return
    size = arguments.megabytes * 1_000_000 // _BLOCK * _BLOCK
    with ExitStack() as stack:
        variants = _variants(stack)
        figures = {variant.name: Figures() for variant in variants}
        for _ in range(arguments.rounds):
            for variant in random.sample(variants, len(variants)):
                _measure(variant, figures[variant.name], size, arguments.pings)
    print(f"{'variant':<20} {'MB/s':>8} {'CPU-s/GB':>9} {'ping p50 us':>12} {'p99 us':>8}")
    for name, measured in figures.items():
        cpu = f"{statistics.median(measured.cpu_s_per_gb):.2f}" if measured.cpu_s_per_gb else "-"
        print(
            f"{name:<20} {statistics.median(measured.megabytes_per_s):>8.0f} {cpu:>9}"
            f" {statistics.median(measured.ping_p50_us):>12.0f} {statistics.median(measured.ping_p99_us):>8.0f}"
        )


if __name__ == "__main__":
    main()
