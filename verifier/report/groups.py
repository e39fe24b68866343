"""The cards of the anomalies: each leading anomaly with its consequences, and the allowed anomalies.

Owns what a card says. Does not own its pictures (``verifier.report.pictures``) or its markup (the template).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from verifier import explain
from verifier.anomalies import BY_NAME
from verifier.excuses.expectation import EVENTS
from verifier.facts import Found
from verifier.report.dumps import dump_commands
from verifier.report.occasions import Occasions
from verifier.report.pictures import picture
from verifier.report.summary import places
from verifier.surroundings.model import FileLink, Surroundings
from verifier.telling.reasons import reason_of
from verifier.verdict import CheckResult, Example, Verdict

#: The most entries about allowed anomalies.
MOST_ALLOWED = 40


class Cards:
    """Makes the cards of one page. If several anomalies share a place, it is drawn once, and the others link to it.

    ``called`` is the command with which the reader starts gapless.
    """

    def __init__(
        self,
        verdict: Verdict,
        around: Surroundings,
        occasions: Occasions | None = None,
        *,
        pictures: bool = True,
        called: str = "gapless",
    ) -> None:
        self._verdict = verdict
        self._occasions = occasions
        self._around = around
        self._pictures = pictures
        self._called = called
        self._drawn: set[str] = set()

    def groups(self) -> list[dict[str, Any]]:
        """The forbidden anomalies: a card for each leading one, with its consequences as ``followers``."""
        found: list[dict[str, Any]] = []
        forbidden = [check for check in self._verdict.checks.values() if check.forbidden_count]
        leaders = {check.name: self._verdict.leader(check.name) for check in forbidden}
        for check in forbidden:
            if leaders[check.name] is None:
                card = self._card(check)
                followers = [self._card(other) for other in forbidden if leaders[other.name] == check.name]
                found.append({**card, "followers": followers})
        return found

    def allowed(self) -> tuple[list[dict[str, Any]], int]:
        """The allowed anomalies, one entry per check, reason and event, and the number of entries left out."""
        entries: dict[tuple[str, str, str], dict[str, Any]] = {}
        left_out: set[tuple[str, str, str]] = set()
        for check in self._verdict.checks.values():
            for example in check.examples:
                if example.allowed:
                    event = self._event(example.found)
                    key = (check.name, example.allowed, event)
                    if key not in entries and len(entries) < MOST_ALLOWED:
                        entries[key] = {
                            "name": check.name, "summary": BY_NAME[check.name].summary, "reason": reason_of(example),
                            "count": 0, "text": example.text, "excuse": _excuse(example.found), "event": event,
                            "shown": self._shown([example]), "files": self._files(check.name),
                        }  # fmt: skip
                    if key in entries:
                        entries[key]["count"] += example.found.count
                    else:
                        left_out.add(key)
        return list(entries.values()), len(left_out)

    def _card(self, check: CheckResult) -> dict[str, Any]:
        forbidden = [example for example in check.examples if not example.allowed]
        shown = forbidden[0].found
        named, more_places = places(check)
        return {
            "name": check.name,
            "summary": BY_NAME[check.name].summary,
            "count": check.forbidden_count,
            "cause": BY_NAME[check.name].causes.get(shown.cause or ""),
            "text": forbidden[0].text,
            "rows": evidence_rows(shown),
            "told": told_rows(shown),
            "places": named,
            "more_places": more_places,
            "files": self._files(check.name),
            "shown": self._shown(forbidden),
        }

    def _event(self, found: Found) -> str:
        return found.event or "" if self._occasions is None else self._occasions.words(found)

    def _files(self, check: str) -> list[FileLink]:
        """The files that list every anomaly of a check."""
        return [link for link in self._around.anomaly_files if link.text.split("/")[-1].startswith(f"{check}.")]

    def _shown(self, examples: list[Example]) -> list[dict[str, Any]]:
        """The pictures of these examples, or links to the pictures that are drawn already."""
        shown = []
        for example in examples:
            place = self._around.place_of(example.found) if self._pictures else None
            if place is None:
                continue
            key = place.spot.key
            seen = key in self._drawn
            self._drawn.add(key)
            title = f"{place.spot.topic}-{place.spot.partition} around offset {place.spot.places[0]}"
            drawn = None if seen else picture(place)
            dumps = [] if seen else dump_commands(place, self._around.directory, self._called)
            shown.append({"id": key, "title": title, "text": example.text, "picture": drawn, "dumps": dumps})
        return shown


def _excuse(found: Found) -> str:
    """The kind of event that excused an anomaly, in words; empty if none did. The event itself is shown separately."""
    return EVENTS.get(found.excuse or "", "")


def evidence_rows(found: Found) -> list[dict[str, Any]]:
    """Rows about the final leader's log around an example: before it, its copies (or their absence), and after it."""
    context = found.context
    rows: list[dict[str, Any]] = []
    by_stream = found.stream is not None
    before = context.get("stream_before" if by_stream else "batch_before")
    after = context.get("stream_after" if by_stream else "batch_after")
    if before:
        rows.append(_row("before", before, found, last=True))
    copies = context.get("copies", [])
    rows += [
        _row(f"copy {number}" if len(copies) > 1 else "here", each, found) for number, each in enumerate(copies, 1)
    ]
    if by_stream and not copies:
        rows.append({"role": "missing", "value": explain.value_name(found.stream, found.sequence)})
    if not by_stream:
        here = context.get("value_at") or context.get("batch_at", [])
        rows += [_row("here", each, found) for each in here]
        if not here:
            rows.append({"role": "missing", "value": f"offset {found.offset}"})
    if after:
        rows.append(_row("after", after, found, last=False))
    if len(copies) > 1:
        rows.sort(key=lambda row: row["offset"])
    return rows


