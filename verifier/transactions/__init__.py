"""What replicas' bytes and clients say about transactions, judged: decisions, markers, and what clients were told.

Owns the way from ``__transaction_state`` to decisions (``state_records``, ``decisions``), from the logs to what began
and ended in them (``logs``), and which marker belongs to which decision (``alignment``: the likeliest; ``readings``:
all that are possible; ``model``). From histories come the transactions as clients saw them (``client_rows``), which of
their commits has a decision (``own_decisions``), and cycles of them (``cycles``). ``evidence`` finds the files;
``transaction_checks`` asks the checks, which are in ``verifier/checks``. Shares no line with ``cluster``; no Spark. A
run without that topic has no transactions: of all this, only the ends that readers were told (``ends``) are judged
then. Of a cluster that others started, the run's workload says whether there are any.
"""
