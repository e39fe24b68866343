"""log: the log of one replica: segments, indexes, producer state, leader epochs, recovery, retention, compaction.

Owns files (docs/log.md) and what is appended to them, on the Storage seam. Does not own who leads, what is committed or
who is calling: those come as arguments. ``PartitionLog`` is one log, ``LogManager`` all of a broker's.
"""
