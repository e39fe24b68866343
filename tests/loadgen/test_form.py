"""Locust's web form of a load by hand: which options are on it, what it may ask for, what becomes of its texts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import configargparse
import pytest

from loadgen.settings import SettingsError
from loadgen.users.command_line import FORM, add_options
from loadgen.users.form import SETTLED, refused
from loadgen.users.options import resolve_options, settle_options
from tests.loadgen.test_options import parse


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def sent(options: Any, form: dict[str, str]) -> Any:
    """The options after Locust took a form, as its ``/swarm`` does: a type is kept, None becomes a text."""
    for key, text in form.items():
        before = getattr(options, key)
        kept = text.split(",") if isinstance(before, list) else text if before is None else type(before)(text)
        setattr(options, key, kept)
    return options


def test_what_makes_sense_is_on_the_form_and_nothing_else() -> None:
    """No option was on it; directories, run ids, readers and what the conductor passes are settled before."""
    parser = configargparse.ArgParser(add_help=False)
    add_options(parser)
    on_form = {action.dest for action in parser._actions if getattr(action, "include_in_web_ui", False)}
    assert on_form == set(FORM)
    assert {"kafka_run_id", "kafka_readers", "kafka_settings", "kafka_results"}.isdisjoint(on_form)


@pytest.mark.parametrize(
    "given", [(), ("--kafka-rate", "7", "--kafka-flush-timeout", "30s", "--kafka-partitions", "2")]
)
def test_texts_of_the_form_become_settings(given: tuple[str, ...]) -> None:
    """Whatever was given on the command line; a configuration has commas between its settings."""
    options = parse(*given)
    settle_options(options)
    form = {"kafka_rate": "50.5", "kafka_partitions": "6", "kafka_flush_timeout": "1m", "kafka_client": "native",
            "kafka_value_bytes": "", "kafka_producer_config": "acks=1, linger.ms=5", "kafka_workload": ""}  # fmt: skip
    assert refused(options, form, 1, has_started=False) is None
    settings = resolve_options(sent(options, form), None, producers=1).settings
    assert (settings.rate, settings.partitions, settings.flush_timeout_s) == (50.5, 6, 60.0)
    assert (settings.client, settings.producer_config) == ("native", {"acks": "1", "linger.ms": "5"})


def test_an_empty_field_is_one_that_is_not_given() -> None:
    """Also where the command line gave something: the default holds."""
    options = parse("--kafka-rate", "7", "--kafka-topic", "mine")
    settle_options(options)
    default = resolve_options(parse_settled(), None, producers=1).settings
    settings = resolve_options(sent(options, {"kafka_rate": "", "kafka_topic": ""}), None, producers=1).settings
    assert (settings.rate, settings.topic) == (default.rate, default.topic)


def parse_settled() -> Any:
    options = parse()
    settle_options(options)
    return options


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ({"kafka_rate": "fast"}, "--kafka-rate fast: not a number"),
        ({"kafka_partitions": "1.5"}, "--kafka-partitions 1.5: not a whole number"),
        ({"kafka_rate": "0"}, "rate"),
        ({"kafka_client": "java"}, "java"),
        ({"kafka_flush_timeout": "soon"}, "soon"),
        ({"kafka_value_bytes": "2000000"}, "--kafka-value-bytes 2000000"),
        ({"kafka_workload": "no-such"}, "no-such"),
        ({"kafka_producer_config": "acks"}, "acks"),
        ({"kafka_producer_config": "client.id=me"}, "client.id"),
        ({"host": "http://h:9092"}, "--host h:9092"),
    ],
)
def test_what_cannot_be_used_is_refused_on_the_form(form: dict[str, str], words: str) -> None:
    """With a line that names it; the load ended with 254 the moment that Start was clicked."""
    options = parse()
    settle_options(options)
    assert words in (refused(options, form, 1, has_started=False) or "")


def test_a_load_that_has_started_keeps_its_settings() -> None:
    """Its users and spawn rate can be changed; other settings are refused instead of being ignored."""
    options = parse("--kafka-rate", "7", "--kafka-producer-config", "acks=1")
    settle_options(options)
    same = {"user_count": "9", "kafka_rate": "7", "kafka_topic": "", "kafka_producer_config": "acks=1"}
    assert refused(options, same, 1, has_started=True) is None
    refusal = refused(options, {**same, "kafka_rate": "8"}, 1, has_started=True)
    assert refusal == f"kafka_rate: {SETTLED}"


def test_a_text_that_is_no_number_is_still_refused_by_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    """As before, by argparse, with the option's name."""
    with pytest.raises((SystemExit, SettingsError)):
        parse("--kafka-rate", "fast")
    assert "argument --kafka-rate: invalid float value: 'fast'" in capsys.readouterr().err
