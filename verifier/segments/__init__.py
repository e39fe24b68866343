"""The verifier's own reader of segment files. Shares no line with ``cluster``.

Owns the way from the bytes of one ``.log`` file to Arrow rows: ``walk`` (batch headers and CRC), ``compression``
(four codecs), ``records`` (values by the numpy lockstep) and ``rows`` (what Spark is handed). Judges nothing.
"""
