"""An unclean election that a fault ordered permits what the topic's setting permits, there and until it is over."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.support.settings import settings
from tests.verifier.test_completeness import KILL, SECOND, account, final, incomplete
from tests.verifier.test_verdict import a_run, closing, facts
from verifier.excuses.event_rows import Grounds
from verifier.excuses.expectation import ELECTION, Expectation
from verifier.witness.effectiveness import Injected
from verifier.witness.unclean_orders import NEVER_OVER, orders_over, unclean_orders
from verifier.witness.witness import Witness, WitnessedElection, spans

ORDER = replace(
    KILL,
    fault="elect-unclean",
    target="partition t-0, from brokers 1, 3 to replica 2",
    start_ns=20 * SECOND,
    probe={"steps": [{"broker": 1, "pid": 101, "dead": True}, {"broker": 3, "pid": 103, "dead": True}]},
)


def an_election(about_s: int) -> WitnessedElection:
    return WitnessedElection(5, 100, 200, about_s * SECOND, 0, 90 * SECOND, about_s * SECOND - 1)


@pytest.mark.parametrize("check", ["lost-write", "inconsistent-offsets", "duplicate", "watermark-regression"])
def test_an_order_permits_what_the_setting_permits(check: str) -> None:
    """Of a run that was asked for it; of any other, nothing, whatever its record of faults says."""
    cause = "vanished" if check == "duplicate" else None
    asked, other = a_run(faults_requested=["elect-unclean"]), a_run(faults_requested=["kill-leader"])
    by_setting = Expectation(settings(unclean_leader_election=True))
    reason = Expectation.of(asked).reason(check, cause, ELECTION)
    assert reason is not None and reason.startswith("elect-unclean ordered an unclean election")
    assert by_setting.reason(check, cause, ELECTION) is not None
    assert Expectation.of(other).reason(check, cause, ELECTION) is None
    assert {each.check for each in Expectation.of(asked).allowances} == {e.check for e in by_setting.allowances}


def test_orders_are_known_by_their_partition_and_their_time() -> None:
    """Only the first order of each partition counts, not one that was skipped, nor what other faults name."""
    again = replace(ORDER, start_ns=40 * SECOND)
    elsewhere = replace(ORDER, target="partition a-b-7, from brokers 1 to replica 2", start_ns=30 * SECOND)
    skipped = replace(ORDER, target="partition t-1, from brokers 1 to replica 2", skipped=True)
    preferred = replace(ORDER, fault="elect-preferred", target="partition t-2, replicas in the order 2, 1")
    found = unclean_orders([again, ORDER, elsewhere, skipped, preferred])
    assert found == {("t", 0): 20 * SECOND, ("a-b", 7): 30 * SECOND}


def test_what_was_never_ordered_permits_nothing() -> None:
    """The replica stayed in the ISR, or the partition kept a leader: then the fault asked for no election. An order
    whose answers are not all known may have been carried out, and one without a time counts from the fault's start."""
    never = replace(ORDER, probe={**ORDER.probe, "answer": "nothing"})
    assert unclean_orders([never]) == {}
    for answer in ("NONE", "REQUEST_TIMED_OUT", "NOT_CONTROLLER"):
        assert unclean_orders([replace(ORDER, probe={**ORDER.probe, "answer": answer})]) == {("t", 0): 20 * SECOND}
    assert unclean_orders([replace(ORDER, probe={"error": "OSError()"})]) == {("t", 0): 20 * SECOND}


def told(**seen: Any) -> Injected:
    """The same fault, whose probe saw this as well."""
    return replace(ORDER, probe={**ORDER.probe, **seen})


def test_an_order_permits_from_the_time_it_was_sent() -> None:
    """Not from the start of its fault, which first takes a follower out of the ISR: a fault that failed tells the
    time as well."""
    sent = told(answer="NONE", all_answers=["NONE"], elections=1, ordered_ns=50 * SECOND)
    failed = replace(ORDER, probe={"error": "OSError()", "ordered_ns": 40 * SECOND})
    assert unclean_orders([sent]) == {("t", 0): 50 * SECOND}
    assert unclean_orders([sent, failed]) == {("t", 0): 40 * SECOND}
    grounds = Grounds(settings(), Witness(ordered_from=unclean_orders([sent])), by_order=True)
    assert not grounds.counts("t", 0, an_election(45)) and grounds.counts("t", 0, an_election(51))


@pytest.mark.parametrize(
    ("answers", "elections", "permits"),
    [
        (["ELIGIBLE_LEADERS_NOT_AVAILABLE"], 0, False),
        (["UNKNOWN_TOPIC_OR_PARTITION", "ELIGIBLE_LEADERS_NOT_AVAILABLE"], 0, False),
        (["ELIGIBLE_LEADERS_NOT_AVAILABLE"], 1, True),
        (["REQUEST_TIMED_OUT", "ELIGIBLE_LEADERS_NOT_AVAILABLE"], 0, True),
        (["ELIGIBLE_LEADERS_NOT_AVAILABLE"], None, True),
        ([], 0, True),
    ],
    ids=["refused", "refused twice", "journals", "one unanswered", "journals not asked", "no answer yet"],
)
def test_an_order_that_was_refused_permits_nothing(answers: list[str], elections: int | None, permits: bool) -> None:
    """If each answer was a refusal and the journals have no such election: less does not tell it safely."""
    seen = {"answer": (answers or ["none"])[-1], "all_answers": answers, "ordered_ns": 25 * SECOND}
    found = unclean_orders([told(**seen, **({} if elections is None else {"elections": elections}))])
    assert found == ({("t", 0): 25 * SECOND} if permits else {})


