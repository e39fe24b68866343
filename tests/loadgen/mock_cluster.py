"""librdkafka's own mock cluster as a process: ``python -m tests.loadgen.mock_cluster BROKERS TOPIC``.

Prints its bootstrap address and stays until its stdin closes. It keeps 5 MB per partition, no more.
"""

from __future__ import annotations

import sys

from confluent_kafka import Producer


def main() -> None:
    brokers, topic = sys.argv[1:3]
    cluster = Producer({"test.mock.num.brokers": brokers, "bootstrap.servers": "mock", "log_level": 0})
    addresses = [f"{broker.host}:{broker.port}" for broker in cluster.list_topics(timeout=10).brokers.values()]
    while not cluster.list_topics(topic, timeout=10).topics[topic].partitions:
        pass  # asking for a topic creates it, with four partitions
    sys.stdout.write(",".join(addresses) + "\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main()
