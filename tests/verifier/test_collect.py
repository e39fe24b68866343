"""What is collected from Spark and worked on in plain Python."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from verifier.collect import merge_ranges
from verifier.facts import ReservedRange

ranges = st.lists(
    st.builds(
        lambda run, stream, first, length: ReservedRange(run, "t", 0, stream, first, first + length),
        st.sampled_from(["a", "b"]),
        st.integers(0, 2),
        st.integers(0, 60),
        st.integers(0, 12),
    ),
    max_size=25,
)


@given(ranges)
def test_merged_reservations_cover_the_same_and_touch_nowhere(reserved: list[ReservedRange]) -> None:
    """No sequence is won or lost, none lies in two ranges, and no two ranges could be one."""

    def members(each: ReservedRange) -> set[tuple[str, int, int]]:
        return {(each.run, each.stream, n) for n in range(each.first_sequence, each.last_sequence + 1)}

    merged = merge_ranges(reserved)
    assert set().union(*map(members, merged)) == set().union(*map(members, reserved))
    assert sum(len(members(each)) for each in merged) == len(set().union(*map(members, merged)))
    for one in merged:
        for other in merged:
            if one is not other and (one.run, one.stream) == (other.run, other.stream):
                assert one.last_sequence + 1 != other.first_sequence
