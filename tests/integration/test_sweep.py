"""``gapless sweep`` from end to end: two real cells, then the rest of them by --resume."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.leftovers import Place
from tests.support.require import require

pytestmark = [pytest.mark.integration, pytest.mark.full, pytest.mark.timeout(900)]

#: A machine that does much else may take this long for what needs two minutes.
SWEEP_S = 840.0


def test_a_lost_answer_duplicates_without_idempotence_and_not_with_it(tmp_path: Path) -> None:
    """Two cells under one fault: both valid, one with duplicates that its settings allow; the second by --resume."""
    require("java")
    with Place(tmp_path) as place:
        where = str(tmp_path / "swept")
        chosen = ["--filter", "acks=all,in-flight=5,fault=drop-response,idempotence=off"]
        shape = ["--time-limit", "10", "--rate", "2000", "--out", where]
        status = place.run("sweep", "delivery", *shape, *chosen, timeout_s=SWEEP_S / 2)
        assert status == 0, place.out + place.err
        assert "duplicated" in place.out and "1 of 1 settings show" in place.out
        both = ["--filter", "acks=all,in-flight=5,fault=drop-response", "--json"]
        status = place.run("sweep", "--resume", where, *both, timeout_s=SWEEP_S / 2)
        assert status == 0, place.out + place.err
        place.assert_nothing_left(within_s=1.0)
        assert "1 cells have a verdict already" in place.err
        whole = json.loads(place.out)
        rows = {row["labels"]["idempotence"]: row for row in whole["rows"] if row["verdict"] != "-"}
        assert {row["verdict"] for row in rows.values()} == {"valid"}
        assert rows["off"]["found"]["duplicated"] > 0 and "duplicated" in rows["off"]["allowed"]
        assert (
            not any(rows["on"]["found"][name] for name in ("lost", "duplicated", "out of order"))
            and not rows["on"]["allowed"]
        )
        assert all(row["shown"] and row["records_per_s"] > 0 for row in rows.values())
        swept = Path(where)
        assert whole["counts"]["valid"] == 2
        assert json.loads((swept / "sweep.json").read_text())["rows"] == whole["rows"]
        assert (swept / "sweep.html").stat().st_size > 0 and (swept / "sweep.md").stat().st_size > 0
        cell = next(each for each in whole["cells"] if each["verdict"])
        assert (swept / cell["run_dir"] / "report.html").is_file()
        assert (swept / "schedules" / f"{cell['cell']}.yaml").is_file()
