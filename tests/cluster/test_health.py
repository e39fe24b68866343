"""The health probe of a container. ``tests/integration/test_compose.py`` shows that it succeeds on a real broker."""

from __future__ import annotations

import pytest

from cluster import health


def test_a_broker_that_is_not_there_is_unhealthy(capsys: pytest.CaptureFixture[str]) -> None:
    """Exit status 1 and one line with the reason; never a traceback."""
    assert health.main(["127.0.0.1:1", "300"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("unhealthy: ")
    assert err.count("\n") == 1


@pytest.mark.parametrize("arguments", [[], ["a:1", "b"], ["a:1", "1", "2"]])
def test_wrong_use_says_how(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Wrong arguments print the usage and exit with 2."""
    assert health.main(arguments) == 2
    assert capsys.readouterr().err == health.USAGE + "\n"


def test_an_address_without_a_port_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong address is a reason like any other."""
    assert health.main(["localhost"]) == 1
    assert "localhost" in capsys.readouterr().err
