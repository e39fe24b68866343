"""The replication rules of one partition, pure: what a leader knows of its followers, what a follower does next.

Owns the arithmetic and the fencing of Kafka's Partition and KIP-497 (ISR, high watermark, leader epochs,
truncation points). Does not own a log, a socket, a timer or a clock: offsets, answers and times come as arguments.
"""
