"""One module per API, of its name: from its request to its answer.

A module is three steps, in this order, and owns all that is peculiar to the API's messages:

1. ``handle(services, request, exchange)`` reads the message and makes values of it. What a version means is known here
   and nowhere else; so is Kafka's rule for what is named twice (``named_once``).
2. It has them carried out. What executes lies in the room that owns the state (``replicas``, ``control``,
   ``cluster.log``, ``settings``), takes values and returns values. What it must refuse it answers with the code
   (``ErrorCode``) or raises as ``RequestRefused``. It knows no message, no version and no connection, so it is tested
   without any (``tests/architecture/test_messages.py``). ``MetadataCache`` alone reads its message, UpdateMetadata.
3. It lays the answer out, in the message class of the API.

An answer that is made of what is known here is a generator of ``Steps``, so that a large one holds up no one; one that
must ask others is a coroutine. ``answering`` decodes and encodes around both. Produce, Fetch and DeleteRecords get the
frame itself: the first two have codecs of their own (``cluster.protocol``), and all three may be answered much later.

``api_table`` says which listener serves what. ``find_coordinator`` and ``init_producer_id`` are the shortest of each
kind, ``list_offsets`` and ``leader_and_isr`` the fullest. What any broker takes and only the controller does
(``create_topics``, ``alter_partition`` and others) goes to ``control.apis``. Four modules are no API: ``named_once``;
``committed_offsets``, which OffsetCommit and TxnOffsetCommit share; ``control_fence`` and ``from_controller``, the
check and the handlers of the three requests that a controller sends. The clients within a broker make their own
messages: ``control.links``, ``replicas.fetcher`` and ``transactions.marker_links``.
"""
