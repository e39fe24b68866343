"""The files that the tables of bad inputs name."""

from __future__ import annotations

import json
from pathlib import Path

from tests.chaos.unplayable import UNPLAYABLE
from tests.support.settings import run_model


def make_files(tmp_path: Path) -> None:
    """Make them: a file in the way, a full directory, and files that are not what is asked for."""
    (tmp_path / "file").touch()
    (tmp_path / "title.md").write_text("# A title\nSome words\n")
    (tmp_path / "ssl.properties").write_text(
        "broker.id=1\nzookeeper.connect=127.0.0.1:1\nlisteners=SSL://127.0.0.1:0\n"
    )
    (tmp_path / "alone.properties").write_text("broker.id=1\nlisteners=PLAINTEXT://127.0.0.1:0\n")
    (tmp_path / "kept" / "nodes" / "1" / "data").mkdir(parents=True)
    (tmp_path / "kept" / "run.json").touch()
    (tmp_path / "history.edn").touch()
    (tmp_path / "emptied").mkdir()
    (tmp_path / "emptied" / "meta.properties").touch()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    (tmp_path / "broken.yaml").write_text("injections: [\n")
    (tmp_path / "other.yaml").write_text("- 1\n")
    (tmp_path / "latin.yaml").write_bytes(b"# f\xfcr\n")
    (tmp_path / "twice.yaml").write_text("seed: 1\ninjections: []\nseed: 2\n")
    (tmp_path / "late.yaml").write_text(
        "injections:\n- {at_s: 500.5, fault: pause-leader}\n- {at_s: 1, fault: kill-leader}\n"
    )
    for name, (injection, _, _) in UNPLAYABLE.items():
        (tmp_path / f"{name}.schedule").write_text(f"injections:\n- {{at_s: 1, {injection}}}\n")
    (tmp_path / "minutes.yaml").write_text("injections:\n- {at_s: 5m, fault: reset}\n")
    (tmp_path / "seed.yaml").write_text("seed: yes\ninjections: []\n")
    (tmp_path / "rare.yaml").write_text("value_bytes: {uniform: {least: 48, most: 2000000}}\n")
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "sweep.json").write_text('{"schema": 1, "sweep": "seeds", "wanted": {}}')
    (tmp_path / "gone").symlink_to("away")
    (tmp_path / "verdict.json").write_text('{"verdict": "valid", "checks": {}, "stats": {"process": 1}}')
    (tmp_path / "pretty.json").write_text(json.dumps({"verdict": "valid", "context": {"process": "x"}}, indent=2))
    (tmp_path / "words.edn").write_text("nothing happened\n")
    (tmp_path / "json.edn").write_text('{"process": 0, "type": "invoke"}\n')
    (tmp_path / "edn.jsonl").write_text("{:process 0, :type :invoke}\n")
    (tmp_path / "vector.json").write_text("[{:index 0 :process 0}]\n")
    (tmp_path / "two.jsonl").write_text('\n{"index": 1, "process": 0,\n "type": "ok"}\n')
    (tmp_path / "side.jsonl").write_text('{"process": 0} {"process": 1}\n')
    (tmp_path / "cut.jsonl").write_text('{"process": 0, "ty\n')
    whole = run_model().to_json()
    begun = json.dumps(whole)
    changed = {"edited": json.dumps({**whole, "seed": "one"}), "other": json.dumps({**whole, "schema": 1})}
    for name, text in {**changed, "held/begun": begun, "begun": begun, "torn": "{", "list": "[]"}.items():
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "run.json").write_text(text)
    lacking = run_model().to_json()
    del lacking["settings"]["retries"]
    (tmp_path / "sent.tar.gz").touch()
    (tmp_path / "lacking" / "history").mkdir(parents=True)
    (tmp_path / "lacking" / "history" / "final.arrow").touch()
    (tmp_path / "lacking" / "run.json").write_text(json.dumps(lacking))
    (tmp_path / "wrong.properties").write_text("broker.idd=1\n")
