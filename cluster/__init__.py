"""cluster: the system under test, brokers that speak Kafka's protocol and store Kafka's files, and their client.

Imports nothing else of ours. docs/design.md "Rooms" lists its parts, and which of them are pure.
"""
