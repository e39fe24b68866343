"""Scenarios: each can be played as it is written, is documented, and is asked for by its name."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.experiment.asked import Asked
from chaos.experiment.command_line import asked_by, words
from chaos.experiment.errors import ExperimentError
from chaos.experiment.resolve import load_seconds, plan, resolve
from chaos.experiment.told import told_by
from chaos.faults.catalogue import FAULTS
from chaos.scenarios.catalogue import find_scenario, names, scenarios
from chaos.scenarios.document import document
from chaos.scenarios.model import ScenarioError, read_scenario
from chaos.sweeps import scenarios as sweep
from chaos.sweeps.model import Wanted
from tests.chaos.test_experiment import PARSE
from verifier.anomalies import NAMES

DOCS = Path(__file__).resolve().parents[2] / "docs"
#: What the field's bugs needed, at the least.
MUST_HAVE = (
    "jepsen-2013-isr-of-one",
    "kip-101-truncate-to-watermark",
    "kip-279-fast-failovers",
    "kafka-7128-lagging-follower",
    "kip-903-empty-disk",
    "last-replica-standing",
    "zombie-leader",
    "response-loss",
    "stale-controller",
    "metadata-split",
    "coordinator-failover-in-mid-commit",
    "hanging-transaction",
)


def test_there_are_enough_of_them() -> None:
    """Two dozen at least, those that every harness of this kind is asked for among them."""
    assert len(names()) >= 24
    assert set(MUST_HAVE) <= set(names())


@pytest.mark.parametrize("client", ["confluent", "native"])
@pytest.mark.parametrize("name", names())
def test_a_scenario_can_be_played(name: str, client: str) -> None:
    """Its options, targets and parameters are those of a run, its faults suit its load, and its time is enough."""
    asked = told_by(name, 3, client=client)
    experiment, warnings = resolve(asked)
    assert warnings == []
    schedule = plan(experiment)
    assert schedule.injections == find_scenario(name).schedule.injections and schedule.seed == 3
    room_s = max(each.at_s + each.duration_s + FAULTS[each.fault].recovery_s for each in schedule.injections)
    assert room_s <= asked.time_limit_s == load_seconds(experiment, schedule)
    assert set(find_scenario(name).allowed) <= set(NAMES)


def test_the_page_has_what_the_files_have() -> None:
    """It is made of them: run python -m chaos.scenarios.document > docs/scenarios.md."""
    assert (DOCS / "scenarios.md").read_text() == document()


def test_a_run_is_repeated_by_the_name_of_its_scenario() -> None:
    """The command has the name, the seed and what was asked for beside it; the program has the same run again."""
    asked = asked_by({"scenario": "zombie-leader", "seed": 9, "rate": 700})
    assert asked == told_by("zombie-leader", 9, rate=700)
    assert words(asked) == ["run", "--seed", "9", "--scenario", "zombie-leader", "--rate", "700"]
    assert asked_by({"scenario": "zombie-leader"}, fresh_seed=lambda: 5).seed == 5


def test_what_is_asked_for_beside_a_scenario_wins() -> None:
    """Also where it is the default of a run without a scenario: the command that repeats it must say so."""
    scenario = find_scenario("zombie-leader")
    assert scenario.options["time_limit_s"] == 50
    asked = asked_by({"scenario": "zombie-leader", "seed": 9, "time_limit_s": 60.0})
    assert asked.time_limit_s == 60.0 and "--time-limit" in words(asked)
    assert asked_by({"scenario": "zombie-leader", "seed": 9}).partitions == scenario.options["partitions"]


def test_what_a_scenario_decides_is_not_taken_back_by_a_default() -> None:
    """On the command line as well, where every option has one: the time that its schedule needs is its own."""
    for scenario in scenarios():
        assert PARSE(["run", "--seed", "9", "--scenario", scenario.name]) == told_by(scenario.name, 9)
    longer = PARSE(["run", "--seed", "9", "--scenario", "zombie-leader", "--time-limit", "60"])
    assert longer == told_by("zombie-leader", 9, time_limit_s=60.0)


@pytest.mark.parametrize("given", [{"faults": "kill-leader"}, {"overlap": True}, {"schedule": Path("x.yaml")}])
def test_a_scenario_is_its_schedule(given: dict[str, object]) -> None:
    """No other faults beside it."""
    with pytest.raises(ExperimentError):
        asked_by({"scenario": "zombie-leader", **given})


def test_an_unknown_scenario_is_told_the_nearest() -> None:
    """A name that is almost right is told the one it is nearest to."""
    with pytest.raises(ExperimentError, match="unknown scenario 'zombie'; did you mean 'zombie-leader'"):
        asked_by({"scenario": "zombie"})
    with pytest.raises(ScenarioError, match="'gapless list scenarios' shows all"):
        find_scenario("../schedules/controls/acks-1-loses")


TEXTS = "title: a\nsource: b\nstory: c\nneeds: d\nshows: e\n"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[]", "is not a mapping"),
        (TEXTS, "list 'injections'"),
        (f"{TEXTS}injections: [{{fault: kill-leader}}]", "'at_s'"),
        (f"{TEXTS}injections: []\nseed: 3", "unknown key 'seed'"),
        ("title: a\ninjections: []", "needs 'source', a text"),
        (f"{TEXTS}injections: []\nallowed: lost-write", "'allowed' is a list"),
        (f"{TEXTS}injections: []\noptions: [a]", "'options' a mapping"),
        ("title: [", "not YAML"),
    ],
)
def test_a_bad_file_names_what_is_wrong(text: str, says: str) -> None:
    """The refusal is one line that names the file and what is wrong in it."""
    with pytest.raises(ScenarioError, match=says):
        read_scenario("mine", text)


def test_a_sweep_plays_all_of_them() -> None:
    """Each by its name, with its own time; controls claim what their settings allow."""
    cells = sweep.build(Wanted(seeds=(1, 2))).cells
    assert [cell.labels["scenario"] for cell in cells[::2]] == names()
    claimed = {cell.labels["scenario"]: cell.claims for cell in cells if cell.claims}
    assert claimed == {each.name: ("lost",) for each in scenarios() if "lost-write" in each.allowed}
    for cell in cells:
        assert f"--scenario {cell.labels['scenario']}" in " ".join(words(cell.asked))
        assert isinstance(cell.asked, Asked)
