"""What others name and write is shown, and does nothing: no line of a log, of a terminal or of a report is forged."""

from __future__ import annotations

import json
import logging
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from chaos.commands.main import run_command
from cluster.broker import main as broker_main
from cluster.process.one_line import printable
from tests.support.stories import clean
from verifier.report.junit import junit_xml
from verifier.report.summary import summary_md
from verifier.telling.markdown import code, inline
from verifier.verdict import undecidable

FORGED = "2026-01-01 00:00:00,000 INFO cluster.broker.node: all is well"
NAME = f"orders\n{FORGED}\x1b[2J\x9b2J\u202e\r"
#: What a terminal or a reader obeys, and what may end a line.
OBEYED = ("\x1b", "\x9b", "\x07", "\u202e", "\r", "\x00")


@pytest.fixture
def root_logger() -> Iterator[logging.Logger]:
    """As it was, afterwards."""
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    yield root
    for handler in set(root.handlers) - set(before):
        handler.close()
    root.handlers[:] = before
    root.setLevel(level)


def test_a_name_cannot_forge_a_line_of_a_brokers_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root_logger: logging.Logger
) -> None:
    """Neither in a message nor in the text of an error; only records begin at the start of a line."""

    def hurt(*_arguments: Any) -> None:
        logging.getLogger("cluster").info("topic %s could not be created", NAME)
        raise ValueError(NAME)

    monkeypatch.setattr(broker_main, "_run", hurt)
    channel: Any = type("Channel", (), {"ready": lambda _self, _message: None})()
    with pytest.raises(SystemExit):
        broker_main.serve({"broker_id": 1, "properties": {}, "node_directory": str(tmp_path)}, channel)
    lines = (tmp_path / "broker.log").read_text(encoding="utf-8").split("\n")
    assert [line.split(": ", 1)[1] for line in lines if not line.startswith("    ") and line] == [
        f"topic {printable(NAME)} could not be created", f"broker 1 failed: {printable(NAME)}"
    ]  # fmt: skip
    assert not [line for line in lines if line.startswith(FORGED)]
    assert not [line for line in lines if any(each in line for each in OBEYED)]
    assert any(line.startswith(f"    {FORGED}") for line in lines)


def test_what_nobody_handles_is_one_line_too(tmp_path: Path) -> None:
    """A supervised child that has set up no log, as the proxy, writes warnings to its output."""
    program = (
        "import logging, os; from cluster.process import child\n"
        "os.setsid()\n"
        "class Link:\n"
        "    def recv_bytes(self): return b'{}'\n"
        "child.resolve = lambda _: (lambda *_: logging.getLogger('x').warning('proxy %s', 'a\\nb\\x1b[2J'))\n"
        "child.ChildChannel.watch = lambda self: self._received.put(b'{}')\n"
        f"child.run_child(Link(), 'x:y', {str(tmp_path / 'log')!r}, 'MARK')\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=30)
    assert (tmp_path / "log").read_text() == "proxy a\\nb\\x1b[2J\n"


@pytest.mark.parametrize("options", [[], ["--json"]], ids=["text", "JSON"])
def test_dump_prints_what_a_file_holds_and_the_terminal_obeys_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    """Fields, values, and what is said of damage; as JSON it is the same value still."""
    line = {"event": NAME, NAME: "\u00e9\u4e16", "phase": "inject"}
    (tmp_path / "faults.jsonl").write_text(json.dumps(line) + "\n" + json.dumps([NAME], ensure_ascii=False) + "\n")
    run_command(["dump", str(tmp_path / "faults.jsonl"), *options])
    out, err = capsys.readouterr()
    assert "\u00e9\u4e16" in out
    first, second = out.splitlines()
    assert not [each for each in OBEYED if each in out + err]
    if options:
        assert (json.loads(first), json.loads(second)) == (line, {"value": [NAME]})


def test_verify_prints_what_a_history_holds_and_the_terminal_obeys_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Keys and values of the example, the path, and the reason of a history that cannot be read."""
    lines = [
        {"process": 0, "type": "invoke", "f": "send", "value": [["send", NAME, NAME]]},
        {"process": 0, "type": "ok", "f": "send", "value": [["send", NAME, [0, NAME]]]},
        {"process": 1, "type": "invoke", "f": "poll", "value": [["poll"]]},
        {"process": 1, "type": "ok", "f": "poll", "value": [["poll", {NAME: [[0, NAME], [1, NAME + "!"]]}]]},
    ]
    (tmp_path / "odd.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (tmp_path / "torn.jsonl").write_text(json.dumps({"process": NAME, "f": NAME}) + "\n{")
    for name, status in (("odd", 1), ("torn", 2)):
        assert run_command(["verify", str(tmp_path / f"{name}.jsonl")]) == status
        out, err = capsys.readouterr()
        assert not [each for each in OBEYED if each in out + err], err
        assert not [line for line in (out + err).splitlines() if line.startswith("2026")]


def test_a_summary_and_a_suite_show_a_text_and_nothing_more() -> None:
    """Names, reasons and the command are one line each; a summary has no link, tag, list or table of theirs."""
    hostile = f"<img src=x>[a](//b)`|# ~~1~~ & www.x.org https://x.org {NAME}"
    run = replace(clean().model(), name=hostile, repro=f"gapless `rm -rf x` {NAME}")
    verdict = undecidable(hostile)
    summary = summary_md(run, (), verdict)
    assert not [each for each in OBEYED if each in summary]
    assert not [line for line in summary.splitlines() if line.startswith(("2026", "# ~~", "<"))]
    for sign in ("<img", "[a]", "https://", "www.x", "~~", "& "):
        assert not re.search(r"(?<!\\)" + re.escape(sign), summary), sign
    suite = ET.fromstring(junit_xml(Path("run"), run, verdict))
    held = [value for element in suite.iter() for value in (*element.attrib.values(), element.text or "")]
    assert not [value for value in held for each in OBEYED if each in value]
    assert not [line for value in held for line in value.splitlines() if line.startswith("2026")]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain 1.5 s, lost-write", "plain 1.5 s, lost-write"),
        ("- item", "\\- item"),
        ("12. item", "12\\. item"),
        ("# head", "\\# head"),
        ("a\nb\x1b", "a b\\\\x1b"),
    ],
)
def test_markdown_shows_what_is_written(text: str, shown: str) -> None:
    """What has no meaning stays as it is."""
    assert inline(text) == shown


def test_code_holds_backticks() -> None:
    """The fence is longer than any within."""
    assert [code(text) for text in ("a b", "`a`", "a``b")] == ["`a b`", "`` `a` ``", "```a``b```"]
