"""What the replicas' bytes say about transactions, judged: what was decided, and what the logs hold of it.

Owns the way from ``__transaction_state`` to decisions (``state_records``, ``decisions``), from the logs to what began
and ended in them (``logs``), and which marker belongs to which decision (``alignment``, ``model``). ``evidence`` finds
the files; ``transaction_checks`` asks the checks, which are in ``verifier/checks``. Shares no line with ``cluster``; no
Spark. A run without that topic has no transactions, and nothing of this is asked.
"""
