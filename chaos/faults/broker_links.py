"""Selects the links of one broker by their names (docs/faults.md "Schedules"). Pure. Does not own the names."""

from __future__ import annotations

from collections.abc import Sequence


def links_of_clients(link_names: Sequence[str], broker_id: int) -> list[str]:
    """The links on which clients reach this broker."""
    ends = [(name, *name.split("-", 1)) for name in link_names]
    brokers = {opener for _, opener, other in ends if other == "zk"}
    return [name for name, opener, other in ends if other == f"b{broker_id}" and opener not in brokers]


def links_to_brokers(link_names: Sequence[str], broker_id: int) -> list[str]:
    """The links on which this broker sends requests to other brokers."""
    ends = [(name, *name.split("-", 1)) for name in link_names]
    return [name for name, opener, other in ends if opener == f"b{broker_id}" and other.startswith("b")]
