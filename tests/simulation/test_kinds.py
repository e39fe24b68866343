"""Which kinds of clients a seed has: our own everywhere, beside ruder ones, of which there are more where something is
taken away under them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable
from dataclasses import replace

from cluster.broker.rules import Rules
from tests.simulation.clients import SimulatedClients
from tests.simulation.consuming import ConsumingReader
from tests.simulation.producing import ProducingWriter
from tests.simulation.readers import Reader
from tests.simulation.topology import TOPIC, topology
from tests.simulation.world import World
from tests.simulation.writers import Writer
from tests.support.virtual_time import run

KEY, MADE = (TOPIC, 0), ("t1", 0)
SEEDS = range(40)


def clients_of(seed: int, moves: Collection[str], remade: Iterable[str] = (), **changes: bool) -> SimulatedClients:
    """Those of one partition that every seed has and one that was made; ``remade`` topics were deleted meanwhile."""
    found: list[SimulatedClients] = []

    async def main() -> None:
        facts = {"is_unclean": False, "is_retained": False, "is_compacted": False, **changes}
        clients = SimulatedClients(World(replace(topology(seed), **facts), Rules()), moves)
        clients.grow(KEY)
        clients.grow(MADE)
        for topic in remade:
            clients.close((topic, 0))
            clients.grow((topic, 0))
        clients.leave()
        found.append(clients)
        await asyncio.sleep(0)

    run(main())
    return found[0]


def share_of_our_own(moves: Collection[str], **changes: bool) -> float:
    """Of all writers."""
    writers = [who for seed in SEEDS for who, _ in clients_of(seed, moves, **changes)._writers]
    return sum(isinstance(who, ProducingWriter) for who in writers) / len(writers)


def test_three_of_four_writers_are_our_own() -> None:
    """The others, ruder, stay beside them; half of them where something is taken away."""
    assert 0.6 < share_of_our_own(["kill"]) < 0.9
    for taken_away in (
        share_of_our_own(["delete-records"]),
        share_of_our_own(["kill"], is_unclean=True),
        share_of_our_own(["kill"], is_retained=True),
    ):
        assert 0.35 < taken_away < 0.65


def test_each_partition_is_read_by_both_kinds() -> None:
    """Whatever is taken away; only there does our own begin again by itself."""
    for moves, may_reset in ((["kill"], False), (["delete-records"], True), (["remake-topic"], True)):
        resets = set()
        for seed in SEEDS:
            readers = [reader for reader, _ in clients_of(seed, moves)._readers]
            assert [reader.key for reader in readers if isinstance(reader, Reader)] == [KEY, MADE]
            own = [reader for reader in readers if isinstance(reader, ConsumingReader)]
            assert [reader.key for reader in own] == [KEY, MADE]
            resets |= {reader._settings["auto.offset.reset"] for reader in own if reader.key == MADE}
        assert resets == ({"none", "earliest"} if may_reset else {"none"})


def test_our_own_clients_stay_on_a_topic_that_is_made_again() -> None:
    """They are to find out by themselves; the rude leave it and begin again. What was sent before is still known."""
    own = rude = 0
    for seed in SEEDS:
        clients = clients_of(seed, ["remake-topic"], ["t1"])
        writers = [who for who, _ in clients._writers if MADE in who.keys]
        own += sum(isinstance(who, ProducingWriter) for who in writers)
        rude += sum(isinstance(who, Writer) for who in writers)
        assert [type(reader) for reader, _ in clients._readers if reader.key == MADE] == [ConsumingReader, Reader]
        assert clients._world.partitions == [KEY, MADE]
    assert own > rude > 0


def test_rude_writers_bound_what_may_be_deleted() -> None:
    """Nobody has been told anything yet."""
    assert all(clients_of(seed, ["delete-records"]).deletable(KEY) == 0 for seed in SEEDS)
