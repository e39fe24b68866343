"""A broker that may have few files open says so as it starts."""

from __future__ import annotations

import logging
import sys

import pytest

from cluster.broker import main


async def _nothing(*_: object) -> None: ...


@pytest.mark.parametrize(("most", "is_warned"), [(64, True), (1023, True), (1024, False), (-1, False)])
def test_a_low_limit_is_warned_of(
    most: int, is_warned: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Not of none at all, which is -1."""
    monkeypatch.setattr(main, "raise_open_file_limit", lambda: most)
    monkeypatch.setattr(main, "run_broker", _nothing)
    monkeypatch.setattr(sys, "setswitchinterval", lambda _: None)
    with caplog.at_level(logging.WARNING):
        main._run(main.BrokerSpec(1, {}, "node", seed=1), lambda _: None)
    assert (f"the limit of open files is {most} (ulimit -n)" in caplog.text) == is_warned
