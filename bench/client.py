"""Our producer beside kafka-python, aiokafka and confluent-kafka, against one broker of ours, in one sitting.

    python -m bench client [--rounds N] [--seconds S] [--values BYTES,...] [--batches BYTES,...] [--partitions N,...]
                           [--before TREE]

Idempotent, acks=all, linger 5 ms, the partition named with each record. Each client is a process of its own and sends
as fast as it can for a while; clients take turns, and ratios are taken round by round. Then all send 100 records a
second without linger. Owns the bars: ours at least 5x kafka-python, 2x aiokafka and 0.6x confluent-kafka in records/s
at every setting, and a median acknowledgement no later than aiokafka's. ``--before`` is a directory or a commit, whose
producer takes turns with ours against the same broker: ours has at least 0.97x of its records/s.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from bench.cluster import one_broker, settle_disk
from bench.measure import ROOT, Result, cpu_s, note, quantile, rotated
from bench.peers import PEERS
from bench.trees import BEFORE, unpacked

#: What ours must reach of each, in records/s; then what is aimed at.
BARS = {"kafka-python": 5.0, "aiokafka": 2.0, "confluent-kafka": 0.6}
AIMS = {"kafka-python": 10.0, "aiokafka": 3.0, "confluent-kafka": 1.0}
#: What ours must reach of the producer of ``--before``, in records/s.
LEAST_OF_BEFORE = 0.97
#: What ours is called, here and in an older tree.
OURS = "native"


class PeerProcess:
    """One client of ``tree`` in its process, for as many jobs as are asked. End it after use."""

    def __init__(self, name: str, tree: Path = ROOT) -> None:
        self.name = name
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.peers", name],
            cwd=tree,
            env={**os.environ, "PYTHONPATH": str(tree)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __repr__(self) -> str:
        return f"<PeerProcess {self.name}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()

    def ask(self, job: dict[str, Any]) -> dict[str, Any]:
        """What became of a job. Ends the benchmark if the client failed."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise SystemExit(f"{self.name} failed at {job}")
        parsed: dict[str, Any] = json.loads(answer)
        return parsed

    def flood(self, result: Result, figure: str, job: dict[str, Any], broker_pid: int) -> None:
        """Records/s and CPU per record of one turn, ours and the broker's."""
        before = cpu_s(broker_pid)
        answer = self.ask({"kind": "flood", **job})
        records = answer["records"]
        result.add(figure, "thousand records/s", records / answer["seconds"] / 1000)
        result.add(f"{figure} CPU", "us/record", answer["cpu_s"] / records * 1e6)
        result.add(f"{figure} broker CPU", "us/record", (cpu_s(broker_pid) - before) / records * 1e6)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.7, help="of one client in one round (0.7)")
    parser.add_argument("--values", default="1000,100", help="bytes of a value")
    parser.add_argument("--batches", default="16384,131072", help="values of batch.size")
    parser.add_argument("--partitions", default="1,6", help="how many partitions are written")
    parser.add_argument("--records", type=int, default=300, help="for the latency, of one client in one round (300)")
    parser.add_argument("--before", metavar="TREE", help="a directory or commit whose producer is compared with ours")
    options = parser.parse_args()
    values, batches, partitions = (
        [int(number) for number in text.split(",")] for text in (options.values, options.batches, options.partitions)
    )
    result = Result("client", {"rounds": options.rounds, "seconds a turn": options.seconds, "before": options.before})
    with ExitStack() as stack:
        topics = {count: f"bench-{count}" for count in {1, *partitions}}
        cluster = stack.enter_context(one_broker({topic: count for count, topic in topics.items()}))
        broker_pid = cluster.children[1].pid
        peers = {name: stack.enter_context(PeerProcess(name)) for name in PEERS}
        if options.before is not None:
            tree = stack.enter_context(unpacked(options.before))
            peers[BEFORE] = stack.enter_context(PeerProcess(OURS, tree))
        for value, batch, count in itertools.product(values, batches, partitions):
            setting = f"{value} B, batch {batch // 1024} KB, {count} partition{'s' if count > 1 else ''}"
            job = {"bootstrap": cluster.bootstrap, "topic": topics[count], "partitions": count, "value_bytes": value}
            job |= {"batch_bytes": batch, "seconds": options.seconds}
            for round_number in range(options.rounds):
                note(f"{setting}: round {round_number + 1} of {options.rounds}")
                for name in rotated(list(peers), round_number):
                    settle_disk(cluster.directory)
                    peers[name].flood(result, f"{setting}: {name}", job, broker_pid)
            for name, least in BARS.items():
                ratio = result.ratios(f"{setting}: to {name}", f"{setting}: {OURS}", f"{setting}: {name}")
                result.bar(f"{setting}: to {name} (aim {AIMS[name]:g})", ratio.median, at_least=least)
            if BEFORE in peers:
                ratio = result.ratios(f"{setting}: to {BEFORE}", f"{setting}: {OURS}", f"{setting}: {BEFORE}")
                result.bar(f"{setting}: to {BEFORE}", ratio.median, at_least=LEAST_OF_BEFORE)
        _latencies(result, peers, cluster.bootstrap, options.rounds, options.records)
    return result.finish()


def _latencies(result: Result, peers: dict[str, PeerProcess], bootstrap: str, rounds: int, records: int) -> None:
    job = {"kind": "trickle", "bootstrap": bootstrap, "topic": "bench-1", "partitions": 1, "value_bytes": 1000}
    job |= {"batch_bytes": 16384, "records": records, "rate": 100.0}
    for round_number in range(rounds):
        note(f"100 records/s: round {round_number + 1} of {rounds}")
        for name in rotated(list(peers), round_number):
            taken = peers[name].ask(job)["latencies_ms"]
            result.add(f"100 records/s: {name} p50", "ms", quantile(taken, 0.5))
            result.add(f"100 records/s: {name} p99", "ms", quantile(taken, 0.99))
    ratio = result.ratios("p50 to aiokafka", f"100 records/s: {OURS} p50", "100 records/s: aiokafka p50")
    result.bar("p50 at 100 records/s, to aiokafka", ratio.median, at_most=1.0)
    if BEFORE in peers:
        ratio = result.ratios(f"p50 to {BEFORE}", f"100 records/s: {OURS} p50", f"100 records/s: {BEFORE} p50")
        result.bar(f"p50 at 100 records/s, to {BEFORE}", ratio.median, at_most=1 / LEAST_OF_BEFORE)


if __name__ == "__main__":
    sys.exit(main())
