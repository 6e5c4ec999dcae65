"""Warns where the measurement would begin, or began, before routing knows what links cost."""

from orchestrator.spec.experiment import Experiment
from orchestrator.spec.routing import OWN_READER, RoutingSection


def settling_warning(experiment: Experiment) -> str | None:
    """Returns what is wrong with the warm-up, in a sentence; None if it is long enough."""
    needed = _settles_after(experiment.routing)
    if experiment.warmup >= needed or experiment.converge.settled is not None:
        return None
    return (
        f"the warm-up of {experiment.warmup:g} s is shorter than the {needed:g} s that costs of new links "
        f"need to settle with {_how(experiment.routing)}: the measurement begins with costs that are too "
        f"high; use warmup: {needed:g}s or more, or converge: {{settled: 10%}}"
    )


def unsettled_note(experiment: Experiment, settled_s: float | None, routed_s: float) -> str | None:
    """Returns what a reader must know about the costs of a run that was measured; None if they had settled.

    ``settled_s``: how long they took, if that was waited for and they did. ``routed_s``: how long routing had
    run when the measurement began.
    """
    share = experiment.converge.settled
    if share is not None:
        if settled_s is not None:
            return None
        return (
            f"costs had not settled when the query began: until timeouts.converge "
            f"({experiment.timeouts.converge:g} s) some still changed by more than {share:.0%} within 5 s"
        )
    needed = _settles_after(experiment.routing)
    if routed_s >= needed:
        return None
    return (
        "costs were still settling in the measured window: when it began, routing had run for less than the "
        f"{needed:g} s that costs of new links need with {_how(experiment.routing)}; use a longer warmup, or "
        "converge: {settled: 10%}"
    )


def _settles_after(routing: RoutingSection) -> float:
    return routing.settles_after() if routing.reader == OWN_READER else 0.0


def _how(routing: RoutingSection) -> str:
    return f"{routing.protocol.rpartition('/')[2]} ({getattr(routing, 'link_quality', routing.metric)})"
