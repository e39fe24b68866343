"""Running Spark: starting and ending sessions, loading the evidence, and asking many questions as one job.

``session`` starts a session with the configuration from ``settings``; ``class_archive`` makes starting faster.
``sessions`` keeps one session for several runs, and ``plain_paths`` gives Spark paths that it can take. Evidence
reaches Spark as Parquet files on this machine (``staging``, ``staging_part``) or through Spark's own workers
(``sources``); both take the rows of histories from ``history_rows``. ``written_tables`` keeps tables as files, and
``questions`` asks. What is asked, and of which tables, is decided in ``verifier.tables``, ``verifier.claims`` and the
checks. Importing this package loads no pyspark.
"""
