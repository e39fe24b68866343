"""``make setup``: what its script says while it works. What it builds is tried by every clone."""

from __future__ import annotations

import subprocess
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType
from typing import Any, cast

import pytest

from tests.architecture.sources import ROOT


@pytest.fixture(scope="module")
def setup() -> ModuleType:
    """The script, which is no package's."""
    spec = spec_from_file_location("setup_script", ROOT / "scripts" / "setup.py")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Child:
    """A process that is waited for in vain a number of times, and then has ended or is interrupted."""

    def __init__(self, in_vain: int, *, interrupted: bool = False) -> None:
        self.left, self.interrupted, self.killed = in_vain, interrupted, False

    def wait(self, timeout_s: float) -> int:
        if self.left == 0:
            if self.interrupted:
                raise KeyboardInterrupt
            return 0
        self.left -= 1
        raise subprocess.TimeoutExpired("x", timeout_s)

    def kill(self) -> None:
        self.killed = True


def test_what_takes_long_says_now_and_then_that_it_goes_on(setup: ModuleType, monkeypatch: Any) -> None:
    """A line every 20 s, and none for what is quick; an interrupt ends the process."""
    said: list[str] = []
    monkeypatch.setattr(setup, "say", said.append)
    for in_vain, lines in ((0, []), (2, ["  preparing the tests: 20 s so far", "  preparing the tests: 40 s so far"])):
        setup.wait(cast("subprocess.Popen[bytes]", Child(in_vain)), "the tests")
        assert said == lines
    child = Child(0, interrupted=True)
    with pytest.raises(KeyboardInterrupt):
        setup.wait(child, "the tests")
    assert child.killed
