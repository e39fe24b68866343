"""Figures of a run. They are in the verdict and the report, and decide nothing.

``stats`` counts the evidence. ``lag`` measures how far behind readers were, and ``lag_figures`` formats the result.
``unavailability`` measures how long partitions accepted no writes, ``recoveries`` how long brokers took to start after
kills, and ``standstills`` how long last stable offsets did not move. Does not own the figures of transactions
(``verifier.transactions.figures``) and of groups (``verifier.groups.group_checks``).
"""
