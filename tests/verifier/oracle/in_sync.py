"""``under-min-isr`` and ``watermark-under-min-isr`` once more, slow and obvious: each send, and each poll, beside every
line, every look and every fault of its run.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.verifier.oracle.model import Anomaly
from verifier.evidence.fault_kinds import LOSING_RECORDS, ON_THE_LOAD
from verifier.evidence.run_directory import RunDirectory
from verifier.evidence.run_model import RunModel

SLACK_NS = 3_000_000_000
Line = dict[str, Any]


def find_all(directory: RunDirectory, run: RunModel, rows: list[Line]) -> Iterator[Anomaly]:
    journals = {int(home.name): lines(home / "control.jsonl") for home in directory.nodes_dir.glob("*")}
    looks = [{"topic": run.topics[0].name} | each for each in lines(directory.leaders_jsonl)]
    faults = lines(directory.faults_jsonl)
    loses = run.may_elect_uncleanly or any(each["fault"] in LOSING_RECORDS for each in faults)
    for row in rows:
        if row["f"] in ("poll", "idle") and row["type"] == "ok":
            own = [each for each in looks if at(each) == at(row)]
            instant = row | {"invoke_ns": row["complete_ns"]}
            above = [
                told_before(line)
                for broker, line, rest in noted(journals)
                if "high_watermark" in line
                and not (loses and own[0]["leader_epoch"] != line["leader_epoch"])
                and row["high_watermark"] > told_before(line)
                and is_under(instant, line, rest, journals)
                and leads_alone(instant, broker, line["leader_epoch"], own, faults, journals)
            ]
            if above:
                yield Anomaly("watermark-under-min-isr", None, row["partition"], None, None, above[0])
        if (
            run.settings.acks == "all"
            and (row["f"], row["type"]) == ("send", "ok")
            and any(
                is_under(row, line, rest, journals)
                and leads_alone(
                    row, broker, line["leader_epoch"], [each for each in looks if at(each) == at(row)], faults, journals
                )
                for broker, line, rest in noted(journals)
            )
        ):
            offset = row["first_offset"] if row["first_offset"] >= 0 else None
            yield Anomaly("under-min-isr", None, row["partition"], None, None, offset)


def told_before(line: Line) -> int:
    """By this leader, or by a former one."""
    return max(int(line["high_watermark"]), int(line["epoch_start_offset"]))


def lines(path: Path) -> list[Line]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def at(line: Line) -> tuple[str, int]:
    return line["topic"], line["partition"]


def noted(journals: dict[int, list[Line]]) -> Iterator[tuple[int, Line, list[Line]]]:
    """The lines that say so, each with its broker and what that noted later."""
    for broker, journal in journals.items():
        for number, line in enumerate(journal):
            if line.get("event") == "under-min-isr":
                yield broker, line, journal[number + 1 :]


def is_under(row: Line, line: Line, rest: list[Line], journals: dict[int, list[Line]]) -> bool:
    """Whether it was sent after this line, and acknowledged before any that may end it."""
    since, epoch = line["monotonic_ns"], line["leader_epoch"]
    ends = [each for each in rest if each.get("event", "") == "logs-loaded"]
    ends += [each for each in rest if each.get("event", "").startswith("under-min-isr") and at(each) == at(line)]
    for journal in journals.values():
        for each in journal:
            if each.get("event", "") == "partition-changed" and at(each) == at(line) and each["monotonic_ns"] >= since:
                is_enough = len(each["isr"]) >= line["min_insync_replicas"]
                if each["leader_epoch"] > epoch or (each["leader_epoch"] == epoch and is_enough):
                    ends.append(each)
    is_before_all = all(row["complete_ns"] < each["monotonic_ns"] for each in ends)
    return at(row) == at(line) and row["invoke_ns"] > since and is_before_all


def leads_alone(
    row: Line, broker: int, epoch: int, looks: list[Line], faults: list[Line], journals: dict[int, list[Line]]
) -> bool:
    """Whether no former leader and no later one can have answered."""
    own = [look for look in looks if look["leader_epoch"] == epoch]
    later = [look for look in looks if look["leader_epoch"] > epoch]
    if not own or own[0].get("leader") not in (broker, None):
        return False
    if later and row["complete_ns"] >= (later[0]["before_ns"] or 0) - SLACK_NS:
        return False
    written = [each for journal in journals.values() for each in journal if each.get("event") == "partition-changed"]
    told = looks + [each for each in written if at(each) == at(row)]
    leaders = [
        {each["leader"] for each in told if each["leader_epoch"] == former}
        for former in range(looks[0]["leader_epoch"], epoch)
    ]
    if all(each == {broker} for each in leaders):
        return True
    known_ns = own[0]["time_ns"]
    for fault in faults:
        if fault["phase"] == "inject" and fault["fault"] not in ON_THE_LOAD:
            heals = [each for each in faults if each["phase"] == "heal" and each["number"] == fault["number"]]
            if fault["start_ns"] <= own[0]["time_ns"] + SLACK_NS:
                known_ns = max(known_ns, heals[0]["end_ns"] if heals else 2**62)
    return bool(row["invoke_ns"] > known_ns + SLACK_NS)
