"""An experiment as files that need nothing outside their directory: spec.yaml, and the files it names."""

from orchestrator.planning.application import application
from orchestrator.spec.application import APPS
from orchestrator.spec.dump import to_yaml
from orchestrator.spec.experiment import Experiment
from orchestrator.spec.pathloss import LossTrace, Matrix
from orchestrator.spec.radio import Radio80211b
from orchestrator.spec.recorded import RecordedTrace

SPEC = "spec.yaml"
TRACES = "mobility"
LOSSES = "pathloss"


def bundle(experiment: Experiment) -> dict[str, bytes]:
    """Contents by path within the directory; spec.yaml comes last and loads to the same experiment."""
    document = experiment.resolved()
    files: dict[str, bytes] = {}
    mobility = experiment.topology.mobility
    if isinstance(mobility, RecordedTrace):
        files = {f"{TRACES}/{name}": content for name, content in mobility.file.contents().items()}
        document["topology"]["mobility"]["file"] = f"{TRACES}/{mobility.file.path.name}"
    radio = experiment.topology.radio
    losses = radio.pathloss if isinstance(radio, Radio80211b) else None
    if isinstance(losses, Matrix | LossTrace) and losses.file is not None:
        files |= {f"{LOSSES}/{name}": content for name, content in losses.file.contents().items()}
        document["topology"]["radio"]["pathloss"]["file"] = f"{LOSSES}/{losses.file.path.name}"
    for name, entry in experiment.entries().items():
        section = document[APPS][name] if entry.prefix else document
        files |= application(entry.kind).bundled(entry, section)
    return {**files, SPEC: to_yaml(document).encode()}
