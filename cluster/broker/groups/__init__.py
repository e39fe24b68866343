"""The group coordinator of a broker: the shell around ``cluster.coordinator.group``.

Owns who waits for an answer, timers, appends to ``__consumer_offsets`` and the loading of its partitions. Does not own
any decision, nor any message (``handlers``).
"""
