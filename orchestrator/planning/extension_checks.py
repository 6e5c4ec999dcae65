"""Tries the extensions of others before a run begins, so that what fails names the user's file and line."""

from orchestrator.errors import BadInput
from orchestrator.mobility.generate import generate_trace
from orchestrator.spec.experiment import Experiment
from orchestrator.spec.mobility import MOBILITY_MODELS
from orchestrator.spec.problems import Finding


def extension_findings(experiment: Experiment) -> list[Finding]:
    return _mobility_findings(experiment)


def _mobility_findings(experiment: Experiment) -> list[Finding]:
    if MOBILITY_MODELS.is_builtin(experiment.topology.mobility.model):
        return []
    try:
        generate_trace(experiment.topology, experiment.seed, experiment.warmup + experiment.duration)
    except BadInput as error:
        return [Finding(("topology", "mobility", "model"), str(error))]
    return []
