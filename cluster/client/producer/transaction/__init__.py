"""transaction: what a transactional producer asks its coordinators, and what their answers mean (KIP-98).

Owns the producer's side of a transaction: its state, the calls of the program, the requests that wait, and whether a
batch may go to a partition; and its requests as Kafka's messages. Does not own batches, sequences or connections. Pure.
"""

from __future__ import annotations
