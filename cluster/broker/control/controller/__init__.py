"""The controller of one epoch: it reads what ZooKeeper holds, decides by ``cluster.controller``, writes and tells.

Owns the execution of each decision: fenced writes first, the context after them, then what is sent. Does not own the
decisions themselves (pure, ``cluster.controller``), the epoch's beginning and end (``office``), nor connections and
layouts (``links``).
"""
