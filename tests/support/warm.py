"""What each process of the tests would make for itself in a fresh clone, made once: ``make setup`` calls it.

    .venv/bin/python -m pytest --collect-only -qq -p tests.support.warm
    .venv/bin/python -m tests.support.warm

Collecting has pytest keep the test modules as it rewrites them (unless PYTHONDONTWRITEBYTECODE is set, which
``make test`` unsets); a few draws have hypothesis keep its tables of Unicode and the constants of our modules. It is
half a minute of processor time for each process of the gate, and changes no outcome. Owns no test.
"""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.stories import clean
from verifier.spark import session as sessions


def pytest_collection_finish() -> None:
    """Draw, now that all modules are loaded."""
    _drawn()


@settings(max_examples=200, database=None, deadline=None)
@given(st.text(), st.integers())
def _drawn(_text: str, _number: int) -> None:
    """One of these draws asks for a constant, so that all are looked up."""


def main() -> None:
    """Have the verifier's first JVM keep the archive of its classes (``verifier.spark.class_archive``), if it must be
    made.

    Else the first verdict of the gate makes it, and those until then start without.
    """
    with suppress(sessions.SparkUnavailable), TemporaryDirectory() as home:
        if sessions._classes(sessions._java_home()).make() is None:
            return
        run = clean().write(Path(home) / "run").path
        command = [sys.executable, "-m", "verifier.main", str(run)]
        subprocess.run(command, capture_output=True, check=False)


if __name__ == "__main__":
    main()
