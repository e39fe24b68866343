"""The follower's half of a fetch session: what each request names, and which answers still count."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from cluster.broker.replicas.following import FIRST_PAUSE_MS, SCAN_S, Following, Question, QuestionKind
from cluster.protocol.errors import ErrorCode
from cluster.protocol.fetch import FetchPartition, FetchResponse, FetchResult
from cluster.replication.follower import FetchPosition

SESSION = 77


@dataclass
class Replica:
    """What ``Following`` needs of a partition."""

    number: int
    offset: int = 0
    epoch: int = 0
    log: Any = field(default_factory=lambda: SimpleNamespace(log_start_offset=0))

    @property
    def key(self) -> tuple[str, int]:
        return "t", self.number

    def position(self) -> FetchPosition:
        return FetchPosition(self.epoch, self.offset, 0)

    def fetch_request(self, max_bytes: int) -> FetchPartition:
        return FetchPartition("t", self.number, self.epoch, self.offset, 0, self.log.log_start_offset, max_bytes)


def following(*replicas: Replica) -> Following:
    found = Following(1000)
    for replica in replicas:
        found.add(replica)  # type: ignore[arg-type]
    return found


def ask(found: Following, now_s: float = 0.0, *, is_second: bool = False) -> Question:
    question = found.question(now_s, is_second=is_second)
    assert question is not None
    return question


def named(question: Question) -> list[int]:
    return sorted(wanted.partition for wanted in question.wanted)


def result(number: int, records: bytes | None = None, error: int = 0) -> FetchResult:
    return FetchResult("t", number, error, 5, 5, 0, records)


def answer(found: Following, question: Question, *results: FetchResult, session: int = SESSION, error: int = 0) -> Any:
    """The partitions whose results count; all of them are handled."""
    counted = found.answered(question, FetchResponse(1, error, session, 0, list(results)))
    for followed, each in counted:
        found.handled(followed, each)
    return [followed.partition.number for followed, _ in counted]  # type: ignore[attr-defined]


def test_pauses_grow_with_errors_in_a_row() -> None:
    """A leader that has not heard yet that it leads is asked again soon, one that stays away ever less often."""
    found = following(Replica(0))
    ((followed, _),) = found.answered(ask(found), FetchResponse(1, 0, SESSION, 0, [result(0, error=6)]))
    pauses = [found.back_off(followed, 0.0, 1000) for _ in range(40)]
    assert pauses[:7] == [FIRST_PAUSE_MS, 40, 80, 160, 320, 640, 1000]
    assert set(pauses[7:]) == {1000}
    assert found.next_resume_s() == 1.0
    followed.failures = 0
    assert [found.back_off(followed, 2.0, longest_ms) for longest_ms in (1000, 30, 0)] == [20, 30, 0]


def test_a_session_is_opened_then_used() -> None:
    """All are named first, with epoch 0; then what has moved, with the leader's id and epochs 1, 2, 3."""
    replicas = [Replica(number) for number in range(3)]
    found = following(*replicas)
    full = ask(found)
    assert (full.kind, full.session_id, full.session_epoch, named(full)) == (QuestionKind.FULL, 0, 0, [0, 1, 2])
    replicas[1].offset = 4
    assert sorted(answer(found, full, result(0), result(1, b"x"), result(2))) == [0, 1, 2]
    second = ask(found)
    assert (second.kind, second.session_id, second.session_epoch, named(second)) == (
        QuestionKind.INCREMENTAL,
        77,
        1,
        [1],
    )
    assert answer(found, second) == []
    third = ask(found)
    assert (third.session_epoch, named(third)) == (2, [])


def test_a_leader_without_sessions_is_told_all_each_time() -> None:
    """An id of 0 declines: the next fetch is full again."""
    found = following(Replica(0), Replica(1))
    for _ in range(3):
        question = ask(found)
        assert (question.kind, question.session_epoch, named(question)) == (QuestionKind.FULL, 0, [0, 1])
        answer(found, question, result(0), result(1), session=0)


def test_an_answer_to_an_older_question_says_nothing_of_what_was_told_since() -> None:
    """Two questions on their way: the first's result for a partition that the second names is passed over."""
    replica = Replica(0)
    found = following(replica, Replica(1))
    answer(found, full := ask(found), result(0), result(1))
    assert full.number == 1
    first = ask(found)
    replica.epoch = 1
    found.add(replica)  # type: ignore[arg-type]
    second = ask(found, is_second=True)
    assert named(second) == [0]
    assert answer(found, first, result(0, b"old"), result(1)) == [1]
    assert answer(found, second, result(0)) == [0]


def test_while_a_session_is_being_opened_news_go_alone() -> None:
    """The leader's id is not known yet: a fetch outside the session, and the next one takes the partition in."""
    found = following(Replica(0))
    full = ask(found)
    found.add(Replica(1))  # type: ignore[arg-type]
    alone = ask(found, is_second=True)
    assert (alone.kind, alone.session_id, alone.session_epoch, named(alone)) == (QuestionKind.ALONE, 0, -1, [1])
    answer(found, full, result(0))
    answer(found, alone, result(1), session=0)
    assert named(ask(found)) == [1]