def test_an_order_permits_until_its_fault_was_over() -> None:
    """Then every replica has the same log: an election that begins later loses what no order gave up."""
    done = replace(told(answer="NONE", all_answers=["NONE"], ordered_ns=25 * SECOND), end_ns=60 * SECOND, healed=True)
    witness = Witness(ordered_from=unclean_orders([done]), ordered_until=orders_over([done]))
    grounds = Grounds(settings(), witness, by_order=True)
    assert grounds.counts("t", 0, an_election(26)) and grounds.counts("t", 0, an_election(60))
    assert not grounds.counts("t", 0, an_election(62))
    assert grounds.counts("t", 0, an_election(62), gone_ns=26 * SECOND), "the ordered epoch left nothing in the log"


def test_an_order_excuses_nothing_that_was_acknowledged_after_its_fault_was_over() -> None:
    """Whenever the election that counts was: what every replica acknowledged is on every replica."""
    done = replace(told(answer="NONE", all_answers=["NONE"], ordered_ns=25 * SECOND), end_ns=60 * SECOND, healed=True)
    witness = Witness(ordered_from=unclean_orders([done]), ordered_until=orders_over([done]))
    late = an_election(71)._replace(until_ns=74 * SECOND)
    assert Grounds(settings(), witness, by_order=True).bounded("t", 0, late).until_ns == 63 * SECOND
    early = an_election(30)._replace(until_ns=50 * SECOND)
    assert Grounds(settings(), witness, by_order=True).bounded("t", 0, early) == early
    assert Grounds(settings(acks="1"), witness, by_order=True).bounded("t", 0, late) == late
    assert Grounds(settings(), witness, by_order=True).bounded("u", 0, late) == late


def test_an_order_lasts_while_it_may_still_be_carried_out() -> None:
    """It had no final answer, or no one saw that all replicas were back; of several faults the last one counts."""
    done = replace(told(answer="NONE", ordered_ns=25 * SECOND), end_ns=60 * SECOND, healed=True)
    place = ("t", 0)
    assert orders_over([done]) == {place: 60 * SECOND}
    assert orders_over([done, replace(done, end_ns=90 * SECOND)]) == {place: 90 * SECOND}
    assert orders_over([replace(done, healed=False)]) == {place: NEVER_OVER}
    assert orders_over([replace(done, healed=False, late=True, again_ns=80 * SECOND)]) == {place: 80 * SECOND}
    assert orders_over([replace(done, end_ns=None)]) == {place: NEVER_OVER}
    assert orders_over([replace(done, probe={**done.probe, "answer": "REQUEST_TIMED_OUT"})]) == {place: NEVER_OVER}
    assert orders_over([replace(done, probe={"error": "OSError()"})]) == {place: NEVER_OVER}
    assert orders_over([replace(done, probe={**done.probe, "answer": "nothing"})]) == {}


@pytest.mark.parametrize(
    ("changes", "place", "about_s", "counts"),
    [
        ({}, ("t", 0), 25, True),
        ({}, ("t", 0), 19, False),
        ({}, ("t", 1), 25, False),
        ({"acks": "1", "idempotence": False}, ("t", 1), 25, True),
        ({"unclean_leader_election": True}, ("t", 1), 19, True),
    ],
    ids=["ordered", "before the order", "another partition", "acks=1 permits any", "the setting permits any"],
)
def test_only_an_ordered_election_excuses(
    changes: dict[str, Any], place: tuple[str, int], about_s: int, counts: bool
) -> None:
    """Where nothing else permits it, an election counts in the ordered partition, from the order on."""
    grounds = Grounds(settings(**changes), Witness(ordered_from=unclean_orders([ORDER])), by_order=True)
    assert grounds.counts(*place, an_election(about_s)) is counts


def test_an_order_that_was_not_asked_for_cuts_nothing_committed() -> None:
    """What the record of faults says alone proves nothing: the run must have been asked for it."""
    witness = Witness(ordered_from=unclean_orders([ORDER]))
    assert Grounds(settings(), witness, by_order=True).is_unclean("t", 0)
    assert not Grounds(settings(), witness, by_order=True).is_unclean("t", 1)
    assert not Grounds(settings(), witness).is_unclean("t", 0)
    assert Grounds(settings(unclean_leader_election=True), Witness()).is_unclean("t", 1)


def test_those_that_an_order_killed_acknowledge_nothing_in_ignorance() -> None:
    """They are dead, and the fault holds back nothing that a producer sent."""
    (span,) = spans([ORDER])
    assert span.brokers == {1, 3}
    assert not span.blinded(1, span.start_ns, span.end_ns) and not span.holds_requests


def told_above(*faults: Injected, requested: list[str]) -> list[str]:
    """What is doubted where a reader was told of a watermark above the last one."""
    run = replace(final(), faults_requested=requested)
    (where,) = {(each.topic, each.partition): each for each in run.final}.items()
    reader = next(each for each in closing().accounts if each.watermarks)
    above = account(reader.process, watermarks={where[0]: where[1].high_watermark + 5})
    seen = replace(above, faults=closing(*faults).faults)
    return [each.reason for each in incomplete(run, facts(), seen) if "was told of a high watermark" in each.reason]


def test_a_watermark_may_go_back_where_it_was_ordered() -> None:
    """In that partition of a run that was asked for it; else the final state is in doubt as ever."""
    assert told_above(ORDER, requested=["elect-unclean"]) == []
    assert told_above(replace(ORDER, target="partition t-1, from brokers 1 to replica 2"), requested=["elect-unclean"])
    assert told_above(ORDER, requested=["kill-leader"])
