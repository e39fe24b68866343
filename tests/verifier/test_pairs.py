"""Every check goes red on a planted case and stays silent on its nearest legal neighbor: the table of pairs.

A planted example names its neighbor; the names of these tests are the table. That the examples are found, exactly, is
``test_checks``'.
"""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from chaos.commands.main import run_command
from tests.verifier import oracle
from tests.verifier.conftest import Judged
from tests.verifier.planted import PLANTED, refusals
from tests.verifier.planted.pairs import Pair, pairs
from verifier import explain
from verifier.anomalies import BY_NAME
from verifier.excuses.expectation import Expectation

PAIRS = pairs()


def test_every_anomaly_and_cause_has_a_planted_example() -> None:
    """No check and no cause goes without an example."""
    planted = {key for example in PLANTED.values() for key in example.expected}
    wanted = {(each.name, cause) for each in BY_NAME.values() for cause in (each.causes or [None])}
    assert not wanted - planted, f"no example in tests/verifier/planted for: {sorted(map(str, wanted - planted))}"
    assert wanted == planted


def test_every_check_and_cause_has_a_pair(capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever check ``gapless list checks`` names, and each of its causes, is accused in one and not in the other."""
    assert run_command(["list", "checks", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    wanted = {(name, cause) for name in listed for cause in (BY_NAME[name].causes or [None])}
    assert {(pair.check, pair.cause) for pair in PAIRS} == wanted


def test_a_neighbor_differs() -> None:
    """Whoever names a neighbor is accused of something that the neighbor is not."""
    named = {name for name, example in PLANTED.items() if example.neighbor is not None}
    assert {pair.planted for pair in PAIRS} == named


@pytest.mark.integration
@pytest.mark.timeout(600)
@pytest.mark.parametrize("pair", PAIRS, ids=str)
def test_the_one_is_red_and_the_other_silent(
    judged: dict[str, Judged], twins: dict[str, list[oracle.Anomaly]], pair: Pair
) -> None:
    """The verifier says so of both, and so does the oracle; what an event excuses is no accusation."""
    planted, neighbor = (f"planted: {name}" for name in (pair.planted, pair.neighbor))
    for found in (
        {name: judged[name].audit.found for name in (planted, neighbor)},
        {name: tuple(twins[name]) for name in (planted, neighbor)},
    ):
        accused = {name: {(each.check, each.cause) for each in found[name] if each.excuse is None} for name in found}
        assert (pair.check, pair.cause) in accused[planted]
        assert pair.check not in {check for check, _ in accused[neighbor]}


@pytest.mark.integration
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", refusals.PLANTED)
def test_an_idempotent_producer_has_copies_only_since_a_batch_was_refused(
    judged: dict[str, Judged], twins: dict[str, list[oracle.Anomaly]], name: str
) -> None:
    """That alone allows them, in these stories without a timeout: no retry does, and librdkafka alone does so."""
    run = judged[f"planted: {name}"]
    copies = [each for each in run.audit.found if each.check in ("duplicate", "log-duplicate")]
    twin = [each for each in twins[f"planted: {name}"] if each.check in ("duplicate", "log-duplicate")]
    assert copies and twin
    for client in ("confluent", "native"):
        expectation = Expectation(replace(run.story.settings, client=client))
        for each in (*copies, *twin):
            allowed = expectation.reason(each.check, each.cause, each.excuse) is not None
            assert allowed is (each.excuse == "refusal" and client == "confluent")


@pytest.mark.integration
@pytest.mark.timeout(600)
def test_every_example_can_be_told(judged: dict[str, Judged]) -> None:
    """Whatever is found has a sentence that names its place."""
    for each in judged.values():
        for found in each.audit.found:
            assert explain.sentence(found).startswith(f"{found.topic}-{found.partition}: ")
