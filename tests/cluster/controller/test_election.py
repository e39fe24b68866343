"""Leader election against models that are too obvious to be wrong."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cluster.controller.election import (
    Election,
    elect_controlled_shutdown,
    elect_new,
    elect_offline,
    elect_preferred,
    elect_reassign,
)

BROKERS = st.integers(0, 5)


@st.composite
def situations(draw):
    """(replicas, isr within them, live)."""
    replicas = tuple(draw(st.lists(BROKERS, min_size=1, max_size=4, unique=True)))
    isr = tuple(draw(st.permutations([r for r in replicas if draw(st.booleans())] or [replicas[0]])))
    return replicas, isr, frozenset(draw(st.sets(BROKERS)))


@given(situations(), st.booleans())
def test_offline_election_picks_the_first_live_isr_member_in_assignment_order(situation, unclean):
    """Clean wins over unclean; unclean only where allowed; the new ISR is the old one without its dead."""
    replicas, isr, live = situation
    clean = [replica for replica in replicas if replica in isr and replica in live]
    alive = [replica for replica in replicas if replica in live]
    if clean:
        expected = Election(clean[0], tuple(member for member in isr if member in live))
    elif unclean and alive:
        expected = Election(alive[0], (alive[0],), recovering=True)
    else:
        expected = None
    assert elect_offline(replicas, isr, live, unclean=unclean) == expected


@given(situations())
def test_a_replica_outside_the_isr_never_leads_unless_unclean_is_allowed(situation):
    """KAFKA-1555: an out-of-sync replica must not win a clean election."""
    replicas, isr, live = situation
    election = elect_offline(replicas, isr, live, unclean=False)
    assert election is None or (election.leader in isr and set(election.isr) <= set(isr))


@given(situations())
def test_a_new_partition_is_led_by_its_first_live_replica_with_all_live_ones_in_sync(situation):
    """There is no data yet, so everybody has all of it."""
    replicas, _, live = situation
    election = elect_new(replicas, live)
    alive = tuple(replica for replica in replicas if replica in live)
    assert election == (Election(alive[0], alive) if alive else None)


@given(situations())
def test_preferred_election_moves_only_to_the_head_of_the_assignment(situation):
    """assignment[0] if it is live and in the ISR; the ISR stays."""
    replicas, isr, live = situation
    election = elect_preferred(replicas, isr, live)
    wanted = replicas[0] in live and replicas[0] in isr
    assert election == (Election(replicas[0], isr) if wanted else None)


@given(situations(), st.sets(BROKERS))
def test_a_controlled_shutdown_leaves_a_leader_and_an_isr_that_stay(situation, shutting_down):
    """Who goes neither leads nor stays in the ISR."""
    replicas, isr, live = situation
    election = elect_controlled_shutdown(replicas, isr, live, shutting_down)
    staying = [r for r in replicas if r in live and r in isr and r not in shutting_down]
    if not staying:
        assert election is None
    else:
        assert election == Election(staying[0], tuple(member for member in isr if member not in shutting_down))
        assert election.leader in election.isr


@given(situations(), st.lists(BROKERS, unique=True, max_size=4))
def test_a_reassignment_elects_among_its_targets_without_touching_the_isr(situation, targets):
    """First of the targets that is live and in the ISR."""
    _, isr, live = situation
    able = [target for target in targets if target in live and target in isr]
    assert elect_reassign(targets, isr, live) == (Election(able[0], isr) if able else None)
