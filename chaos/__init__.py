"""chaos: breaks a cluster on purpose and has the evidence judged: proxy, links, faults, schedules, conductor, commands.

Owns the run: one experiment from its options to its verdict. Does not own the cluster, the load or the judgment.
"""
