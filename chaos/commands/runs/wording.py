"""Words options and figures of stored runs for users: options as they are typed, figures as in reports. Pure.

Owns the wording of the comparison. Does not own what is compared (``chaos.commands.runs.comparison``).
"""

from __future__ import annotations

from chaos.experiment.command_line import FIELDS
from chaos.experiment.forms import DURATION, FLAG, ScheduleFile
from chaos.experiment.recorded import as_value
from verifier.evidence.how_many import how_many

#: Figure in ``RESULT`` or in ``stats`` of ``verdict.json`` -> its name in words.
_FIGURES = {
    "acked": "acknowledged",
    "read": "read at the end",
    "acked_and_read": "acknowledged and read at the end",
    "in_log": "in the log at the end",
    "unknown": "outcome unknown to the client",
    "failed": "certainly not written",
    "never_sent": "reserved, never sent",
    "deleted": "deleted by retention or DeleteRecords",
    "deliveries": "deliveries to all readers",
    "segments": "segment files",
    "bytes": "bytes of segments",
    "batches": "batches in segments",
    "torn_bytes": "bytes of torn tails",
    "final_readers": "final readers",
    "live_readers": "readers during the load",
    "read_lag.p50_ms": "read lag, median (ms)",
    "read_lag.p99_ms": "read lag, 99th percentile (ms)",
    "read_lag.worst_ms": "longest read lag (ms)",
    "read_lag.unread": "acknowledged, and read by no live reader",
    "faults.injected": "faults injected",
    "faults.effective": "faults that bit",
    "faults.skipped": "faults skipped",
}
_GROUPS = {"memory_mb": "memory (MB)", "stable_offsets": "last stable offsets", "groups": "consumer groups"}
_ANOMALIES = ("anomalies", "allowed")


def option_words(name: str, value: object) -> tuple[str, str]:
    """A recorded field of an experiment as it is typed: the option, and its value."""
    field = FIELDS.get(name)
    if field is None:  # recorded by another version
        return f"--{name.replace('_', '-')}", _plain(value)
    if field.form is FLAG or value in ([], ""):
        return field.option, _plain(value)
    try:
        given = as_value(name, value)
        words = [word for word in field.form.words(field.option, given) if word != field.option]
    except (AttributeError, KeyError, TypeError, ValueError):
        return field.option, _plain(value)
    shown = ", ".join(words) + ("s" if field.form is DURATION else "")
    if isinstance(given, ScheduleFile):
        shown += f" ({how_many(len(given.schedule.injections), 'fault')})"
    return field.option, shown


def figure_words(name: str, value: object) -> tuple[str, str]:
    """A figure of a verdict: its name in words, and its value with thousands separated. ``name`` may have two parts."""
    if name in _ANOMALIES:
        return name, _found(str(value))
    if isinstance(value, str) and value.isdigit() and name in _FIGURES:
        value = int(value)
    group, _, rest = name.rpartition(".")
    spelled = rest.replace("_", " ")
    label = f"{_GROUPS.get(group, group.replace('_', ' '))}: {spelled}" if group else spelled
    return _FIGURES.get(name, label), _plain(value)


def _found(words: str) -> str:
    """``lost-write:1200,duplicate:3`` with spaces and separators."""
    each = (word.partition(":") for word in words.split(","))
    return ", ".join(f"{name} {int(count):,}" if count.isdigit() else name for name, _, count in each)


def _plain(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.6g}" if value < 1e6 else f"{value:,.0f}"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return str(value) or "none"
