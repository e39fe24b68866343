"""The histories in docs/jepsen.md are histories: copied as they stand, they are read, and judged as the text says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from chaos.commands.main import run_command

PAGE = Path(__file__).resolve().parents[3] / "docs" / "jepsen.md"
SUFFIXES = {"json": ".jsonl", "clojure": ".edn"}
BLOCKS = re.findall(r"^```(json|clojure)\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def judged(path: Path, text: str, capsys: pytest.CaptureFixture[str]) -> str:
    path.write_text(text, encoding="utf-8")
    run_command(["verify", str(path)])
    return capsys.readouterr().out.splitlines()[0]


@pytest.mark.parametrize("language", SUFFIXES)
def test_the_complete_history_is_valid(language: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As it stands it is valid; with another value polled it has the anomaly that the text promises."""
    text = next(text for found, text in BLOCKS if found == language)
    path = tmp_path / f"history{SUFFIXES[language]}"
    assert judged(path, text, capsys).startswith("RESULT valid acked=1 read=1 anomalies=none")
    changed = "8".join(text.rsplit("7", 1))
    assert "phantom:1" in judged(path, changed, capsys)


def test_every_example_can_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """None is refused or malformed: whatever it shows, something was counted."""
    assert len(BLOCKS) >= 3
    for number, (language, text) in enumerate(BLOCKS):
        line = judged(tmp_path / f"{number}{SUFFIXES[language]}", text, capsys)
        assert "acked=?" not in line and "acked=0" not in line, text
