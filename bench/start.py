"""How long ``gapless up`` takes: from its exec until a client's first acks=all record is acknowledged.

    python -m bench start [--runs N] [--brokers N]

Three brokers, ZooKeeper and the proxy, in a fresh directory each time; the client is here already, waits for the
address that ``up`` prints, creates a topic with RF 3 and produces. Owns the bar "within 4 s". The steps come from
what was printed and from the nodes' journals. CPU is that of all processes of the cluster until the first record: the
steady figure where others use the machine, and what a start comes down to on few cores.
"""

from __future__ import annotations

import argparse
import compileall
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import NewTopic

from bench.cluster import create_topics
from bench.measure import ROOT, Result, cpu_s, note

TOPIC = "bench"
BAR_S = 4.0
STOP_S = 60.0


@contextmanager
def up(directory: Path, brokers: int) -> Iterator[tuple[dict[str, str], psutil.Process]]:
    """``gapless up`` as a process for as long as the block lasts: what it announces, and the process."""
    argv = [sys.executable, "-m", "chaos.commands.main", "up", "--json", "--brokers", str(brokers)]
    with subprocess.Popen([*argv, "--data", str(directory)], stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        try:
            line = process.stdout.readline() if process.stdout else ""
            if not line:
                raise SystemExit("the cluster did not come up; try: gapless up")
            yield json.loads(line), psutil.Process(process.pid)
        finally:
            process.terminate()
            process.wait(STOP_S)


def produce_one(bootstrap: str) -> None:
    """One record with acks=all. Raises ``SystemExit`` if it is not acknowledged."""
    errors: list[KafkaError | None] = []

    def delivered(error: KafkaError | None, _message: Message) -> None:
        errors.append(error)

    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "enable.idempotence": True, "linger.ms": 0})
    producer.produce(TOPIC, b"first", on_delivery=delivered)
    producer.flush(30)
    if errors != [None]:
        raise SystemExit(f"the first record was not acknowledged: {errors}")


def steps(directory: Path, begun_wall_s: float) -> dict[str, float]:
    """Seconds from the exec to what the nodes' journals tell: registered, and the controller's election."""
    found: dict[str, float] = {}
    for journal in directory.glob("nodes/*/control.jsonl"):
        for line in journal.read_text().splitlines():
            entry = json.loads(line)
            after_s = entry["wall_ms"] / 1000 - begun_wall_s
            if entry["event"] == "registered":
                found["last broker registered"] = max(after_s, found.get("last broker registered", 0.0))
            elif entry["event"] == "controller-elected":
                found["controller elected"] = after_s
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--brokers", type=int, default=3)
    options = parser.parse_args()
    # Asked to end, it still ends what it started: the cluster is not behind a lifeline of ours.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    # As make setup leaves it.
    for name in ("cluster", "loadgen", "chaos", "verifier"):
        compileall.compile_dir(ROOT / name, quiet=2)
    result = Result("start", {"runs": options.runs, "brokers": options.brokers})
    for run in range(options.runs):
        with tempfile.TemporaryDirectory(prefix="gapless-bench-") as name:
            directory = Path(name) / "up"
            begun, begun_wall_s = time.monotonic(), time.time()
            with up(directory, options.brokers) as (announced, process):
                announced_s = time.monotonic() - begun
                create_topics(announced["bootstrap.servers"], [NewTopic(TOPIC, 1, min(3, options.brokers))])
                created_s = time.monotonic() - begun
                produce_one(announced["bootstrap.servers"])
                first_s = time.monotonic() - begun
                spent_s = sum(cpu_s(each.pid) for each in (process, *process.children(recursive=True)))
                for step, after_s in sorted(steps(directory, begun_wall_s).items(), key=lambda item: item[1]):
                    result.add(step, "s", after_s)
                result.add("up has announced itself", "s", announced_s)
                result.add("topic created", "s", created_s)
                result.add("first record acknowledged", "s", first_s)
                result.add("CPU until then, all processes", "s", spent_s)
        note(f"run {run + 1} of {options.runs}: {first_s:.2f} s")
    result.bar(
        "median seconds until the first record is acknowledged",
        result["first record acknowledged"].median,
        at_most=BAR_S,
    )
    return result.finish()


if __name__ == "__main__":
    sys.exit(main())
