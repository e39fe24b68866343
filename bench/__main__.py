"""``python -m bench [NAME [OPTIONS]]``: one benchmark, or the cost set. Owns their list."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from cluster.process.safe_path import package_environment

#: What ``make bench`` runs without arguments, and what is longer or of another concern.
COST = {
    "loop": "CPU per Produce request beside a plain C loop (2 min)",
    "produce": "throughput of RF 1 and RF 3 beside librdkafka's mock cluster (5 min)",
    "latency": "acknowledgement latency at 100 records/s (2 min)",
}
OTHERS = {
    "consume": "MB/s and broker CPU per GB of a librdkafka consumer; --before TREE compares (1 min)",
    "start": "from `gapless up` to the first acknowledged record (1 min)",
    "partitions": "2,000 partitions at RF 3: creation, restart, memory, idle CPU (5 min)",
    "failover": "gaps around the kill of a leader; --controlled for shutdowns (30 kills: 5 min)",
    "client": "our producer beside kafka-python, aiokafka and confluent-kafka (8 min)",
    "pipelining": "what idempotence costs, and what five requests in flight are worth at 5 ms (3 min)",
    "transactions": "transactional producing beside idempotent, and what a commit takes (3 min)",
    "coordinators": "gaps of commits around the kill of a coordinator of transactions (20 kills: 5 min)",
    "groups": "100 members of one group, and 1,000 groups that another coordinator loads (5 min)",
    "endurance": "ten million records with faults: memory of the load, bytes of its history (25 min)",
    "verify": "wall, CPU and memory of a verdict at 2 and 10 million records; --small for the run of 60 s (5 min)",
    "proxy": "our proxy beside a direct connection (1 min)",
    "cycles": "a million transactions with planted circles: read, judged, found (6 min)",
}
BENCHMARKS = {**COST, **OTHERS}


def _run(name: str, options: list[str]) -> int:
    """A process of its own: nothing that one benchmark imports or leaves is in the next."""
    print(f"== {name}", flush=True)
    return subprocess.run([sys.executable, "-m", f"bench.{name}", *options], check=False).returncode


def main() -> int:
    """Run the one that is named, or the cost set. Returns the first status that is not 0: 1 for a bar that fails."""
    listed = "\n".join(f"  {name:<14}{text}" for name, text in BENCHMARKS.items())
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description=f"Without a name: {', '.join(COST)}.\n\n{listed}\n\nEach has options: python -m bench NAME --help",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", nargs="?", choices=BENCHMARKS, metavar="NAME")
    parser.add_argument("options", nargs=argparse.REMAINDER, metavar="OPTIONS")
    arguments = parser.parse_args()
    os.environ.update(package_environment(Path(__file__).resolve().parent.parent))
    if arguments.name is not None:
        # In our place, so that a signal to us reaches it.
        os.execv(sys.executable, [sys.executable, "-m", f"bench.{arguments.name}", *arguments.options])
    return next((status for status in [_run(name, []) for name in COST] if status), 0)


if __name__ == "__main__":
    sys.exit(main())
