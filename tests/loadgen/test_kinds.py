"""What the kind of a load says about its producers: how many streams each has, and what its transactions are."""

from __future__ import annotations

from pathlib import Path

import pytest

from loadgen.clients.choice import check_client_config
from loadgen.clients.transaction_keys import check_transactional, defaults
from loadgen.command import locust_commands, shares
from loadgen.kinds import BANK, TRANSACTIONS, TransactionPlan, parse_plan
from loadgen.settings import CLIENTS, CONFLUENT, LoadSettings, SettingsError, uncommitted_reader
from loadgen.spec import SpecError
from verifier.evidence.run_directory import RunDirectory


def test_a_plan_says_what_it_does_not_leave_out() -> None:
    """A debit and a credit are the two streams of a bank's producer; others have three."""
    assert parse_plan(TRANSACTIONS, None) == TransactionPlan(3, 12, 0.1)
    assert parse_plan(BANK, {"records": 4}) == TransactionPlan(2, 4, 0.1)
    assert parse_plan(TRANSACTIONS, {"partitions": 1, "records": 1, "aborts": 0}) == TransactionPlan(1, 1, 0.0)


def test_planned_aborts_are_a_share_that_the_run_id_decides() -> None:
    """The same ones of the same run, others of other runs and producers, and about as many as were asked for."""
    plan = TransactionPlan(aborts=0.25)
    chosen = [plan.is_aborted(7, 1, number) for number in range(4000)]
    assert chosen == [plan.is_aborted(7, 1, number) for number in range(4000)]
    assert 900 < sum(chosen) < 1100
    assert chosen != [plan.is_aborted(7, 2, number) for number in range(4000)]
    assert chosen != [plan.is_aborted(8, 1, number) for number in range(4000)]
    taken = [TransactionPlan(zombies=0.25).is_taken_over(7, 1, number) for number in range(4000)]
    assert 900 < sum(taken) < 1100 and taken != chosen
    late = [TransactionPlan(zombies=0.25).is_taken_over_late(7, 1, number) for number in range(4000)]
    assert 400 < sum(late) < 600 and all(taken[number] for number in range(4000) if late[number])
    assert not any(plan.is_taken_over(7, 1, number) for number in range(100))
    assert not any(TransactionPlan(aborts=0.0).is_aborted(7, 1, number) for number in range(100))


def test_processes_share_whole_producers(tmp_path: Path) -> None:
    """Each process has streams of whole producers, as many users as these, and each user its part of the rate."""
    settings = LoadSettings(
        run_id=1, producers_bootstrap="h:1", readers_bootstrap="h:2", partitions=6, producers=12, processes=3,
        kind=TRANSACTIONS, rate=240,
    )  # fmt: skip
    assert shares(settings) == [("producers-1", 0, 3), ("producers-2", 3, 3), ("producers-3", 6, 6)]
    commands = locust_commands(settings, RunDirectory(tmp_path).prepare())
    assert [command.argv[command.argv.index("--users") + 1] for command in commands[:3]] == ["1", "1", "2"]
    assert settings.rate_per_producer == 60
    assert shares(settings.with_changes({"processes": 9}))[-1] == ("producers-4", 9, 3)
    assert LoadSettings.read(RunDirectory(tmp_path).loadgen_dir / "settings.json") == settings


def test_streams_that_make_no_whole_producers_are_refused() -> None:
    """Streams that are not a multiple of a producer's are refused before anything starts."""
    with pytest.raises(SettingsError, match="a multiple of 3, not 4"):
        LoadSettings(run_id=1, producers=4, kind=TRANSACTIONS)


def test_readers_of_transactions_see_what_is_committed_but_for_one() -> None:
    """In a run: the live ones of one client see what was aborted, too. A standalone load is judged without its
    transactions, by all that stands in the log. The configuration outranks that.
    """
    assert uncommitted_reader(("confluent", "native")) == "confluent"
    assert uncommitted_reader(("native",)) == uncommitted_reader(()) == ""
    settings = LoadSettings(run_id=1, partitions=3, producers=3, isolated=True, uncommitted_reader="confluent")
    clients = [(client, is_final) for client in ("confluent", "native") for is_final in (False, True)]
    assert [settings.reads_committed(client, is_final=is_final) for client, is_final in clients] == [
        False, True, True, True,
    ]  # fmt: skip
    for level, expected in (("read_committed", {True}), ("read_uncommitted", {False})):
        asked = settings.with_changes({"consumer_config": {"isolation.level": level}})
        assert {asked.reads_committed(client, is_final=is_final) for client, is_final in clients} == expected
    plain = LoadSettings(run_id=1, partitions=3, producers=3, kind=TRANSACTIONS)
    assert not any(plain.reads_committed(client, is_final=is_final) for client, is_final in clients)


@pytest.mark.parametrize("client", CLIENTS)
def test_transactional_producers_have_defaults_that_can_be_changed(client: str) -> None:
    """A transaction ends before final readers give up, and its records before it; librdkafka insists on that."""
    own = defaults(client)
    assert own["transaction.timeout.ms"] == own["delivery.timeout.ms"] == 15_000
    settings = LoadSettings(run_id=1, partitions=3, producers=3, kind=TRANSACTIONS, client=client, readers=())
    check_client_config(settings)
    with pytest.raises(SettingsError, match=r"acks|idempotence"):
        check_client_config(settings.with_changes({"producer_config": {"acks": "1"}}))
    check_transactional(client, {"transaction.timeout.ms": 60_000})
    check_transactional(client, {"delivery.timeout.ms": 60_000, "transaction.timeout.ms": 60_000})
    if client == CONFLUENT:
        with pytest.raises(SettingsError, match="60000 is above transaction"):
            check_transactional(client, {"delivery.timeout.ms": "60000"})


def test_as_many_producers_are_late_as_there_are() -> None:
    """The first ones; none has a rival, who would have its id."""
    assert parse_plan(TRANSACTIONS, {"late": 2, "zombies": 0.1}).late == 2
    LoadSettings(run_id=1, producers=6, kind=TRANSACTIONS, transactions={"late": 2})
    with pytest.raises(SettingsError, match="it has 2 producers, and more of them are to be late"):
        LoadSettings(run_id=1, producers=6, kind=TRANSACTIONS, transactions={"late": 3})
    for wrong in ({"late": 0.5}, {"late": -1}, {"late": 1, "rivals": 2}):
        with pytest.raises(SpecError, match="late of transactions"):
            parse_plan(TRANSACTIONS, wrong)


@pytest.mark.parametrize(
    ("kind", "records", "expected"),
    [
        (BANK, 8, True),
        (BANK, 2, True),
        (BANK, 0, True),
        (BANK, 3, False),
        (BANK, 1, False),
        (TRANSACTIONS, 3, True),
    ],
)
def test_half_a_transfer_is_never_committed(kind: str, records: int, expected: bool) -> None:
    """The end of a load may come between its two sides; the total of all accounts would be off by the cluster's fault,
    as far as the verdict can tell."""
    assert TransactionPlan(partitions=2).is_whole(kind, records) is expected
