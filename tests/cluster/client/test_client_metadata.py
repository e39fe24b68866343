"""ClientMetadata: what is asked, when, and what an answer changes."""

from __future__ import annotations

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from cluster.client.backoff import ExponentialBackoff
from cluster.client.client_metadata import ClientMetadata
from cluster.client.cluster_view import BrokerAddress, ClusterView, PartitionView, TopicView
from cluster.protocol.errors import ErrorCode
from cluster.seams.randomness import Random

MAX_AGE_MS = 300_000
MAX_IDLE_MS = 60_000
BOOTSTRAP = [("one", 9092), ("two", 9093)]
BROKERS = {1: BrokerAddress(1, "b1", 1), 2: BrokerAddress(2, "b2", 2)}


def metadata(initial_ms: int = 100, max_ms: int = 1000) -> ClientMetadata:
    backoff = ExponentialBackoff(initial_ms, max_ms, Random(7))
    return ClientMetadata(BOOTSTRAP, backoff, max_age_ms=MAX_AGE_MS, max_idle_ms=MAX_IDLE_MS)


def partition(index=0, leader=1, epoch=0, error=ErrorCode.NONE) -> PartitionView:
    return PartitionView(index, error, leader, epoch, (1, 2), (1, 2), ())


def topic(name: str, *partitions: PartitionView, error=ErrorCode.NONE, number: int | None = 1) -> TopicView:
    topic_id = None if number is None else UUID(int=number)
    return TopicView(name, topic_id, error, False, {view.partition: view for view in partitions})


def answer(*topics: TopicView, brokers=BROKERS) -> ClusterView:
    return ClusterView("c", 1, brokers, {view.name: view for view in topics})


def exchange(known: ClientMetadata, now_ms: int, *topics: TopicView):
    """Ask the next question and take the answer in; the question."""
    question = known.next_question(now_ms)
    known.update(question, answer(*topics), now_ms)
    return question


def test_the_first_question_goes_to_the_bootstrap_brokers():
    """Before the first answer the bootstrap addresses are the cluster, and everything is asked at once."""
    known = metadata()
    assert known.view.brokers == {-1: BrokerAddress(-1, "one", 9092), -2: BrokerAddress(-2, "two", 9093)}
    assert known.next_update_ms(5) == 0
    known.use("t", 5)
    question = exchange(known, 5, topic("t", partition()))
    assert (question.topics, question.is_partial) == (("t",), False)
    assert known.view.brokers == BROKERS
    assert known.leader_of("t", 0) == BROKERS[1]
    assert known.leader_of("t", 1) is None
    assert known.leader_of("u", 0) is None
    assert known.version == 1


def test_metadata_is_asked_again_at_its_age():
    """Nothing is asked before metadata.max.age.ms, and then everything in use."""
    known = metadata()
    known.use("t", 0)
    exchange(known, 1000, topic("t", partition()))
    assert known.next_update_ms(2000) == MAX_AGE_MS - 1000
    known.use("t", MAX_AGE_MS)
    assert known.next_update_ms(1000 + MAX_AGE_MS) == 0
    assert not exchange(known, 1000 + MAX_AGE_MS, topic("t", partition())).is_partial
    assert known.next_update_ms(1000 + MAX_AGE_MS) == MAX_AGE_MS


def test_a_new_topic_is_asked_for_alone_and_at_once():
    """A partial update leaves the other topics as they are, and waits for no back-off."""
    known = metadata()
    known.use("old", 0)
    exchange(known, 0, topic("old", partition(leader=2)))
    known.use("new", 1)
    assert known.next_update_ms(1) == 0
    question = exchange(known, 1, topic("new", partition()))
    assert (question.topics, question.is_partial) == (("new",), True)
    assert known.leader_of("old", 0) == BROKERS[2]
    assert known.leader_of("new", 0) == BROKERS[1]
    # The age counts from the last full answer.
    assert known.next_update_ms(1000) == MAX_AGE_MS - 1000


def test_a_topic_that_appears_while_an_answer_is_on_its_way():
    """The answer that could not know of it does not count for it."""
    known = metadata()
    known.use("old", 0)
    question = known.next_question(0)
    known.use("new", 1)
    known.update(question, answer(topic("old", partition())), 2)
    assert known.is_update_requested
    assert known.next_question(2).topics == ("new",)


def test_an_unused_topic_is_dropped():
    """After metadata.max.idle.ms a topic is neither asked for nor known; its next use asks for it again."""
    known = metadata()
    known.use("idle", 0)
    known.use("busy", 0)
    exchange(known, 0, topic("idle", partition()), topic("busy", partition()))
    known.use("busy", MAX_IDLE_MS)
    known.request_update()
    assert exchange(known, MAX_IDLE_MS, topic("busy", partition())).topics == ("busy",)
    assert set(known.view.topics) == {"busy"}
    assert list(known.topics) == ["busy"]
    known.use("idle", MAX_IDLE_MS)
    assert known.next_update_ms(MAX_IDLE_MS) == 0
    assert known.next_question(MAX_IDLE_MS).topics == ("idle",)


