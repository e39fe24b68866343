"""What clients leave unread: who goes when it is too much."""

from __future__ import annotations

from cluster.seams.unread_answers import LEAST_BYTES, UnreadAnswers

MUCH = 4 * LEAST_BYTES


class Peer:
    def __init__(self) -> None:
        self.is_gone = False

    def give_up(self) -> None:
        self.is_gone = True


def test_those_go_that_have_not_read_for_the_longest_time() -> None:
    """As many as it takes; the last one stays, however much it has."""
    unread, peers = UnreadAnswers(3 * MUCH), [Peer() for _ in range(5)]
    for peer in peers:
        unread.keep(peer, MUCH)
    assert [peer.is_gone for peer in peers] == [True, True, False, False, False]
    unread.keep(peers[4], 100 * MUCH)
    assert [peer.is_gone for peer in peers] == [True, True, True, True, False]


def test_who_reads_is_not_among_them() -> None:
    """One that has read some of it is behind all that have not; one that has read all of it does not count."""
    unread, (reading, silent, done, last) = UnreadAnswers(3 * MUCH), [Peer() for _ in range(4)]
    for peer in (reading, silent, done):
        unread.keep(peer, MUCH)
    unread.progressed(reading, lambda: MUCH - 1)
    unread.read(done)
    unread.keep(last, 2 * MUCH)
    assert [peer.is_gone for peer in (reading, silent, done, last)] == [False, True, False, False]


def test_what_frees_nothing_is_kept() -> None:
    """A range of a file that waits for its reader takes no memory: no one goes for it, and nothing is measured."""
    unread, (slow, greedy) = UnreadAnswers(MUCH), (Peer(), Peer())
    unread.keep(slow, LEAST_BYTES)
    unread.progressed(slow, lambda: 1 // 0)
    unread.keep(greedy, 2 * MUCH)
    assert not slow.is_gone
    unread.keep(greedy, 0)
    assert repr(unread) == f"UnreadAnswers(0 of {MUCH} bytes, 0 connections)"
