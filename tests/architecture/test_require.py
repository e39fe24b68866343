"""What a machine lacks skips a test, and fails it where it was promised."""

from __future__ import annotations

import pytest

from tests.support import require as module
from tests.support.require import require


@pytest.fixture(autouse=True)
def _nothing_is_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_KNOWN", {"kcat": (lambda: None, "install it"), "java": (lambda: "/bin/java", "")})


@pytest.mark.parametrize("promised", ["", "java", "chromium, java"])
def test_what_is_absent_is_skipped_with_its_remedy(promised: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reason says how to get it."""
    monkeypatch.setenv("GAPLESS_REQUIRE", promised)
    with pytest.raises(pytest.skip.Exception, match="needs kcat: install it"):
        require("kcat")


@pytest.mark.parametrize("promised", ["kcat", "java, kcat", "all"])
def test_what_was_promised_and_is_absent_fails(promised: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """CI names what it has, so that it cannot lose a test by losing a package."""
    monkeypatch.setenv("GAPLESS_REQUIRE", promised)
    with pytest.raises(pytest.fail.Exception, match="kcat is not here, and GAPLESS_REQUIRE names it: install it"):
        require("kcat")


def test_what_is_here_is_handed_out() -> None:
    """The path of the program, to be run as it is."""
    assert require("java") == "/bin/java"
