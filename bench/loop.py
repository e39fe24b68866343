"""CPU per Produce request: our broker beside a plain C loop that receives, checks, writes and acknowledges.

    python -m bench loop [--rounds N] [--megabytes N] [--sizes BYTES,...] [--in-flight N] [--before TREE]

Both get the same requests (Produce 7, idempotent, one batch of 1000-byte records, one partition, RF 1) from one C
producer over one connection, in turns. The figure is the server's CPU time per request. Before each turn the page
cache is emptied (``settle_disk``): without that, anyone who wrote after much had been written paid for memory that was
never touched, a dozen times the copy of a small batch, and it was chance who did. The C sources are in bench/c and
built here with ``cc``. ``--before`` is a directory or a commit, whose broker takes turns with ours. Owns the bars "at
most 1.6x the C loop at 16 KB" and "at most 1.05x of before" at each size (--at-most for another bar, such as 1.02 for
brokers that serve no transactions beside those that cannot); the other ratios are for information.
"""

from __future__ import annotations

import argparse
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from bench.cluster import settle_disk
from bench.measure import ROOT, Result, cpu_s, note, rotated
from bench.trees import BEFORE, NOW, LoneBroker, brokers
from cluster.protocol.records import NewRecord, build_batch

TOPIC = "bench"
CLIENT_ID = "blast"
RECORD_BYTES = 1000
BAR_BYTES = 16_384
BAR = 1.6
#: What a request may cost more than with the broker of ``--before``.
BAR_BEFORE = 1.05
#: What the C loop is called in the results.
PLAIN = "C loop"


def build(directory: Path) -> tuple[Path, Path]:
    """Compile the two C programs. Exits with a message if there is no compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise SystemExit("this benchmark compares with a C program: install a C compiler (cc)")
    programs = []
    for name in ("loop", "blast"):
        program = directory / name
        subprocess.run([compiler, "-O2", "-o", str(program), str(ROOT / "bench" / "c" / f"{name}.c")], check=True)
        programs.append(program)
    return programs[0], programs[1]


def request(size_bytes: int, producer_id: int) -> tuple[bytes, int, int, int]:
    """A Produce 7 request whose batch has about ``size_bytes``; where the batch begins; where an answer has its error
    code; the records of the batch.
    """
    count = max(1, size_bytes // (RECORD_BYTES + 10))
    value = bytes(min(size_bytes, RECORD_BYTES))
    records = [NewRecord(value=value, timestamp=int(time.time() * 1000))] * count
    batch = build_batch(records, producer_id=producer_id, producer_epoch=0, base_sequence=0)
    topic = struct.pack(">h", len(TOPIC)) + TOPIC.encode()
    head = struct.pack(">hhih", 0, 7, 0, len(CLIENT_ID)) + CLIENT_ID.encode()
    body = struct.pack(">hhii", -1, -1, 30_000, 1) + topic + struct.pack(">iii", 1, 0, len(batch))
    frame = head + body
    error_at = 4 + 4 + 4 + len(topic) + 4 + 4
    return struct.pack(">i", len(frame) + len(batch)) + frame + batch, 4 + len(frame), error_at, count


class Blast:
    """The C producer. Each run is a producer of its own."""

    def __init__(self, program: Path, directory: Path, in_flight: int) -> None:
        self._program = program
        self._file = directory / "request"
        self._in_flight = in_flight
        self._producer_id = 1_000_000

    def run(self, port: int, size_bytes: int, count: int) -> tuple[float, int]:
        """Seconds for ``count`` requests, and the bytes of one batch. Raises if any was refused."""
        self._producer_id += 1
        data, batch_at, error_at, records = request(size_bytes, self._producer_id)
        self._file.write_bytes(data)
        numbers = (batch_at, error_at, records, count, self._in_flight)
        argv = [*map(str, (self._program, port, self._file, *numbers))]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"the C producer failed: {done.stderr.strip()}")
        return int(done.stdout) / 1e9, len(data) - batch_at


@contextmanager
def c_loop(program: Path, directory: Path) -> Iterator[LoneBroker]:
    """The C loop as a process."""
    with subprocess.Popen([str(program), str(directory / "loop.log")], stdout=subprocess.PIPE, text=True) as process:
        try:
            line = process.stdout.readline() if process.stdout else ""
            yield LoneBroker(process.pid, int(line), str(directory))
        finally:
            process.kill()


def measure(
    result: Result,
    servers: Mapping[str, LoneBroker],
    blast: Blast,
    size: int,
    count: int,
    rounds: int,
    at_most: float = BAR_BEFORE,
) -> None:
    """Let the servers take turns with ``count`` requests of ``size`` bytes each, and add the figures and their bars."""
    directories = [server.directory for server in servers.values()]
    for server in servers.values():
        blast.run(server.port, size, count // 4)
    for round_number in range(rounds):
        note(f"{size} bytes, round {round_number + 1} of {rounds}")
        for variant in rotated(list(servers), round_number):
            server = servers[variant]
            settle_disk(*directories)
            before = cpu_s(server.pid)
            elapsed_s, batch_bytes = blast.run(server.port, size, count)
            result.add(f"{size} {variant} CPU", "us/request", (cpu_s(server.pid) - before) / count * 1e6)
            result.add(f"{size} {variant}", "MB/s", batch_bytes * count / elapsed_s / 1e6)
    ratio = result.ratios(f"{size} CPU ratio", f"{size} {NOW} CPU", f"{size} {PLAIN} CPU")
    if size == BAR_BYTES:
        result.bar("CPU per 16 KB request, ours to the C loop", ratio.median, at_most=BAR)
    if BEFORE in servers:
        ratio = result.ratios(f"{size} CPU ratio to before", f"{size} {NOW} CPU", f"{size} {BEFORE} CPU")
        result.bar(f"CPU per request of {size} bytes, now to before", ratio.median, at_most=at_most)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--megabytes", type=int, default=128, help="of one variant in one round (128)")
    parser.add_argument("--sizes", default="1024,16384,131072,1000000", help="bytes of a batch")
    parser.add_argument(
        "--in-flight", type=int, default=5, help="requests without an answer (5, the default of clients)"
    )
    parser.add_argument("--before", metavar="TREE", help="a directory or commit to compare with")
    parser.add_argument(
        "--at-most", type=float, default=BAR_BEFORE, help=f"CPU per request, to that of --before ({BAR_BEFORE:g})"
    )
    options = parser.parse_args()
    settings = {"rounds": options.rounds, "megabytes": options.megabytes, "in flight": options.in_flight}
    result = Result("loop", {**settings, "before": options.before})
    with tempfile.TemporaryDirectory(prefix="gapless-bench-") as name:
        directory = Path(name)
        loop, blast_program = build(directory)
        blast = Blast(blast_program, directory, options.in_flight)
        with brokers(options.before, {TOPIC: 1}) as ours, c_loop(loop, directory) as plain:
            for size in map(int, options.sizes.split(",")):
                count = min(20_000, max(50, options.megabytes * 1_000_000 // size))
                measure(result, {**ours, PLAIN: plain}, blast, size, count, options.rounds, options.at_most)
    return result.finish()


if __name__ == "__main__":
    sys.exit(main())
