"""Load settings: they round trip through their file and refuse what makes no sense, in one clear line."""

from __future__ import annotations

from pathlib import Path

import pytest

from loadgen.settings import LoadSettings, SettingsError, parse_config


def test_round_trip_through_the_file(tmp_path: Path) -> None:
    """What the conductor wrote is what the load reads."""
    settings = LoadSettings(
        run_id=7, topic="t", partitions=3, rate=12.5, producer_config={"linger.ms": 5, "enable.idempotence": True}
    )
    settings.write(tmp_path / "settings.json")
    assert LoadSettings.read(tmp_path / "settings.json") == settings


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "cannot read"),
        ("[]", "cannot read"),
        ('{"run_id": 1, "rats": 3}', "unknown load settings: rats"),
        ("{}", "run_id"),
        ('{"run_id": 1, "rate": 0}', "above 0"),
        ('{"run_id": 1, "value_bytes": 47}', "at least 48"),
        ('{"run_id": 1, "partitions": 0}', "at least 1"),
        ('{"run_id": 1, "topic": ""}', "topic is empty"),
        ('{"run_id": 1, "client": "java"}', "native, confluent"),
        ('{"run_id": 1, "shape": "wave"}', "constant, steps, bursts"),
        ('{"run_id": 1, "keys": "some"}', "none, uniform, zipf"),
        ('{"run_id": 1, "outstanding": -1}', "at least 0"),
    ],
)
def test_a_bad_file_is_one_clear_line(tmp_path: Path, text: str, message: str) -> None:
    """Whatever is wrong with the file, the error names it."""
    path = tmp_path / "settings.json"
    path.write_text(text)
    with pytest.raises(SettingsError, match=message):
        LoadSettings.read(path)
    with pytest.raises(SettingsError, match="cannot read"):
        LoadSettings.read(tmp_path / "absent.json")


def test_changes_are_checked() -> None:
    """An option outranks the file, and an unknown one is refused."""
    settings = LoadSettings(run_id=1)
    assert settings.with_changes({"rate": 5.0}).rate == 5.0
    with pytest.raises(SettingsError, match="unknown"):
        settings.with_changes({"rats": 5.0})


@pytest.mark.parametrize(
    ("given", "acks"), [({}, "all"), ({"acks": -1}, "all"), ({"acks": "0"}, "0"), ({"acks": 1}, "1")]
)
def test_acks_as_the_producer_uses_them(given: dict[str, int | str], acks: str) -> None:
    """-1 is all, and all is the default."""
    assert LoadSettings(run_id=1, producer_config=given).acks == acks


def test_the_rate_is_shared_by_the_producers() -> None:
    """Four producers of 1000 records per second write 250 each; none at all divides nothing."""
    assert LoadSettings(run_id=1, rate=1000.0, producers=4).rate_per_producer == 250.0
    assert LoadSettings(run_id=1, rate=1000.0, producers=0).rate_per_producer == 1000.0


def test_key_value_pairs() -> None:
    """KEY=VALUE splits at the first equals sign; anything else is refused."""
    assert parse_config(["a=1", "b = x=y "]) == {"a": "1", "b": "x=y"}
    for bad in ("a", "=1"):
        with pytest.raises(SettingsError, match="KEY=VALUE"):
            parse_config([bad])
