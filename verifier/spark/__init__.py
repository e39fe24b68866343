"""Runs Spark: starts and ends sessions, loads the evidence, and combines many queries into one job.

``session`` starts a session with the configuration from ``settings``; ``class_archive`` makes the start faster.
``sessions`` keeps one session for several runs, and ``plain_paths`` gives Spark paths that it can handle. Evidence
reaches Spark as Parquet files on this machine (``staging``, ``staging_part``) or through Spark's own workers
(``sources``); both take the rows of histories from ``history_rows``. ``written_tables`` stores tables as files, and
``questions`` runs queries together. Does not own the tables or queries (``verifier.tables``, ``verifier.claims``,
``verifier.checks``). Importing this package does not load pyspark.
"""
