"""What may excuse an anomaly: what the settings permit, which events make it legal, and what each of them excuses.

``expectation`` says what the settings permit, and needs no Spark. ``events`` makes the events as tables, in the shape
that ``event_rows`` has; ``elections`` (with ``around_elections``), ``late`` and ``refusals`` find the more difficult
kinds. ``by_value`` and ``by_partition`` say which anomalies they excuse. Owns neither the checks nor what the harness
saw of an event (``verifier.witness``).
"""
