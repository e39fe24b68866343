"""What idempotence costs our producer, and what requests in flight are worth when the link is slow.

    python -m bench pipelining [--rounds N] [--seconds S] [--latency MS]

One broker, 1 KB and 100 B values, 16 KB batches, six partitions, our producer in a process of its own, variants in
turns. Without and with idempotence at acks=all and five requests in flight: CPU per record of the producer; owns the
bar that idempotence costs at most 5 %. Then through our proxy with 5 ms each way: five requests in flight must bring at
least twice the records/s of one.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

import requests

from bench.client import PeerProcess
from bench.cluster import one_broker, settle_disk
from bench.measure import Result, note, rotated
from bench.proxy import child
from tests.integration.local_cluster import HOST, LocalCluster

TOPIC = "bench"
PARTITIONS = 6
PROXY = "clients"


class AdvertisedProxy:
    """A proxy that a broker advertises as itself, without and with latency. ``api`` is the proxy server's address."""

    def __init__(self, api: str) -> None:
        self._api = api
        made = self._ask("", {"name": PROXY, "listen": f"{HOST}:0", "upstream": f"{HOST}:1"})
        #: Where clients connect.
        self.port = int(made["listen"].rpartition(":")[2])

    def __repr__(self) -> str:
        return f"<AdvertisedProxy at {self.port}>"

    def _ask(self, path: str, body: Mapping[str, object]) -> dict[str, str]:
        answer = requests.post(f"{self._api}/proxies{path}", json=body, timeout=5)
        answer.raise_for_status()
        answered: dict[str, str] = answer.json()
        return answered

    def lead_to(self, cluster: LocalCluster) -> None:
        self._ask(f"/{PROXY}", {"upstream": f"{HOST}:{cluster.ports[1]['CLIENTS']}"})

    def delay(self, latency_ms: int) -> None:
        """Hold everything up, on its way there and back."""
        for stream in ("upstream", "downstream"):
            toxic = {"type": "latency", "stream": stream, "attributes": {"latency": latency_ms}}
            self._ask(f"/{PROXY}/toxics", toxic)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=1.5, help="of one variant in one round (1.5)")
    parser.add_argument("--latency", type=int, default=5, help="milliseconds each way (5)")
    options = parser.parse_args()
    result = Result("pipelining", {"rounds": options.rounds, "latency ms each way": options.latency})
    with ExitStack() as stack:
        peer = stack.enter_context(PeerProcess("native"))
        _idempotence(result, peer, options.rounds, options.seconds)
        _in_flight(result, peer, options.rounds, options.seconds, options.latency)
    return result.finish()


def _job(cluster: LocalCluster, seconds: float) -> dict[str, Any]:
    """What all jobs of the peer have in common."""
    job = {"bootstrap": cluster.bootstrap, "topic": TOPIC, "partitions": PARTITIONS}
    return {**job, "batch_bytes": 16_384, "seconds": seconds}


def _idempotence(result: Result, peer: PeerProcess, rounds: int, seconds: float) -> None:
    with one_broker({TOPIC: PARTITIONS}) as cluster:
        for value in (1000, 100):
            name = f"{value} B, idempotence"
            for round_number in range(rounds):
                note(f"{name}: round {round_number + 1} of {rounds}")
                for variant in rotated(["off", "on"], round_number):
                    settle_disk(cluster.directory)
                    turn = {**_job(cluster, seconds), "value_bytes": value, "idempotence": variant == "on"}
                    peer.flood(result, f"{name} {variant}", turn, cluster.children[1].pid)
            ratio = result.ratios(f"{name} on to off, CPU", f"{name} on CPU", f"{name} off CPU")
            result.bar(f"{value} B, CPU per record with idempotence to without", ratio.median, at_most=1.05)


def _in_flight(result: Result, peer: PeerProcess, rounds: int, seconds: float, latency_ms: int) -> None:
    name = f"{latency_ms} ms, in flight"
    with child("proxy") as (api_port, _):
        link = AdvertisedProxy(f"http://{HOST}:{api_port}")
        advertised = {"advertised.listeners": f"CLIENTS://{HOST}:{link.port}"}
        with one_broker({TOPIC: PARTITIONS}, advertised, link.lead_to) as cluster:
            link.delay(latency_ms)
            for round_number in range(rounds):
                note(f"{name}: round {round_number + 1} of {rounds}")
                for in_flight in rotated(["1", "5"], round_number):
                    settle_disk(cluster.directory)
                    turn = {**_job(cluster, seconds), "value_bytes": 1000, "in_flight": int(in_flight)}
                    peer.flood(result, f"{name} {in_flight}", turn, cluster.children[1].pid)
    ratio = result.ratios(f"{name} 5 to 1", f"{name} 5", f"{name} 1")
    result.bar(f"{name} 5 to 1, records/s", ratio.median, at_least=2.0)


if __name__ == "__main__":
    sys.exit(main())
