"""Spark as a machine: started and ended, told what it needs, handed the evidence, asked many questions as one job.

``session`` starts one with what ``settings`` says; ``class_archive`` makes that quicker. ``sessions`` keeps one for
several runs, and ``plain_paths`` has paths that Spark can take. Evidence reaches it as files on this machine
(``staging``, ``staging_part``) or through its own workers (``sources``); ``history_rows`` makes the rows of histories
for both. ``written_tables`` keeps tables as files, and ``questions`` asks. What is asked, and of which tables, is not
decided here but in ``verifier.tables``, ``verifier.claims`` and the checks. Importing this loads no pyspark.
"""