def test_failures_back_off():
    """Each failure doubles the pause up to the longest, and a success ends that."""
    known = metadata()
    pauses = []
    now_ms = 0
    for _ in range(6):
        known.next_question(now_ms)
        known.failed(now_ms)
        pauses.append(known.next_update_ms(now_ms))
        now_ms += pauses[-1]
    for pause_ms, ideal_ms in zip(pauses, [100, 200, 400, 800, 1000, 1000], strict=True):
        assert 0.8 * ideal_ms - 1 <= pause_ms <= 1.2 * ideal_ms
    # A new topic does not undo the pause of a cluster that does not answer.
    known.failed(now_ms)
    known.use("t", now_ms)
    assert known.next_update_ms(now_ms) > 100
    exchange(known, now_ms, topic("t", partition()))
    known.request_update()
    assert 80 <= known.next_update_ms(now_ms) <= 120


def test_answers_that_change_nothing_back_off():
    """Who asks again and again because of a leader that is not elected asks ever more slowly, until one is."""
    known = metadata()
    known.use("t", 0)
    nobody = topic("t", partition(leader=-1, error=ErrorCode.LEADER_NOT_AVAILABLE))
    now_ms, pauses = 0, []
    for _ in range(6):
        exchange(known, now_ms, nobody)
        pauses.append(known.next_update_ms(now_ms))
        now_ms += pauses[-1]
    assert pauses[0] <= 120
    assert pauses[-1] >= 800
    exchange(known, now_ms, topic("t", partition(epoch=1)))
    known.request_update()
    assert known.next_update_ms(now_ms) <= 120


def test_errors_of_topics_and_partitions():
    """A topic without a leader, or not known yet, is asked for again; what nobody can mend is not."""
    for error, again in [
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, True),
        (ErrorCode.LEADER_NOT_AVAILABLE, True),
        (ErrorCode.INVALID_TOPIC_EXCEPTION, False),
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, False),
    ]:
        known = metadata()
        known.use("t", 0)
        exchange(known, 0, topic("t", error=error))
        assert known.view.topics["t"].error_code is error
        assert known.is_update_requested is again
    known = metadata()
    known.use("t", 0)
    exchange(known, 0, topic("t", partition(), partition(1, -1, error=ErrorCode.LEADER_NOT_AVAILABLE)))
    assert known.is_update_requested
    assert known.leader_of("t", 1) is None


def test_an_update_for_one_topic():
    """A topic that no answer has named is asked for alone; a stale one makes everything asked."""
    known = metadata()
    known.use("t", 0)
    exchange(known, 0, topic("t", partition()))
    known.use("new", 1)
    exchange(known, 1)
    assert not known.is_update_requested
    assert known.request_update_for("new") == known.version
    assert known.next_question(2).topics == ("new",)
    known.request_update_for("t")
    assert known.next_question(2) == known.next_question(2)._replace(topics=("new", "t"), is_partial=False)


def test_an_older_leader_epoch_replaces_no_newer_one():
    """A broker that lags answers with the old leader: what is known stays, and newer epochs are taken."""
    known = metadata()
    known.use("t", 0)
    exchange(known, 0, topic("t", partition(leader=1, epoch=5), partition(1, 1, 3)))
    known.request_update()
    exchange(known, 1, topic("t", partition(leader=2, epoch=4), partition(1, 2, 4)))
    assert known.leader_of("t", 0) == BROKERS[1]
    assert known.leader_of("t", 1) == BROKERS[2]


