"""Bounds: what a disk may lose so that correct code loses nothing that was acknowledged.

Without a sync of each append, a broker that lost its power has lost acknowledged records; a broker whose disk was
replaced has lost all of them. Replication makes up for that under two conditions, and neither Kafka nor this cluster
promises anything without them (KIP-966 is about what happens then):

- when it dies, another member of each in-sync set that it is in is well, and it has not asked to be alone in one;
- until the controller has taken it out of those sets, or a new life of it in, nobody else of them dies. Otherwise the
  controller may elect it as the last one in sync, with what it has lost.

It may come back at any time, since the controller takes any new life of a broker out of the sets first.
"""

from __future__ import annotations

import asyncio

from tests.simulation.nemesis.base import Nemesis
from tests.simulation.world import World


def others_have_it(nemesis: Nemesis, broker_id: int) -> bool:
    """Whether all others are well, known to the controller as they are, and one of them is in each in-sync set."""
    world = nemesis.world
    if nemesis.busy or not all(world.is_known(each) for each in world.broker_ids):
        return False
    states = [world.state(*key) for key in world.everything]
    if not all(state is None or broker_id not in state.isr or len(state.isr) > 1 for state in states):
        return False
    # What it has asked for may still arrive after its end, and leave it alone in a set.
    leaderships = [partition.leader for partition in world.nodes[broker_id].replicas.partitions.values()]
    asked = [leader.isr.pending for leader in leaderships if leader is not None]
    return all(proposal is None or len(proposal.members) > 1 for proposal in asked)


def spare_the_others(nemesis: Nemesis, broker_id: int) -> None:
    """Let no fault begin until each partition is, or since now has been, without that broker in its in-sync set."""
    world, poorer = nemesis.world, nemesis.poorer
    before = {key: world.observer.written_without(key, broker_id) for key in world.everything}
    poorer.add(broker_id)

    async def wait() -> None:
        while not _went_on_without(world, broker_id, before):  # noqa: ASYNC110 - ZooKeeper signals nothing to a test
            await asyncio.sleep(0.02)
        poorer.discard(broker_id)

    nemesis.in_background("spare the others", wait)


def _went_on_without(world: World, broker_id: int, before: dict[tuple[str, int], int]) -> bool:
    states = [(world.state(*key), world.observer.written_without(key, broker_id), n) for key, n in before.items()]
    return all(state is None or broker_id not in state.isr or now > then for state, now, then in states)
