"""What consumer groups did: what their members were handed and committed, beside the log that they read.

``rows`` joins the histories, ``logs`` says which records a log has for a member, ``positions`` which offsets a member
may resume at. ``stored`` reads what ``__consumer_offsets`` has (``offset_records``: its layouts), and ``pipeline`` what
a group that transforms read and wrote. ``model`` has the values; ``group_checks`` asks the checks, which are in
``verifier/checks``.
"""
