"""Makes the verifier's settings of an experiment from the options that declare an effect on the verdict.

Does not own which options these are (``chaos.experiment.asked``).
"""

from __future__ import annotations

from typing import Any

from chaos.experiment.asked import Asked
from chaos.experiment.declaration import Decides, declared_fields
from chaos.experiment.experiment import Experiment
from verifier.evidence.run_model import RunSettings


def decided() -> dict[str, tuple[str, Decides | None]]:
    """Field of the verifier's settings -> (the field of ``Asked`` that decides it, how).

    Raises ValueError if two options decide one field.
    """
    found: dict[str, tuple[str, Decides | None]] = {}
    for each in declared_fields(Asked):
        for name, decides in each.declared.verdict.items():
            if name in found:
                raise ValueError(f"{name} is decided by {found[name][0]} and by {each.name}")
            found[name] = (each.name, decides)
    return found


def settings_of(experiment: Experiment) -> RunSettings:
    """The settings on which the verdict on this experiment depends."""
    values: dict[str, Any] = {
        name: getattr(experiment.asked, field) if decides is None else decides(experiment)
        for name, (field, decides) in decided().items()
    }
    return RunSettings(**values)
