"""Replication joined with the log: the partitions of one broker, their fetchers and the requests that wait for them.

Owns state and effects; the decisions are those of ``cluster.replication`` and of the broker's ``Rules``.
"""
