"""``gapless dump``: a file or directory of a broker, or a file of a run, readable.

``command`` is the command, ``files`` knows which reader a name asks for, ``segments`` reads what belongs to a log,
``replica_agreement`` compares the files of a log with each other.
"""

from chaos.commands.dump.command import register

__all__ = ["register"]
