"""Evidence about consumer groups, prepared for the checks: deliveries, commits, and the logs that members read.

Owns how this evidence is read and joined. ``rows`` joins the histories, ``logs`` finds the records that a log has for
members, and ``positions`` the offsets at which a member may resume. ``stored`` reads ``__consumer_offsets``
(``offset_records`` decodes it), and ``pipeline`` the input and output of a group that transforms records. ``model`` has
the values that the checks take; ``group_checks`` runs the checks. Does not own the checks (``verifier/checks``).
"""
