"""What an agent is given to detect events: its part of the plans, and the events that occur on its node."""

from typing import Annotated

from msgspec import Meta, Struct

from node_agent.apps.comet.conjuncts import ConjunctError
from node_agent.apps.comet.grammar import PatternError
from node_agent.apps.comet.junction import conjunct_of
from node_agent.apps.comet.node_plan import NodePlan

Seconds = Annotated[float, Meta(ge=0, le=30 * 86400)]


class OwnEvent(Struct, frozen=True):
    """An event that occurs on this node: at random with a mean rate per second, or at listed times.

    ``times``: starts and ends in seconds after the sources open, in order of the ends; then the rate only
    served to plan. ``begin``, ``end``: between which seconds it occurs at random. ``seed``: of random times.
    """

    name: str
    rate: Annotated[float, Meta(gt=0, le=1e6)]
    length: Seconds = 0.0
    begin: Seconds = 0.0
    end: Seconds | None = None
    seed: str = ""
    times: tuple[tuple[Seconds, Seconds], ...] | None = None


class DetectConfig(Struct, frozen=True):
    plan: NodePlan
    events: tuple[OwnEvent, ...] = ()


def nodes_of(config: DetectConfig) -> tuple[str, ...]:
    return (config.plan.node, *config.plan.neighbours)


def problems(config: DetectConfig, node: str) -> list[str]:
    """Why a node cannot run this; empty if it can."""
    found = [] if config.plan.node == node else [f"the plan is for {config.plan.node}"]
    tasks = {task.number for task in config.plan.tasks}
    for stream in config.plan.streams:
        once = len(set(stream.path)) == len(stream.path)
        if config.plan.node not in stream.path or not once or not stream.events or stream.task not in tasks:
            found.append(f"stream {stream.number} cannot go over this node")
    numbers = {stream.number for stream in config.plan.streams}
    for junction in config.plan.junctions:
        asked = {each for step in junction.steps for each in step} | set(junction.absent)
        if not asked <= numbers or (junction.out is not None and junction.out not in numbers):
            found.append(f"task {junction.task} names a stream that does not come here")
    for task in config.plan.tasks:
        try:
            conjunct_of(task.pattern)
        except (PatternError, ConjunctError, ValueError) as error:
            found.append(f"{task.request}: {error}")
    return found
