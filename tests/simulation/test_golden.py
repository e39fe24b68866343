"""Golden scenarios: real bugs of replication as transcripts over the real code, and each without the rule that helps.

The files are ``golden/*.txt``; how to rewrite them stands in ``transcript.py``, what each is played without in
``golden_scenarios.py``.
"""

from __future__ import annotations

import pytest

from cluster.broker.rules import Rules
from tests.simulation.golden_scenarios import SCENARIOS
from tests.simulation.transcript import COMMANDS, GOLDEN, TOPIC, commands_of, play

NAMES = sorted(path.stem for path in GOLDEN.glob("*.txt"))


@pytest.mark.parametrize("name", NAMES)
def test_golden(name: str) -> None:
    """The states after each command are those that were written down, and what was acknowledged is in the leader's log.

    Those in sync hold the same, and the anomaly that the scenario shows without its rule is not there with it.
    """
    text = (GOLDEN / f"{name}.txt").read_text()
    played, transcript = play(text)
    assert played == text
    scenario = SCENARIOS[name]
    if transcript.leader(TOPIC) > 0:
        assert transcript.lost() == [] or scenario.loses_anyway
        in_sync = transcript.isr(TOPIC) & set(transcript.processes)
        assert len({tuple(transcript.values(broker_id)) for broker_id in in_sync}) == 1
    with pytest.raises(AssertionError):
        scenario.anomaly(transcript)


@pytest.mark.parametrize("name", NAMES)
def test_without_its_rule_the_anomaly_is_there(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each scenario goes wrong in its own way if the rule that protects from it is removed."""
    scenario = SCENARIOS[name]
    for owner, attribute, instead in scenario.patches:
        monkeypatch.setattr(owner, attribute, instead)
    _, transcript = play((GOLDEN / f"{name}.txt").read_text(), scenario.removal(Rules()))
    scenario.anomaly(transcript)


def test_every_transcript_has_a_rule_and_a_story() -> None:
    """None is in the table without a script or the other way round, and each opens with what it is about."""
    assert sorted(SCENARIOS) == NAMES
    assert len(NAMES) >= 20
    assert [name for name in NAMES if not (GOLDEN / f"{name}.txt").read_text().startswith("# ")] == []


def test_every_command_is_used_and_explained() -> None:
    """What no transcript needs is not there, and the first word of a command's text is its name."""
    used = {command.split()[0] for name in NAMES for _, command in commands_of((GOLDEN / f"{name}.txt").read_text())}
    assert set(COMMANDS) == used
    assert [name for name, call in COMMANDS.items() if not (call.__doc__ or "").startswith(name)] == []


def test_a_block_has_one_command() -> None:
    """A script that says more than one thing at once is refused, not half done."""
    with pytest.raises(AssertionError, match="one command a block"):
        commands_of("kill 1\nkill 2\n")
