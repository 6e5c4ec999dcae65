"""Tries users' extensions before a run begins, so that errors name the user's file and line."""

from orchestrator.errors import BadInput
from orchestrator.mobility.generate import generate_trace
from orchestrator.spec.experiment import Experiment
from orchestrator.spec.mobility import MOBILITY_MODELS
from orchestrator.spec.pathloss import PATH_LOSS_MODELS
from orchestrator.spec.problems import Finding
from orchestrator.spec.radio import Radio80211b


def extension_findings(experiment: Experiment) -> list[Finding]:
    return _mobility_findings(experiment) + _path_loss_findings(experiment)


def _mobility_findings(experiment: Experiment) -> list[Finding]:
    if MOBILITY_MODELS.is_builtin(experiment.topology.mobility.model):
        return []
    try:
        generate_trace(experiment.topology, experiment.seed, experiment.warmup + experiment.duration)
    except BadInput as error:
        return [Finding(("topology", "mobility", "model"), str(error))]
    return []


def _path_loss_findings(experiment: Experiment) -> list[Finding]:
    radio, nodes = experiment.topology.radio, experiment.topology.node_names
    if not isinstance(radio, Radio80211b) or PATH_LOSS_MODELS.is_builtin(radio.pathloss.model):
        return []
    import numpy as np

    from orchestrator.radio.path_loss.build import path_loss_of

    try:
        path_loss_of(radio.pathloss, nodes).loss_db(
            np.full((len(nodes), len(nodes)), max(experiment.topology.area))
        )
    except BadInput as error:
        return [Finding(("topology", "radio", "pathloss", "model"), str(error))]
    return []
