"""The transaction coordinator of a broker: the shell around ``cluster.coordinator.transaction``.

Owns who waits for an answer, appends to ``__transaction_state``, the loading of its partitions, and markers: those sent
to the leaders of partitions, and those written to partitions that are led here. Does not own any decision, nor any
message of a client (``handlers``).
"""
