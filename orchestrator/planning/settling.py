"""Warns where the measurement would begin before routing knows what links cost."""

from orchestrator.spec.experiment import Experiment
from orchestrator.spec.routing import OWN_READER


def settling_warning(experiment: Experiment) -> str | None:
    """Returns what is wrong with the warm-up, in a sentence; None if it is long enough."""
    routing = experiment.routing
    needed = routing.settles_after() if routing.reader == OWN_READER else 0.0
    if experiment.warmup >= needed:
        return None
    how = getattr(routing, "link_quality", routing.metric)
    return (
        f"the warm-up of {experiment.warmup:g} s is shorter than the {needed:g} s that costs of new links "
        f"need to settle with {routing.protocol.rpartition('/')[2]} ({how}): the measurement begins with "
        f"costs that are too high; use warmup: {needed:g}s or more"
    )
