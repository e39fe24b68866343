"""Whose a ``transactional.id`` is: a producer's own, or that of rivals in several processes."""

from __future__ import annotations

import pytest

from loadgen.command import shares
from loadgen.kinds import RESTS_S, TRANSACTIONS, TransactionPlan
from loadgen.settings import LoadSettings, SettingsError
from loadgen.transactional_ids import may_be_of, shared_id, transactional_id

RIVALS = {"partitions": 3, "records": 12, "rivals": 2}


def settings(**more: object) -> LoadSettings:
    given = {"run_id": 1, "partitions": 6, "producers": 12, "kind": TRANSACTIONS, "transactions": RIVALS, **more}
    return LoadSettings(**given)  # type: ignore[arg-type]


@pytest.mark.parametrize("processes", [1, 2, 3, 4])
def test_rivals_are_in_different_processes(processes: int) -> None:
    """There are at least as many processes as rivals, and each id has one producer in each of two."""
    load = settings(processes=processes)
    found = shares(load)
    assert len(found) == max(2, processes)
    whose: dict[str, list[str]] = {}
    for name, first, streams in found:
        for producer in range(first // 3, (first + streams) // 3):
            whose.setdefault(shared_id(1, producer, load.users, 2), []).append(name)
    assert [len(set(each)) for each in whose.values()] == [2, 2]


def test_rivals_need_whole_groups_of_producers() -> None:
    """An id with one producer fewer would have no rival."""
    with pytest.raises(SettingsError, match="a multiple of 2"):
        settings(producers=9)
    with pytest.raises(SettingsError, match="rivals of transactions is a number of at least 1"):
        settings(transactions={**RIVALS, "rivals": 0})


def test_an_id_tells_the_process_that_may_have_it() -> None:
    """A shared one may be anyone's; another process's, or another program's, is not."""
    own = transactional_id(7, "producers-1", 3)
    assert may_be_of(own, "producers-1")
    assert not may_be_of(own, "producers")
    assert not may_be_of(own, "producers-2")
    assert may_be_of(shared_id(7, 3, 4, 2), "producers-2")
    assert not may_be_of("gapless-members-native-0", "producers")
    assert not may_be_of("other", "producers")


def test_who_was_fenced_rests_if_it_has_rivals() -> None:
    """Each instance another time within the bounds, the same in the same run."""
    plan = TransactionPlan(rivals=2)
    rests = [plan.rests_s(5, 1, instance) for instance in range(1, 100)]
    assert RESTS_S[0] <= min(rests) < 2 < 3 < max(rests) <= RESTS_S[1]
    assert rests == [plan.rests_s(5, 1, instance) for instance in range(1, 100)]
    assert TransactionPlan().rests_s(5, 1, 3) == 0.0
