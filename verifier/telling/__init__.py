"""The parts that reports of runs and of histories are made of, and the files of anomalies beside them.

``markdown`` and ``suites`` (JUnit XML) have the forms, ``reasons`` says why something is allowed, ``result_lines`` has
the lines that end every run, and ``anomaly_files`` writes every anomaly as a row. Owns no whole report: a run's is
``verifier.report``, a history's ``verifier.operations.report``. Decides nothing.
"""
