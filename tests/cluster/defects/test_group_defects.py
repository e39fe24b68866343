"""Defects of the group coordinator: each decides wrongly where the right rule would not, and notes it first."""

from __future__ import annotations

from cluster.broker.rules import Rules
from cluster.coordinator.group.decisions import GroupSettings
from cluster.protocol.errors import ErrorCode
from cluster.seams.memory_storage import MemoryStorage
from tests.cluster.coordinator.group.world import GROUP, T0, World
from tests.cluster.defects.journal import fired, planted


def world_of(rules: Rules) -> World:
    return World(GroupSettings(), rules.groups)


def test_fetch_unstable_offsets_tells_what_is_about_to_change() -> None:
    """The former offset, although the next one is undecided; who does not require what is stable is told it anyway."""
    storage = MemoryStorage()
    world = world_of(planted(storage, "fetch-unstable-offsets"))
    world.commit(5)
    world.settle()
    assert world.fetch().offset == 5 and not fired(storage)
    world.commit(6, producer_id=7)
    world.settle()
    assert world.fetch(stable=False).offset == 5 and not fired(storage)
    assert (world.fetch().error_code, world.fetch().offset) == (ErrorCode.NONE, 5)
    assert {(line["defect"], line["group"], line["partition"], line["offset"]) for line in fired(storage)} == {
        ("fetch-unstable-offsets", GROUP, 0, 5)
    }


def test_commit_in_memory_is_gone_with_its_coordinator() -> None:
    """It is answered and told again, and the next coordinator does not know of it; what a transaction commits is
    stored."""
    storage = MemoryStorage()
    world = world_of(planted(storage, "commit-in-memory"))
    waiter = world.commit(5)
    assert world.answers[waiter] == {T0: ErrorCode.NONE}
    assert not world.appends
    assert world.fetch().offset == 5
    world.commit(6)
    assert world.fetch().offset == 6
    assert [(line["defect"], line["offset"]) for line in fired(storage)] == [
        ("commit-in-memory", 5), ("commit-in-memory", 6)
    ]  # fmt: skip
    world.commit(7, producer_id=7)
    assert len(world.appends) == 1 and len(fired(storage)) == 2


def test_commit_in_memory_spares_most_at_a_small_probability() -> None:
    """Every commit but those that were noted is stored."""
    storage = MemoryStorage()
    world = world_of(planted(storage, "commit-in-memory:0.1"))
    for offset in range(100):
        world.commit(offset)
        world.settle()
    assert 0 < len(fired(storage)) < 30
    assert len(world.log) == 100 - len(fired(storage))


def test_expire_by_commit_time_forgets_what_members_use() -> None:
    """A few hundred milliseconds after the commit, whatever the group is doing."""
    storage = MemoryStorage()
    for rules, offset in ((Rules(), 5), (planted(storage, "expire-by-commit-time"), -1)):
        world = world_of(rules)
        [member] = world.form(None)
        world.commit(5, member, world.group.generation_id)
        world.settle()
        world.do(world.coordinator.expire(world.groups, world.now_ms + 299))
        assert not world.appends
        world.do(world.coordinator.expire(world.groups, world.now_ms + 300))
        world.settle()
        assert world.fetch().offset == offset
    assert [(line["defect"], line["offset"]) for line in fired(storage)] == [("expire-by-commit-time", 5)]