def _row(role: str, batch: Mapping[str, Any], found: Found, *, last: bool | None = None) -> dict[str, Any]:
    """One row of the table. ``last`` chooses the last or the first value of a neighboring batch."""
    stream, sequence = batch.get("stream", found.stream), batch.get("sequence", found.sequence)
    offset = batch.get("offset", found.offset if last is None else None)
    if last is not None and "first_sequence" in batch:
        end = "last" if last else "first"
        sequence, offset = batch[f"{end}_sequence"], batch[f"{end}_offset"]
    elif last is not None:
        stream = None
    return {
        "role": role,
        "value": explain.value_name(stream, sequence) if stream is not None else "",
        "offset": offset,
        "batch": f"{batch['base_offset']}..{batch['next_offset'] - 1}",
        "producer": "none" if batch["producer_id"] < 0 else f"{batch['producer_id']} / {batch['producer_epoch']}",
        "base_sequence": "none" if batch["base_sequence"] < 0 else batch["base_sequence"],
        "leader_epoch": batch["leader_epoch"],
        "file": f"b{batch['broker']} {batch['segment']:020d}.log @ {batch['position']}",
    }


def told_rows(found: Found) -> list[dict[str, Any]]:
    """Rows about what clients were told: acknowledgements and reads of the value, or all claims about the offset."""
    rows = [
        {"how": "acknowledged", "who": each["process"], "offset": each.get("offset"), "at_ns": each["complete_ns"]}
        for each in found.context.get("acknowledged", [])
    ]
    rows += [
        {
            "how": "read" if each["phase"] == "load" else "read at the end",
            "who": each["process"],
            "offset": each.get("offset"),
            "at_ns": each["complete_ns"],
        }
        for each in found.context.get("read", [])
    ]
    rows += [
        {
            "how": f"{each['how']}: {explain.value_name(each['stream'], each['sequence'])}",
            "who": each["process"],
            "offset": found.offset,
            "at_ns": None,
        }
        for each in found.context.get("claimed", [])
    ]
    return rows
