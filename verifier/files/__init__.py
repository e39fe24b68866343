"""The files beside a log, by the verifier's own readers: indexes, checkpoints, producer-state snapshots, tails.

Owns what must hold between them and the batches of the same replica (docs/log.md): ``formats`` reads bytes,
``headers`` the batches that they are compared with, ``transactions`` what those say about transactions; ``indexes``,
``checkpoints``, ``snapshots`` and ``aborted_index`` have one rule each,
``replica`` asks all of them of one directory, and ``rows`` makes Arrow rows of the answers. Shares no line with
``cluster``. ``gapless dump`` asks the same rules.
"""
