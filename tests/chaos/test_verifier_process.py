"""A verifier that dies leaves the run unknown, with the reason; one that is interrupted leaves the previous verdict."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import signal
import sys
import threading
from pathlib import Path

import pytest

from chaos.commands import verifier_process
from chaos.exits import VERDICTS, BadRequest, Exit
from tests.support.stories import clean
from verifier.evidence.run_directory import RunDirectory, read_json
from verifier.replacing import replacing

pytestmark = pytest.mark.timeout(300)

#: How a verifier ends, and what is then told.
ENDS = {
    "killed": ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", r"was killed by signal 9 \(SIGKILL\); see"),
    "out of memory": (
        "import sys; sys.stderr.write('ERROR verifier.main: no verdict: Spark ran out of memory\\n'); sys.exit(255)",
        r"ended with status 255: Spark ran out of memory; see",
    ),
    "hardly any memory": (
        "import resource; resource.setrlimit(resource.RLIMIT_AS, (64 << 20, 64 << 20)); "
        "from verifier.main import main; raise SystemExit(main([RUN]))",
        r"ended with status \d+|was killed by signal",
    ),
    "too slow": ("import time; time.sleep(600)", r"was ended after 1 s without a verdict; see"),
}


@pytest.fixture
def directory(tmp_path: Path) -> RunDirectory:
    """A run that was judged valid before."""
    directory = clean().write(tmp_path / "run")
    directory.verdict_json.write_text('{"verdict": "valid", "checks": {}, "stats": {}, "reasons": []}')
    directory.report_html.write_text("the former report")
    directory.anomalies_dir.mkdir()
    return directory


@pytest.mark.parametrize("end", ENDS)
def test_a_verifier_that_dies_leaves_the_run_unknown(
    directory: RunDirectory, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit status 2, and one line says how it died; the verdict of before is gone."""
    script, told = ENDS[end]
    script = script.replace("RUN", repr(str(directory.path)))
    monkeypatch.setattr(verifier_process, "_command", lambda *_: [sys.executable, "-c", script])
    monkeypatch.setattr(verifier_process, "VERIFY_TIMEOUT_S", 1.0 if end == "too slow" else 250.0)
    monkeypatch.setattr(verifier_process, "VERIFIED_BYTES_PER_S", 1e12)
    assert VERDICTS[verifier_process.judge(directory, "local[2]", as_json=False)] is Exit.UNKNOWN
    verdict = read_json(directory.verdict_json)
    assert verdict["verdict"] == "unknown"
    (reason,) = verdict["reasons"]
    assert reason.startswith("the verifier ")
    assert "\n" not in reason
    assert re.search(told, reason), reason
    assert directory.report_html.read_text() != "the former report"
    assert not directory.anomalies_dir.exists()


def interrupted(directory: RunDirectory, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Have it judged by this script, and interrupt that as soon as it has opened a pipe."""
    begun = directory.path.with_name("begun")
    os.mkfifo(begun)
    # it never ends by itself: the interrupt must
    script = f"import pathlib, time; {script}; open({str(begun)!r}, 'w').close(); time.sleep(600)"
    monkeypatch.setattr(verifier_process, "_command", lambda *_: [sys.executable, "-c", script])

    def interrupt() -> None:
        begun.open().close()
        os.kill(os.getpid(), signal.SIGINT)

    waiting = threading.Thread(target=interrupt, daemon=True)
    waiting.start()
    with pytest.raises(KeyboardInterrupt):
        verifier_process.judge(directory, "local[2]", as_json=False)
    waiting.join()


def test_an_interrupted_verifier_leaves_the_former_verdict(
    directory: RunDirectory, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The files of before stay, and one line says that they are those of before; no RESULT line takes them for new."""
    before = directory.verdict_json.read_text()
    interrupted(directory, monkeypatch, "pass")
    assert directory.verdict_json.read_text() == before
    assert directory.report_html.read_text() == "the former report"
    assert directory.anomalies_dir.exists()
    out, err = capsys.readouterr()
    assert "RESULT" not in out
    assert err.splitlines()[-1] == (
        f"gapless: {directory.path}: interrupted, and not judged again: what is left is the previous verdict, valid"
    )


def test_an_interrupted_verifier_leaves_no_run_without_a_verdict(
    directory: RunDirectory, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where there was no verdict, or it was just being replaced, the run is unknown and says how to judge it."""
    interrupted(directory, monkeypatch, f"pathlib.Path({str(directory.verdict_json)!r}).unlink()")
    verdict = read_json(directory.verdict_json)
    assert verdict["verdict"] == "unknown"
    assert verdict["reasons"][0].startswith("interrupted before the verdict; judge it with: ")
    assert "interrupted before the verdict: it is unknown now" in capsys.readouterr().err


def test_an_interrupt_that_comes_too_late(
    directory: RunDirectory, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The verdict was replaced already: it is not called the former one."""
    new = json.dumps({"verdict": "invalid"})
    interrupted(directory, monkeypatch, f"pathlib.Path({str(directory.verdict_json)!r}).write_text({new!r})")
    assert "interrupted, but it had been judged: invalid" in capsys.readouterr().err


def test_results_replace_the_former_ones_together(directory: RunDirectory) -> None:
    """All that was there stays if the new ones are not finished, and none of it if they are."""
    before = directory.verdict_json.read_text()
    with contextlib.suppress(SystemExit), replacing(directory) as results:
        results.report_html.write_text("new")
        results.verdict_json.write_text("new")
        raise SystemExit
    assert (directory.verdict_json.read_text(), directory.report_html.read_text()) == (before, "the former report")
    with replacing(directory) as results:
        results.anomalies_dir.mkdir()
        (results.anomalies_dir / "new.csv").touch()
        for path in (results.report_html, results.verdict_json, results.summary_md, results.junit_xml):
            path.write_text("new")
        assert directory.verdict_json.read_text() == before
    written = (directory.report_html, directory.verdict_json, directory.summary_md, directory.junit_xml)
    assert [path.read_text() for path in written] == ["new"] * 4
    assert [path.name for path in directory.anomalies_dir.iterdir()] == ["new.csv"]
    assert not list(directory.path.glob(".judged*"))


def test_a_former_verdict_never_stands_beside_new_files(
    directory: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It goes before the first new file comes, so that a kill between the two leaves no verdict.

    Not before its anomalies are out of the way: that may be refused.
    """
    seen = []
    rename = Path.replace

    def noted(self: Path, target: Path) -> Path:
        seen.append((target.name, directory.verdict_json.exists()))
        return rename(self, target)

    monkeypatch.setattr(Path, "replace", noted)
    with replacing(directory) as results:
        for path in (results.report_html, results.verdict_json):
            path.write_text("new")
    assert seen == [("former", True), ("report.html", False), ("verdict.json", False)]


def test_two_verifiers_of_one_run(directory: RunDirectory) -> None:
    """The second is refused with one line, and leaves what is there as it is."""
    before = directory.verdict_json.read_text()
    (directory.path / ".verifier").mkdir()
    descriptor = os.open(directory.path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        with pytest.raises(BadRequest, match=r"^another verifier judges .* now; wait for it, or end it$"):
            verifier_process.judge(directory, "local[2]", as_json=False)
    finally:
        os.close(descriptor)
    assert directory.verdict_json.read_text() == before
    assert (directory.path / ".verifier").is_dir()
