"""Which seeds have our own clients, and that nothing is taken away under them."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from dataclasses import replace

from cluster.broker.rules import Rules
from tests.cluster.control.virtual_time import run
from tests.simulation.clients import SimulatedClients
from tests.simulation.consuming import ConsumingReader
from tests.simulation.producing import ProducingWriter
from tests.simulation.topology import TOPIC, topology
from tests.simulation.world import World

KEY, MADE = (TOPIC, 0), ("t1", 0)
SEEDS = range(40)


def native(seed: int, moves: Collection[str], *, is_unclean: bool = False) -> list[tuple[str, int]]:
    """The partitions that our own clients write to or read, of one that every seed has and one that was made."""
    found: list[tuple[str, int]] = []

    async def main() -> None:
        clients = SimulatedClients(World(replace(topology(seed), is_unclean=is_unclean), Rules()), moves)
        clients.grow(KEY)
        clients.grow(MADE)
        clients.leave()
        found.extend(key for who, _ in clients._writers if isinstance(who, ProducingWriter) for key in who.keys)
        found.extend(who.key for who, _ in clients._readers if isinstance(who, ConsumingReader))
        assert all(clients.deletable(key) == 0 for key in found)
        await asyncio.sleep(0)

    run(main())
    return found


def test_our_own_clients_are_where_nothing_is_taken_away() -> None:
    """Nowhere in a seed that allows unclean elections, and not on topics that may be made again."""
    assert all(native(seed, ["kill"], is_unclean=True) == [] for seed in SEEDS)
    assert all({*native(seed, ["remake-topic"])} == {KEY} for seed in SEEDS)
    assert all({*native(seed, ["kill"])} == {KEY, MADE} for seed in SEEDS)


def test_a_seed_that_deletes_records_may_have_both_kinds() -> None:
    """Some partitions are kept for our own clients, of others records are deleted."""
    drawn = {frozenset(native(seed, ["delete-records"])) for seed in SEEDS}
    assert drawn == {frozenset(), frozenset({KEY}), frozenset({MADE}), frozenset({KEY, MADE})}


def test_three_of_four_writers_are_our_own() -> None:
    """The others, ruder, stay beside them."""
    own = sum(isinstance(who, ProducingWriter) for seed in SEEDS for who in writers(seed))
    assert 0.6 * 2 * len(SEEDS) < own < 0.9 * 2 * len(SEEDS)


def writers(seed: int) -> list[object]:
    found: list[object] = []

    async def main() -> None:
        clients = SimulatedClients(World(replace(topology(seed), is_unclean=False), Rules()), ["kill"])
        clients.grow(KEY)
        clients.grow(MADE)
        clients.leave()
        found.extend(who for who, _ in clients._writers)
        await asyncio.sleep(0)

    run(main())
    return found
