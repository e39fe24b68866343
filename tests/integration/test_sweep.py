"""``gapless sweep`` from end to end: two real cells, then the rest of them by --resume."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import psutil
import pytest

from cluster.process.processes import is_alive, until
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
        assert "1 cell has a verdict already" in place.err
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


def test_a_sweep_whose_conductors_and_wardens_were_killed_is_cleaned_up_and_resumed(tmp_path: Path) -> None:
    """kill -9 of all of them in mid-sweep leaves a broker that is stopped; the next start ends it and runs the rest."""
    require("java")
    swept = tmp_path / "swept"
    asked = ("sweep", "seeds", "--seeds", "1,2", "--faults", "pause-leader", "--time-limit", "12", "--out", str(swept))
    with Place(tmp_path) as place:
        sweep = place.start(*asked)
        place.wait_for("cell 2/2", SWEEP_S / 2)
        log = swept / "logs" / "client-confluent_seed-2.log"
        place.wait_for("fault pause-leader", SWEEP_S / 4, lambda _: log.read_text() if log.exists() else "")
        stopped: list[psutil.Process] = []

        def one_is_stopped() -> bool:
            stopped[:] = [each for each in place.processes() if each.status() == psutil.STATUS_STOPPED]
            return bool(stopped)

        assert until(one_is_stopped, 20.0)
        (cell,) = [json.loads(path.read_text()) for path in swept.glob("cells/*/processes.json")]
        own = json.loads((swept / "processes.json").read_text())
        wardens = [each["pid"] for record in (own, cell) for each in record["children"] if each["name"] == "warden"]
        assert len(wardens) == 2 and own["conductor"]["pid"] == sweep.pid
        for pid in (*wardens, sweep.pid, cell["conductor"]["pid"]):
            psutil.Process(pid).send_signal(signal.SIGKILL)
        sweep.wait()
        assert not until(lambda: not any(map(is_alive, stopped)), 3.0), "nobody is there who would end it"

        status = place.run(*asked, timeout_s=SWEEP_S / 2)
        assert status == 0, place.out + place.err
        assert f"swept was left by a conductor that was killed (run {own['run_id']})" in place.err
        assert f"({stopped[0].pid})" in place.err and f"(run {cell['run_id']})" in place.err
        assert "1 cell has a verdict already and is not run again:" in place.err
        assert "client-confluent_seed-1: valid" in place.err
        assert "cell 1/1" in place.err and "client-confluent_seed-2.unfinished-1" in place.err
        place.assert_nothing_left(within_s=1.0)
        assert json.loads((swept / "sweep.json").read_text())["counts"] == {"valid": 2}
