"""Figures of a run that decide nothing: they are in the verdict and in the report, and no rule asks for them.

``stats`` has the counts of the evidence, ``lag`` how far behind readers were (``lag_figures`` shows it),
``unavailability`` how long partitions took no writes, ``recoveries`` how brokers came up after kills, and
``standstills`` how long last stable offsets stood still. The figures of transactions are beside what they count
(``verifier.transactions.figures``).
"""
