"""Transactional users of both clients against librdkafka's mock cluster, in a real Locust process that is stopped."""

from __future__ import annotations

import signal
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from loadgen.command import locust_commands
from loadgen.kinds import TRANSACTIONS
from loadgen.settings import CLIENTS, LoadSettings
from tests.loadgen.conftest import CHECKOUT, TOPIC, MockCluster
from tests.loadgen.test_live import wait_until
from verifier.evidence.history import history_file, read_history
from verifier.evidence.run_directory import RunDirectory
from verifier.transactions.client_rows import ABORTED, COMMITTED, client_evidence

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]


@pytest.mark.parametrize("client", CLIENTS)
def test_every_transaction_has_its_end_when_a_load_is_stopped(
    cluster: MockCluster, tmp_path: Path, client: str
) -> None:
    """Committed or aborted as planned, the last one too; each record carries its number, each stream its sequences."""
    settings = LoadSettings(
        run_id=4712, producers_bootstrap=cluster.bootstrap, readers=(), topic=TOPIC, partitions=4, producers=4,
        rate=400.0, value_bytes=60, client=client, kind=TRANSACTIONS, flush_timeout_s=10.0,
        transactions={"partitions": 2, "records": 4, "aborts": 0.2},
    )  # fmt: skip
    run = RunDirectory(tmp_path).prepare()
    (command,) = locust_commands(settings, run)
    with (tmp_path / "producers.log").open("w") as log:
        process = subprocess.Popen(
            command.argv, env=command.env, cwd=CHECKOUT, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
    try:
        wait_until(run, "producers", "total_acked", 200)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
    table = read_history(run.history("producers"))
    assert history_file(table).closed
    rows = table.to_pylist()
    ends = Counter((row["f"], row["type"]) for row in rows if row["f"] in ("begin", "commit", "abort"))
    transactions = client_evidence(rows).transactions
    assert Counter(each.outcome for each in transactions) == {
        COMMITTED: ends["commit", "ok"],
        ABORTED: len(transactions) - ends["commit", "ok"],
    }
    assert ends["begin", "ok"] == len(transactions) and ends["commit", "ok"] > ends["abort", "ok"] > 0
    sends = [row for row in rows if row["f"] == "send"]
    assert {row["op"] for row in sends} == {each.number for each in transactions}
    assert {row["stream"]: row["partition"] for row in sends} == {0: 0, 1: 1, 2: 2, 3: 3}
    told = Counter(
        (row["stream"], sequence)
        for row in rows
        if row["f"] in ("send", "unsent")
        for sequence in range(row["first_sequence"], row["last_sequence"] + 1)
    )
    assert set(told.values()) == {1}
