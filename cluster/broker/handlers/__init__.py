"""One module per API, of its name: from its request to its answer.

A module is three steps, in this order, and owns all that is peculiar to the API's messages:

1. ``handle(services, request, exchange)`` reads the message and makes values of it. What a version means is known here
   and nowhere else; so is Kafka's rule for what is named twice (``named_once``).
2. It has them carried out. What executes lies in the room that owns the state (``replicas``, ``control``,
   ``cluster.log``, ``settings``), takes values and returns values, or raises ``RequestRefused`` with the code to
   answer: it knows no message, no version and no connection. So it is tested without any.
3. It lays the answer out, in the message class of the API.

An answer that is made of what is known here is a generator of ``Steps``, so that a large one holds up no one; one that
must ask others is a coroutine. ``answering`` decodes and encodes around both. Produce, Fetch and DeleteRecords get the
frame itself: the first two have codecs of their own (``cluster.protocol``), and all three may be answered much later.

``api_table`` says which listener serves what. ``find_coordinator`` and ``init_producer_id`` are the shortest of each
kind, ``list_offsets`` and ``leader_and_isr`` the fullest. Five modules are no API: ``named_once``;
``committed_offsets``, which OffsetCommit and TxnOffsetCommit share; ``control_fence`` and ``from_controller``, the
check and the handlers of the three requests that a controller sends; and ``controller_only``, for what any broker takes
and only the controller serves: its layouts are those of ``control``.
"""
