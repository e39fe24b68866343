"""producer: records to batches, batches to requests, and what became of each record.

Owns the producer's own state: batches, memory, partitions, sequences, retries. Does not own sockets, threads or
metadata of the cluster.
"""

from __future__ import annotations
