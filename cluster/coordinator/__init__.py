"""Coordinators of groups and of transactions, pure.

Owns the decisions (``group``, ``transaction``), which partition a key belongs to, and what FindCoordinator may answer.
The shells that call them are ``cluster.broker.groups`` and ``cluster.broker.transactions``.
"""
