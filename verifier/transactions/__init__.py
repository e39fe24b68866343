"""Evidence about transactions, prepared for the checks: decisions, markers, and what clients were told.

Owns how the evidence is read and matched:

- ``state_records`` and ``decisions`` turn the records of ``__transaction_state`` into decisions.
- ``logs`` reads which transactions begin and end in a replica's log.
- ``alignment`` finds the most likely decision for each marker, ``readings`` every possible one; ``model`` holds both.
- ``client_rows`` rebuilds the transactions that clients saw from their histories; ``own_decisions`` matches their
  commits with decisions, and ``cycles`` finds cycles among them.
- ``ends`` reads which end offsets readers were told; ``figures`` counts outcomes.

``evidence`` finds the files, and ``transaction_checks`` runs the checks. Does not own the checks themselves
(``verifier/checks``). Shares no code with ``cluster``, and does not use Spark. A run without ``__transaction_state``
has no transactions, so only the end offsets are judged. If gapless did not start the cluster, the run's workload says
whether it has transactions.
"""
