"""Sentences for the anomalies of consumer groups (``verifier.anomalies.groups``). Owns these, and no numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from verifier.facts import Found


def _completeness(found: Found) -> str:
    detail = found.detail
    first, last = found.offset, detail["last_offset"]
    what = f"the record at offset {first} was" if first == last else f"the records at offsets {first} to {last} were"
    return (
        f"{what} delivered to no member of group {detail['group']}, which committed offset {detail['committed']} "
        f"({detail['committed_by']})"
    )


def _regression(found: Found) -> str:
    detail = found.detail
    if found.cause == "stale-generation":
        return (
            f"group {detail['group']}: offset {found.offset} of {detail['process']}, generation "
            f"{detail['generation']}, was acknowledged after offset {detail['committed']} of generation "
            f"{detail['committed_generation']} ({detail['committed_by']})"
        )
    return (
        f"{_began(found)}, below the committed offset {detail['committed']}"
        f"{_by(detail['committed_by']) or ' (the start of the log)'}"
    )


def _position(found: Found) -> str:
    detail = found.detail
    if found.cause == "reset":
        return f"{_began(found)}; nothing was committed, and the log begins at offset {detail['expected']}"
    return f"{_began(found)}, beyond the committed offset {detail['expected']}{_by(detail['committed_by'])}"


def _double(found: Found) -> str:
    detail = found.detail
    return (
        f"group {detail['group']}, generation {detail['generation']}: {detail['member']} ({detail['process']}) was "
        f"assigned it while {detail['other_member']} ({detail['other_process']}) had it"
    )


def _lost(found: Found) -> str:
    detail = found.detail
    committed = f"group {detail['group']}: offset {detail['committed']}, which {detail['committed_by']} committed,"
    if found.cause == "missing":
        return f"{committed} is not in __consumer_offsets"
    return f"{committed} is not the last one in __consumer_offsets; offset {found.offset} is"


def _pipeline(found: Found) -> str:
    detail = found.detail
    value = f"s{detail['stream']}/{detail['sequence']}"
    group = f"group {detail['group']}"
    match found.cause:
        case "missing":
            return (
                f"{group} committed offset {detail['committed']}, and {value} at offset {found.offset} is not in the "
                "output"
            )
        case "twice":
            return f"{value} is in the output at offsets {detail['first_offset']} and {found.offset}"
        case "without-input":
            return f"{value} is in the output at offset {found.offset}, and {group} had no such record to read"
        case _:
            return (
                f"{value} is in the output at offset {found.offset}, and {group} committed no further than offset "
                f"{detail['committed']}; its input is at offset {detail['input_offset']}"
            )


def _began(found: Found) -> str:
    detail = found.detail
    return f"group {detail['group']}: {detail['process']} began at offset {found.offset} (session {detail['session']})"


def _by(process: str) -> str:
    return f" ({process})" if process else ""


SENTENCES: Mapping[str, Callable[[Found], str]] = {
    "double-assignment": _double,
    "lost-offset-commit": _lost,
    "resume-position": _position,
    "committed-offset-regression": _regression,
    "group-completeness": _completeness,
    "pipeline-exactly-once": _pipeline,
}