def test_who_pauses_is_forgotten_and_told_again() -> None:
    """Or its error would end every wait at once; a fenced one comes back only when it is followed again."""
    found = following(Replica(0), Replica(1), Replica(2))
    counted = found.answered(ask(found), FetchResponse(1, 0, SESSION, 0, [result(n, error=6) for n in range(3)]))
    by_number = {followed.partition.key[1]: followed for followed, _ in counted}
    found.pause(by_number[0], 5.0)
    found.pause(by_number[1], math.inf)
    for followed, each in counted:
        found.handled(followed, each)
    assert found.next_resume_s() == 5.0
    question = ask(found, 1.0)
    assert (sorted(question.forgotten), named(question)) == ([("t", 0), ("t", 1)], [2])
    answer(found, question)
    assert named(ask(found, 5.0)) == [0]
    assert found.next_resume_s() == math.inf
    found.add(Replica(1))  # type: ignore[arg-type]
    assert named(ask(found, 6.0)) == [1]


def test_a_lost_session_is_opened_again() -> None:
    """FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH and a lost connection: all but who pauses is told."""
    found = following(Replica(0), Replica(1))
    answer(found, ask(found), result(0), result(1))
    for error in (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH):
        assert answer(found, ask(found), session=0, error=error) == []
        full = ask(found)
        assert (full.kind, full.session_epoch, named(full)) == (QuestionKind.FULL, 0, [0, 1])
        answer(found, full, result(0), result(1))
    found.start_over()
    assert ask(found).kind is QuestionKind.FULL


def test_who_is_followed_no_more_is_forgotten() -> None:
    """And what the leader still holds of it is passed over, and asked to go."""
    found = following(Replica(0), Replica(1))
    answer(found, ask(found), result(0), result(1))
    found.remove(("t", 1))
    question = ask(found)
    assert question.forgotten == [("t", 1)]
    assert answer(found, question, result(1, error=6)) == []
    assert ask(found).forgotten == [("t", 1)]
    found.remove(("t", 0))
    assert len(found) == 0
    assert found.question(0, is_second=False) is None


def test_a_log_start_that_moved_by_itself_is_told() -> None:
    """Retention on this side: the leader must know how far its replicas have deleted."""
    replica = Replica(0)
    found = following(replica)
    answer(found, ask(found), result(0))
    assert named(ask(found)) == []
    replica.log.log_start_offset = 3
    assert named(ask(found, SCAN_S)) == [0]
    assert named(ask(found, 2 * SCAN_S)) == []


STEPS = st.lists(
    st.tuples(
        st.sampled_from(("ask", "second", "answer", "move", "add", "remove", "pause", "lose", "error")),
        st.integers(0, 4),
    ),
    max_size=60,
)


@given(STEPS)
def test_the_leader_knows_where_everybody_is(steps: list[tuple[str, int]]) -> None:
    """In any order of events: once all questions are answered and asked again, the leader's session holds every
    partition that is followed and does not pause, at the place where it is, and no other."""
    replicas = [Replica(number) for number in range(5)]
    found = following(*replicas[:3])
    flying: list[Question] = []
    held: dict[int, FetchPosition] | None = None
    now_s = 0.0

    def leader(question: Question) -> tuple[int, int, list[FetchResult]]:
        """Takes a question over; returns (session id, error, results)."""
        nonlocal held
        if question.kind is QuestionKind.ALONE:
            return 0, 0, [result(wanted.partition) for wanted in question.wanted]
        if question.kind is QuestionKind.FULL:
            held = {}
        elif held is None:
            return 0, int(ErrorCode.FETCH_SESSION_ID_NOT_FOUND), []
        for wanted in question.wanted:
            held[wanted.partition] = FetchPosition(wanted.current_leader_epoch, wanted.fetch_offset, 0)
        for _, number in question.forgotten:
            held.pop(number, None)
        return SESSION, 0, [result(wanted.partition) for wanted in question.wanted]

    def reply(*, pausing: int | None = None, data: int | None = None) -> None:
        question = flying.pop(0)
        session, error, results = leader(question)
        if data is not None and held is not None and data in held and question.kind is not QuestionKind.ALONE:
            results = [each for each in results if each.partition != data] + [result(data, b"x")]
        counted = found.answered(question, FetchResponse(1, error, session, 0, results))
        for followed, each in counted:
            number = followed.partition.key[1]
            if number == pausing:
                found.pause(followed, now_s + 1)
            if each.records and followed.sent == replicas[number].position():
                replicas[number].offset += 1
            found.handled(followed, each)

    for action, number in steps:
        now_s += 0.1
        if action in ("ask", "second") and len(flying) == (action == "second"):
            question = found.question(now_s, is_second=action == "second")
            flying += [question] if question else []
        elif action in ("answer", "pause", "move") and flying:
            reply(pausing=number if action == "pause" else None, data=number if action == "move" else None)
        elif action == "add":
            replicas[number].epoch += 1
            found.add(replicas[number])  # type: ignore[arg-type]
        elif action == "remove":
            found.remove(("t", number))
        elif action == "lose":
            flying.clear()
            found.start_over()
        elif action == "error":
            held = None
    for _ in range(6):
        now_s += 10
        while flying:
            reply()
        question = found.question(now_s, is_second=False)
        flying += [question] if question else []
    while flying:
        reply()
    expected = {key[1]: replicas[key[1]].position() for key in found._followed}
    assert (held or {}) == expected or not expected
