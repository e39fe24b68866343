"""What each check suspects, beside what its twin finds: never less, in any partition of any run of the audit."""

from __future__ import annotations

import pytest

from tests.verifier import oracle
from tests.verifier.agreement import Suspected, missed, suspected
from tests.verifier.planted import PLANTED
from verifier.facts import Audit
from verifier.findings import CHECKED
from verifier.run_checks import RunEvidence
from verifier.spark.staging import Staged

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def suspicious(evidence: list[RunEvidence], rows: Staged, audits: dict[str, Audit]) -> dict[str, Suspected]:
    """By run."""
    return suspected(evidence, rows, audits)


@pytest.mark.parametrize("name", PLANTED)
def test_whatever_is_planted_is_suspected(suspicious: dict[str, Suspected], name: str) -> None:
    """Each check that must find something in an example would be asked if the example were judged alone."""
    assert {check for check, _ in PLANTED[name].expected} & set(CHECKED) <= set(suspicious[f"planted: {name}"])


def test_where_an_anomaly_is_its_check_suspects_one(
    suspicious: dict[str, Suspected], twins: dict[str, list[oracle.Anomaly]]
) -> None:
    """In every planted, mutated and drawn run, whatever the twin of a check finds is where the check suspects it."""
    assert not {name: found for name, each in twins.items() if (found := missed(suspicious[name], each))}
    assert {each.check for found in twins.values() for each in found} >= set(CHECKED), "a check was never put to use"


def test_what_spark_finds_is_suspected(suspicious: dict[str, Suspected], audits: dict[str, Audit]) -> None:
    """Also in the doctored copies, of which there is no twin."""
    assert not {name: found for name, each in audits.items() if (found := missed(suspicious[name], each.found))}


@pytest.mark.parametrize("name", ["planted: clean", "long run", "plain"])
def test_a_run_in_which_all_is_well_is_not_suspect(suspicious: dict[str, Suspected], name: str) -> None:
    """Of such a run no check is asked: the suspicions are narrow enough to spare something."""
    assert suspicious[name] == {}


def test_every_check_has_a_suspicion(suspicious: dict[str, Suspected]) -> None:
    """None is asked of every run, only because nothing is suspected in its place."""
    assert {check for each in suspicious.values() for check in each} == set(CHECKED)
