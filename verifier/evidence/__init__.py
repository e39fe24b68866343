"""Evidence: the files of a run and their layout. A leaf (standard library, numpy, pyarrow).

Owns the layout of a sequenced value, the columns of the history, the names of the files in a run directory, the
typed content of ``run.json`` and the load's time series. Load, conductor and verifier share these and no more.
Does not own any judgment, nor the reading of segments.
"""
