"""What is swept: cells, filters, seeds, and that every declared cell can be asked for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from chaos.commands.main import run_command
from chaos.experiment.errors import ExperimentError
from chaos.experiment.forms import ScheduleFile
from chaos.experiment.resolve import plan, resolve
from chaos.experiment.verdict_settings import settings_of
from chaos.faults.catalogue import check_faults
from chaos.sweeps.catalogue import SWEEPS, find_sweep
from chaos.sweeps.delivery import claims, injections
from chaos.sweeps.model import EFFECTS, Cell, Sweep, SweepError, Wanted, parse_filter, parse_seeds
from cluster.defects import parse
from verifier.excuses.expectation import Expectation

DELIVERY = find_sweep("delivery")(Wanted())


@pytest.mark.parametrize("name", list(SWEEPS))
def test_every_cell_can_be_asked_for(name: str) -> None:
    """Settings that go together, faults that exist, and names that are directories."""
    sweep = find_sweep(name)(Wanted())
    assert len({cell.name for cell in sweep.cells}) == len(sweep.cells)
    for cell in sweep.cells:
        settings, _ = resolve(cell.asked)
        check_faults((cell.schedule or plan(settings)).kinds())
        assert not set(cell.name) & set(", /\\")
        assert list(cell.labels)[-1] == "seed"
        assert sweep.across in cell.labels


def test_the_matrix_of_delivery_is_whole() -> None:
    """acks 0, 1, all x in-flight 1, 5 x fault; idempotence on with acks=all alone; what makes no sense says why."""
    assert len(DELIVERY.cells) == 4 * 2 * 6
    assert {cell.labels["acks"] for cell in DELIVERY.cells if cell.labels["idempotence"] == "on"} == {"all"}
    inapplicable = [(cell.labels["acks"], cell.labels["fault"]) for cell in DELIVERY.cells if cell.inapplicable]
    assert set(inapplicable) == {("0", "drop-response")}
    for cell in DELIVERY.cells:
        for defect in cell.asked.defects:
            parse(defect)


def test_what_is_claimed_is_allowed() -> None:
    """A claim that the settings forbid would make the sweep invalid; with idempotence nothing is claimed."""
    for cell in DELIVERY.cells:
        settings, _ = resolve(cell.asked)
        expectation = Expectation(settings_of(settings))
        for effect in EFFECTS:
            if effect.name in cell.claims:
                assert expectation.permitted(effect.check, effect.cause), cell.name
        assert not (settings.idempotence and cell.claims)


def test_the_claims_of_the_seeds() -> None:
    """acks=0/1 lose when a leader dies; lost answers duplicate without idempotence; reordering needs two in flight."""
    assert claims("kill-leader", "1", False, 5) == ("lost",)
    assert claims("kill-leader", "0", False, 1) == ("lost",)
    assert claims("kill-leader", "all", False, 5) == ("duplicated",)
    assert claims("kill-leader", "all", True, 5) == ()
    assert claims("drop-response", "all", False, 1) == ("duplicated",)
    assert claims("refuse", "all", False, 5) == ("out of order",)
    assert claims("refuse", "all", False, 1) == ()
    assert claims("none", "0", False, 5) == ()


@pytest.mark.parametrize("fault", ["drop-response", "reset", "kill-leader"])
def test_a_schedule_is_dense_and_comes_at_least_once(fault: str) -> None:
    """A longer cell has more of it; the shortest one has it."""
    once, twice = (list(injections(fault, time_limit_s, "all")) for time_limit_s in (5.0, 30.0))
    assert once[-1].fault == fault
    assert len(twice) > 2 * len(once)
    assert {injection.target["partition"] for injection in twice} == {0, 1, 2}
    assert all(injection.at_s < 30.0 for injection in twice)


@pytest.mark.parametrize("limit_s", [4.01, 5.0, 9.5, 16.0, 47.3])
def test_a_cell_with_a_schedule_can_be_run(limit_s: float) -> None:
    """No cell is refused once the sweep is under way, whatever its time limit."""
    wanted = Wanted(time_limit_s=limit_s)
    for name in SWEEPS:
        for cell in find_sweep(name)(wanted).cells:
            given = None if cell.schedule is None else ScheduleFile(Path("schedule.yaml"), cell.schedule)
            resolve(replace(cell.asked, schedule=given))


def test_a_time_limit_of_nothing_is_not_taken_for_the_default() -> None:
    """0 s is what was asked for, and refused."""
    for name in SWEEPS:
        with pytest.raises(ExperimentError, match="--time-limit must be longer"):
            resolve(find_sweep(name)(Wanted(time_limit_s=0.0)).cells[0].asked)


def test_a_filter_picks_cells_by_their_labels() -> None:
    """Every term must hold; a term may name several values."""
    cells = DELIVERY.filtered(parse_filter(["acks=1,fault=none|reset", "in-flight=5"]))
    assert [cell.labels["fault"] for cell in cells] == ["none", "reset"]
    assert DELIVERY.filtered([]) == DELIVERY.cells


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("fault", "DIMENSION=VALUE"),
        ("fault=", "DIMENSION=VALUE"),
        ("falt=none", "did you mean 'fault'"),
        ("fault=kill-leadr", "did you mean 'kill-leader'"),
        ("acks=7", "use one of 0, 1, all"),
    ],
)
def test_a_filter_that_cannot_be_meant(text: str, hint: str) -> None:
    """One line with what would be right."""
    with pytest.raises(SweepError, match=hint):
        DELIVERY.filtered(parse_filter([text]))


def test_a_filter_that_leaves_nothing_to_run_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A sweep in which no cell applies tests nothing: it does not end as a green one does."""
    given = ["sweep", "delivery", "--filter", "acks=0,fault=drop-response", "--out", str(tmp_path / "out")]
    assert run_command(given) == 254
    assert "there is no response to drop" in capsys.readouterr().err


def test_seeds() -> None:
    """A number is so many; a comma makes it a list."""
    assert parse_seeds("3") == (1, 2, 3)
    assert parse_seeds("7,9,7") == (7, 9)
    assert parse_seeds("7,") == (7,)


@pytest.mark.parametrize("text", ["", "x", "0", "-1", "1,x", ",", "1000000"])
def test_seeds_that_cannot_be_meant(text: str) -> None:
    """Refused with the option's name."""
    with pytest.raises(SweepError, match="--seeds"):
        parse_seeds(text)


def test_what_is_wanted_reaches_the_cells() -> None:
    """Seeds, time, rate and client of the command line, and back from ``sweep.json``."""
    wanted = Wanted((4, 5), 12.0, "confluent", 500, "none")
    sweep: Sweep = find_sweep("seeds")(Wanted.from_json(wanted.to_json()))
    assert [cell.asked.seed for cell in sweep.cells] == [4, 5]
    one: Cell = sweep.cells[0]
    assert (one.asked.time_limit_s, one.asked.rate, one.asked.faults) == (12.0, 500, "none")
    with pytest.raises(SweepError, match="cannot be read"):
        Wanted.from_json({"seeds": 7})


def test_an_unknown_sweep_names_the_nearest() -> None:
    """A sweep's name with a typo is refused with the name that is nearest."""
    with pytest.raises(SweepError, match="did you mean 'delivery'"):
        find_sweep("delivry")
