"""The consumer's side of a group: membership, offsets, and the connection to the coordinator.

Owns what Kafka's AbstractCoordinator and ConsumerCoordinator own (docs/consumer.md "Groups"). ``group_core`` and what
it joins are pure; ``group_io`` carries requests, and ``participation`` does what happens in the program's thread. Does
not own fetching, nor assignors.
"""
