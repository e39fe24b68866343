"""What ``--out`` writes of a history: any text that a history may hold ends up in readable files."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pyarrow.parquet as pq
import pytest

from verifier.evidence.texts import encodable, fit_for_xml
from verifier.operations.options import JudgeOptions
from verifier.operations.report import write_reports
from verifier.operations.verify_history import judge_file

#: Half of a surrogate pair, which JSON can hold and UTF-8 cannot; a control character; what Markdown takes for a table.
ODD = ("a\ud800", "b\x00", "c|d\ufffe")


@pytest.mark.parametrize("odd", ODD)
def test_odd_text_of_a_history_reaches_every_file(tmp_path: Path, odd: str) -> None:
    """A value was read that nothing sent, and its name is odd: the verdict is there, in whole files."""
    history = tmp_path / "odd.jsonl"
    lines = [
        {"process": 0, "type": "invoke", "f": "send", "value": [["send", "k", "sent"]]},
        {"process": 0, "type": "ok", "f": "send", "value": [["send", "k", [0, "sent"]]]},
        {"process": 1, "type": "invoke", "f": "poll", "value": [["poll"]]},
        {"process": 1, "type": "ok", "f": "poll", "value": [["poll", {"k": [[0, "sent"], [1, odd]]}]]},
    ]
    history.write_text("".join(json.dumps(line) + "\n" for line in lines))
    judged = judge_file(history, JudgeOptions())
    assert judged.verdict.verdict == "invalid"
    write_reports(tmp_path / "out", judged)
    suite = ET.fromstring((tmp_path / "out" / "junit.xml").read_text(encoding="utf-8"))
    (failure,) = [case.find("failure") for case in suite.iter("testcase") if case.get("name") == "phantom"]
    assert failure is not None and fit_for_xml(odd) in (failure.text or "")
    assert "phantom" in (tmp_path / "out" / "summary.md").read_text(encoding="utf-8")
    verdict = json.loads((tmp_path / "out" / "verdict.json").read_text(encoding="utf-8"))
    assert verdict["checks"]["phantom"]["examples"][0]["detail"]["value"] == encodable(odd)
    rows = pq.read_table(tmp_path / "out" / "anomalies" / "phantom.parquet")
    assert rows["value"].to_pylist() == [encodable(odd)]
    # a distance would be a number: -1 is one back
    assert rows["delta"].to_pylist() == [None]
