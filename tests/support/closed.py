"""What closes the evidence of a made-up run, so that nothing but what a test changes is wrong with it."""

from __future__ import annotations

import uuid
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tests.support.settings import load_settings_of
from verifier.accounts.account import HistoryAccount
from verifier.accounts.summing import account_of
from verifier.closing.closing import Closing
from verifier.evidence.declared import DeclaredEvidence, DeclaredProcess
from verifier.evidence.phases import PHASES
from verifier.evidence.run_directory import RunDirectory, append_json_line, write_json_atomic
from verifier.evidence.run_model import ChildProcess, HarnessHealth, PhaseSpan, RunModel, RunSettings
from verifier.evidence.series import SeriesPoint

SECOND = 1_000_000_000
TOPIC_ID = "8f56e1f3-c735-48b3-a4d6-2fc3705ac4aa"


def role_of(process: str) -> str:
    """The role of a process of a story, by its name."""
    roles = {"producer": "producers", "reader": "readers", "sentinel": "sentinel", "final": "final"}
    return next((role for beginning, role in roles.items() if process.startswith(beginning)), "members")


def declared(
    processes: Iterable[str],
    replicas: Mapping[str, Iterable[int]],
    streams: Sequence[int] = (),
    planned_faults: int = 0,
    clients: Mapping[str, str] = MappingProxyType({}),
) -> DeclaredEvidence:
    """What a run declares that these processes and replicas are left of. The first producer writes all ``streams``.

    ``clients`` by process; readers are native ones otherwise.
    """
    found: list[DeclaredProcess] = []
    for name in sorted(processes):
        role = role_of(name)
        writes = role == "producers" and not any(each.streams for each in found) and bool(streams)
        client = clients.get(name, "native" if role in ("readers", "final") else "confluent")
        found.append(DeclaredProcess(name, role, client, min(streams) if writes else -1, len(streams) if writes else 0))
    brokers = sorted({broker for each in replicas.values() for broker in each})
    return DeclaredEvidence(found, brokers, {name: sorted(each) for name, each in replicas.items()}, planned_faults)


def shaped(settings: RunSettings, evidence: DeclaredEvidence) -> RunSettings:
    """The settings of a run that declares this, and nothing else."""
    return replace(
        settings,
        brokers=len(evidence.brokers),
        partitions=len(evidence.replicas),
        replication_factor=max(len(brokers) for brokers in evidence.replicas.values()),
        load_processes=len(evidence.of_role("producers")),
        users=len(evidence.streams),
        readers=tuple(each.client for each in evidence.of_role("readers")),
        final_readers=tuple(each.client for each in evidence.of_role("final")),
    )


def closed(evidence: DeclaredEvidence) -> dict[str, Any]:
    """The fields of ``run.json`` of a run that went as it should; chaos lasts from 10 to 50 seconds."""
    ends = [8, 10, 50, 51, 52, 53, 54, 55]
    spans = zip(PHASES, [0, *ends], ends, strict=False)
    live = [each.name.replace("final-", "final-read-") for each in evidence.processes]
    names = ["proxy", *(f"broker-{broker}" for broker in evidence.brokers), *live]
    return {
        "evidence": evidence,
        "phases": [PhaseSpan(name, start * SECOND, end * SECOND) for name, start, end in spans],
        "children": [ChildProcess(name, 100 + number, 1.0, 0) for number, name in enumerate(names)],
        "harness": HarnessHealth(event_loop_lag_s={"conductor": 0.01, "proxy": 0.01}),
    }


def write_series(directory: RunDirectory, evidence: DeclaredEvidence) -> None:
    """One point for each live process, which counted what its history has."""
    for process in evidence.of_role("producers", "readers"):
        if not directory.history(process.name).exists():
            continue
        account = _account(directory.history(process.name))
        point = SeriesPoint(
            process.name, 50 * SECOND, SECOND, loop_lag_ms=3.0,
            total_acked=account.values("send", "ok"), total_failed=account.values("send", "fail"),
            total_unknown=account.values("send", "info"), total_read=account.values("poll", "ok"),
        )  # fmt: skip
        append_json_line(directory.series_jsonl(process.name), point.to_json())
        write_json_atomic(directory.status_json(process.name), point.to_json())


_accounts: dict[bytes, HistoryAccount] = {}


def _account(path: Path) -> HistoryAccount:
    """That of a history; most stories share most histories, byte for byte."""
    digest = sha256(path.read_bytes()).digest()
    if digest not in _accounts:
        _accounts[digest] = account_of(path)
    return _accounts[digest]


def agreeing(run: RunModel, closing: Closing) -> Closing:
    """The same evidence, with histories and a load as the settings of this run have them."""
    settings, name = run.settings, run.topics[0].name if run.topics else "t"
    accounts = tuple(
        replace(
            each,
            has_producer_ids=each.has_producer_ids and settings.idempotence,
            has_offsets=each.has_offsets and settings.acks != "0",
        )
        for each in closing.accounts
    )
    return replace(closing, accounts=accounts, load=load_settings_of(settings, run.run_id, name))


def partition_metadata() -> str:
    """The text of ``partition.metadata`` of the topic with ``TOPIC_ID``."""
    text = urlsafe_b64encode(uuid.UUID(TOPIC_ID).bytes).decode().rstrip("=")
    return f"version: 0\ntopic_id: {text}"
