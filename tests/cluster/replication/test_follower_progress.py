"""How far one follower is, by its fetches alone."""

from __future__ import annotations

from cluster.replication.follower_progress import FollowerProgress

LAG_MS = 1000


def test_caught_up_now_or_at_the_previous_fetch() -> None:
    """A follower that asks for our end is caught up now; one that asks for our end of last time was then."""
    follower = FollowerProgress(2, 0)
    assert follower.fetched(5, 10, 100)
    assert follower.caught_up_ms == 0
    follower.fetched(10, 20, 200)
    assert follower.caught_up_ms == 100
    follower.fetched(25, 25, 300)
    assert follower.caught_up_ms == 300
    assert not follower.fetched(25, 25, 350)
    assert follower.caught_up_ms == 350
    assert follower.is_caught_up(99, 350 + LAG_MS, LAG_MS)
    assert not follower.is_caught_up(99, 351 + LAG_MS, LAG_MS)
    assert follower.is_caught_up(25, 10**9, LAG_MS), "at our end it is caught up, however long ago it asked"
