"""A verifier that dies leaves the run unknown, with the reason; what was judged before does not survive."""

from __future__ import annotations

import fcntl
import os
import re
import sys
from pathlib import Path

import pytest

from chaos.commands import judge
from chaos.exits import VERDICTS, BadRequest, Exit
from tests.support.stories import clean
from verifier.evidence.run_directory import RunDirectory, read_json

pytestmark = pytest.mark.timeout(300)

#: How a verifier ends, and what is then told.
ENDS = {
    "killed": ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", r"was killed by signal 9 \(SIGKILL\); see"),
    "out of memory": (
        "import sys; sys.stderr.write('ERROR verifier.job: no verdict: Spark ran out of memory\\n'); sys.exit(255)",
        r"ended with status 255: Spark ran out of memory; see",
    ),
    "hardly any memory": (
        "import resource; resource.setrlimit(resource.RLIMIT_AS, (64 << 20, 64 << 20)); "
        "from verifier.job import main; raise SystemExit(main([RUN]))",
        r"ended with status \d+|was killed by signal",
    ),
    "too slow": ("import time; time.sleep(600)", r"was ended after 1 s without a verdict; see"),
}


@pytest.fixture
def directory(tmp_path: Path) -> RunDirectory:
    """A run that was judged valid before."""
    directory = clean().write(tmp_path / "run")
    directory.verdict_json.write_text('{"verdict": "valid", "checks": {}, "stats": {}, "reasons": []}')
    return directory


@pytest.mark.parametrize("end", ENDS)
def test_a_verifier_that_dies_leaves_the_run_unknown(
    directory: RunDirectory, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit status 2, and one line says how it died; the verdict of before is gone."""
    script, told = ENDS[end]
    script = script.replace("RUN", repr(str(directory.path)))
    monkeypatch.setattr(judge, "_command", lambda *_: [sys.executable, "-c", script])
    monkeypatch.setattr(judge, "VERIFY_TIMEOUT_S", 1.0 if end == "too slow" else 250.0)
    monkeypatch.setattr(judge, "VERIFIED_BYTES_PER_S", 1e12)
    assert VERDICTS[judge.judge(directory, "local[2]", as_json=False)] is Exit.UNKNOWN
    verdict = read_json(directory.verdict_json)
    assert verdict["verdict"] == "unknown"
    (reason,) = verdict["reasons"]
    assert reason.startswith("the verifier ")
    assert "\n" not in reason
    assert re.search(told, reason), reason
    assert directory.report_html.exists()


def test_two_verifiers_of_one_run(directory: RunDirectory) -> None:
    """The second is refused with one line, and leaves what is there as it is."""
    before = directory.verdict_json.read_text()
    (directory.path / ".verifier").mkdir()
    descriptor = os.open(directory.path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        with pytest.raises(BadRequest, match=r"^another verifier judges .* now; wait for it, or end it$"):
            judge.judge(directory, "local[2]", as_json=False)
    finally:
        os.close(descriptor)
    assert directory.verdict_json.read_text() == before
    assert (directory.path / ".verifier").is_dir()
