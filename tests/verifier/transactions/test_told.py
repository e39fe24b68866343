"""What is found of transactions reaches the verdict and every report; no Spark."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.verifier.planted import PLANTED, planted_story
from tests.verifier.planted.transactions import PLANTED as OF_TRANSACTIONS
from verifier.anomalies import BY_NAME
from verifier.closing.closing import gather
from verifier.deletions import Deletions
from verifier.facts import Audit, Facts
from verifier.transactions.transaction_checks import transactional
from verifier.verify_runs import conclude, tell


def found_here(name: str) -> set[str]:
    """What the story is accused of without Spark: what the tables show is found with them."""
    return {check for check, _ in PLANTED[name].expected if not BY_NAME[check].asks_spark}


#: In the stories of these producers poll, so that nothing of it can be believed.
DOUBTED = {"G1a", "wrong-end-offset"}
TOLD = sorted(name for name in OF_TRANSACTIONS if found_here(name) and not DOUBTED & found_here(name))


@pytest.mark.parametrize("name", TOLD)
def test_what_is_found_makes_the_run_invalid_and_is_told(tmp_path: Path, name: str) -> None:
    """The verdict names each check, and the page shows a sentence for it, also of the coordinator's own topic."""
    directory = planted_story(name).write(tmp_path / "run")
    run = planted_story(name).model()
    closing = gather(directory, run)
    found = transactional(directory, run)
    verdict = conclude(run, Deletions(), Audit(Facts(), found), closing)
    assert verdict.verdict == "invalid"
    told = tell(directory, run, verdict, {}, closing)
    wanted = found_here(name)
    assert {check for check, result in told.checks.items() if result.forbidden_count} == wanted
    written = json.loads(directory.verdict_json.read_text())
    assert {check for check, result in written["checks"].items() if result["count"]} == wanted
    page = directory.report_html.read_text()
    assert all(check in page for check in wanted)


def test_what_clients_saw_says_nothing_if_their_histories_cannot_be_believed(tmp_path: Path) -> None:
    """In this story producers poll, which none of a run's may: all that rests on histories is withheld."""
    story = planted_story("what no client may see of transactions")
    directory = story.write(tmp_path / "run")
    run = story.model()
    found = transactional(directory, run)
    assert {each.check for each in found} == {"G1a", "precommitted-read", "G1c", "G0"}
    verdict = conclude(run, Deletions(), Audit(Facts(), found), gather(directory, run))
    assert verdict.verdict == "unknown"
    assert all(verdict.checks[each.check].withheld for each in found)
