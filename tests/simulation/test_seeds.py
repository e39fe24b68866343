"""Two hundred simulations: nothing acknowledged is lost, whatever goes wrong, and enough did go wrong.

What one seed is stands in ``story.py``; what must hold in ``oracle.py``; which seeds they are in ``corpus.py``;
``docs/simulation.md`` says how to run more.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.simulation.case import Case
from tests.simulation.corpus import gate
from tests.simulation.nemesis.catalogue import MOVES
from tests.simulation.pool import Tally, run_cases
from tests.simulation.reached import unknown
from tests.simulation.story import tell

SEEDS = gate(200)
WORKERS = 2
REPOSITORY = Path(__file__).parents[2]

#: What must have happened at least so often over all seeds: else they show less than they seem to.
LEAST = {
    "acknowledged": 20_000,
    "records consumed": 15_000,
    "producer retried NOT_LEADER_OR_FOLLOWER": 150,
    "producer retried REQUEST_TIMED_OUT": 80,
    "producer retried NETWORK_EXCEPTION": 40,
    "producer failed REQUEST_TIMED_OUT": 500,
    "producer had no room": 1_000,
    "producer stood still": 20,
    "producer began again": 20,
    "leader election": 400,
    "truncated record": 400,
    "isr shrink": 40,
    "isr expand": 300,
    "duplicate from the cache": 300,
    "duplicate after failover": 100,
    "duplicate below the window": 100,
    "refused OUT_OF_ORDER_SEQUENCE_NUMBER": 2_000,
    "controller failover": 150,
    "session expired": 30,
    "unsynced tail lost": 10,
    "broker ended by its disk": 10,
    "election: unclean": 5,
    "partition cut by an unclean election": 3,
    "log start moved in the end": 5,
    "nemesis elect-unclean": 1,
    **{f"nemesis {name}": 5 for name in MOVES if name != "elect-unclean"},
}


@pytest.fixture(scope="module")
def tally() -> Tally:
    return run_cases(map(Case, SEEDS), WORKERS)


@pytest.mark.timeout(900)
def test_nothing_is_found(tally: Tally) -> None:
    """Every seed: acknowledged values stand once at their offsets, replicas are equal, readers saw what is there."""
    lines = [f"{case.line}   # {findings[0][0]}: {findings[0][1]}" for case, findings, _ in tally.failed]
    assert not lines, "\n".join(lines)
    assert tally.seeds == len(SEEDS)


@pytest.mark.timeout(900)
def test_enough_went_wrong(tally: Tally) -> None:
    """Each fault, and each thing that the rules are for, happened often."""
    rare = {what: tally.coverage[what] for what, least in LEAST.items() if tally.coverage[what] < least}
    assert not rare, f"{rare} of {dict(tally.coverage)}"


@pytest.mark.timeout(900)
def test_what_was_reached_is_in_the_catalogue(tally: Tally) -> None:
    """A name that is counted under no known name could be missed by nobody."""
    assert unknown(tally.coverage) == []


@pytest.mark.parametrize("seed", [5, 42])
def test_a_seed_repeats_byte_for_byte(seed: int, tmp_path: Path) -> None:
    """The event log depends on the seed alone: not on the process, not on its hash seed.

    The second seed has three Producers, one of which writes to two partitions.
    """
    logs = []
    for hash_seed in ("1", "4242"):
        path = tmp_path / f"{hash_seed}.log"
        command = [sys.executable, "-m", "tests.simulation.run", "--seed", str(seed), "--log", str(path)]
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        subprocess.run(command, check=True, cwd=REPOSITORY, env=environment, timeout=100, stdout=subprocess.DEVNULL)
        logs.append(path.read_text())
    assert logs[0] == logs[1] == tell(seed).text
    assert len(logs[0].splitlines()) > 100


def test_another_seed_is_another_story() -> None:
    """The seed decides."""
    assert tell(6).text != tell(7).text


@pytest.mark.full
@pytest.mark.timeout(3600)
def test_nothing_is_found_in_many_seeds() -> None:
    """The same, for a while."""
    tally = run_cases(map(Case, range(20_000, 22_000)), WORKERS)
    assert [done.case.line for done in tally.failed] == []