def test_an_epoch_is_remembered_while_its_topic_is_unknown():
    """A broker that does not know the topic yet, and then one that lags, do not bring the old leader back."""
    known = metadata()
    known.use("t", 0)
    exchange(known, 0, topic("t", partition(epoch=5)))
    exchange(known, 1, topic("t", error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    exchange(known, 2, topic("t", partition(leader=2, epoch=4)))
    assert known.leader_of("t", 0) is None
    exchange(known, 3, topic("t", partition(leader=2, epoch=5)))
    assert known.leader_of("t", 0) == BROKERS[2]


def test_a_topic_that_was_created_again_starts_its_epochs_over():
    """Another topic id makes the old epochs void; without ids epochs alone count."""
    known = metadata()
    known.use("t", 0)
    exchange(known, 0, topic("t", partition(epoch=5)))
    exchange(known, 1, topic("t", partition(leader=2, epoch=0), number=2))
    assert known.leader_of("t", 0) == BROKERS[2]
    # An old broker tells no epoch: its word is taken, as there is nothing to compare.
    exchange(known, 2, topic("t", partition(leader=1, epoch=-1), number=None))
    assert known.leader_of("t", 0) == BROKERS[1]


def test_a_topic_that_was_missing_in_between_starts_its_epochs_over():
    """Answers of a topic that does not exist have no id: the one that it had before tells that this is another one."""
    known = metadata()
    known.use("t", 0)
    missing = topic("t", error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, number=None)
    exchange(known, 0, topic("t", partition(epoch=5)))
    exchange(known, 1, missing)
    exchange(known, 2, topic("t", partition(leader=2, epoch=4)))
    assert known.leader_of("t", 0) is None
    exchange(known, 3, missing)
    exchange(known, 4)
    exchange(known, 5, topic("t", partition(leader=2, epoch=0), number=2))
    assert known.leader_of("t", 0) == BROKERS[2]


def test_only_topics_in_use_are_kept():
    """What is not used any more is not asked for, which could create it again; a late answer does not bring it back."""
    known = metadata()
    for name in ("old", "kept"):
        known.use(name, 0)
    exchange(known, 0, topic("old", partition(epoch=5)), topic("kept", partition()))
    known.use("new", 1)
    question = known.next_question(1)
    known.retain({"kept"})
    assert set(known.view.topics) == {"kept"}
    assert known.next_question(1).topics == ("kept",)
    known.update(question, answer(topic("new", partition())), 2)
    assert set(known.view.topics) == {"kept"}
    known.use("old", 3)
    assert known.next_question(3) == known.next_question(3)._replace(topics=("old",), is_partial=True)
    exchange(known, 3, topic("old", partition(leader=2, epoch=1)))
    assert known.leader_of("old", 0) == BROKERS[2]


def test_an_answer_without_brokers_is_no_answer():
    """A broker that has just started knows nobody: what is known stays, and the pause is that of a failure."""
    known = metadata()
    known.use("t", 0)
    question = exchange(known, 0, topic("t", partition()))
    known.update(question, answer(brokers={}), 1)
    assert known.leader_of("t", 0) == BROKERS[1]
    assert known.version == 1


def test_the_bootstrap_is_a_last_resort():
    """When all known brokers are gone the bootstrap addresses may be asked too, and the next answer replaces them."""
    known = metadata()
    known.use("t", 0)
    exchange(known, 0, topic("t", partition(), partition(1, leader=-1)))
    known.unreachable(1)
    known.unreachable(-1)
    assert set(known.view.brokers) == {1, 2}
    assert not known.is_update_requested
    known.unreachable(2)
    known.unreachable(2)
    assert set(known.view.brokers) == {1, 2, -1, -2}
    assert known.leader_of("t", 0) == BROKERS[1]
    assert known.leader_of("t", 1) is None
    assert known.is_update_requested
    exchange(known, 1000, topic("t", partition()))
    assert known.view.brokers == BROKERS
    known.unreachable(1)
    assert known.view.brokers == BROKERS


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("answer"), st.integers(0, 1), st.integers(0, 6)),
            st.tuples(st.just("use"), st.sampled_from("tu"), st.just(0)),
            st.tuples(st.just("wait"), st.integers(0, 40_000), st.just(0)),
            st.tuples(st.sampled_from(["failed", "stale"]), st.just(0), st.just(0)),
        ),
        max_size=60,
    )
)
def test_epochs_never_go_back_and_every_topic_in_use_is_asked_for(steps):
    """Whatever brokers answer: epochs only grow, and after a last good answer everything in use is known."""
    known, now_ms, seen = metadata(), 0, {}
    for step, first, second in steps:
        if step == "wait":
            now_ms += first
        elif step == "use":
            known.use(first, now_ms)
        elif step == "stale":
            known.request_update()
        elif known.next_update_ms(now_ms) == 0:
            question = known.next_question(now_ms)
            if step == "failed":
                known.failed(now_ms)
                assert known.next_update_ms(now_ms) > 0
            else:
                topics = [topic(name, partition(first, epoch=second)) for name in question.topics]
                known.update(question, answer(*topics), now_ms)
        for name, view in known.view.topics.items():
            for index, described in view.partitions.items():
                assert described.leader_epoch >= seen.get((name, index), 0)
                seen[name, index] = described.leader_epoch
        seen = {key: epoch for key, epoch in seen.items() if key[0] in known.topics}
    while known.is_update_requested:
        now_ms += known.next_update_ms(now_ms)
        question = known.next_question(now_ms)
        known.update(question, answer(*(topic(name, partition(epoch=9)) for name in question.topics)), now_ms)
    assert set(known.topics) <= set(known.view.topics)
