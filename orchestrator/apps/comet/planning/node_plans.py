"""What plans ask of each node: the form in which agents get them."""

from collections.abc import Mapping, Sequence

from node_agent.apps.comet.node_plan import JunctionPlan, NodePlan, StoreLimits, Stream, TaskPlan
from node_agent.apps.comet.patterns import printed
from orchestrator.apps.comet.planning.ced_tree import Edge
from orchestrator.apps.comet.planning.estimator import Plan


def node_plans(
    plans: Sequence[Plan],
    requests: Sequence[str],
    limits: StoreLimits | None = None,
    priorities: Mapping[str, int] | None = None,
) -> dict[str, NodePlan]:
    """``requests``: for each plan, the name of the request that it is an alternative of.

    ``priorities``: of requests; 0 where nothing is said.
    """
    tasks: list[TaskPlan] = []
    streams: list[Stream] = []
    junctions: dict[str, list[JunctionPlan]] = {}
    for task, (plan, request) in enumerate(zip(plans, requests, strict=True)):
        pattern = plan.tree.task.conjunct.pattern
        assert pattern is not None, "conjuncts of patterns have one"
        tasks.append(TaskPlan(task, request, printed(pattern), plan.tree.task.sink))
        priority = (priorities or {}).get(request, 0)
        outs: dict[str, int] = {}
        for junction in plan.tree.junctions:
            steps = plan.steps[junction.node]
            numbers: dict[str, int] = {}
            for edge in junction.inputs:
                stream = _stream(len(streams), task, edge, junction.node, edge.name not in steps[0], priority)
                numbers[edge.name] = stream.number
                streams.append(stream)
                if edge.child is not None:
                    outs[edge.child.node] = stream.number
            asked = JunctionPlan(task, tuple(tuple(numbers[name] for name in step) for step in steps))
            junctions.setdefault(junction.node, []).append(asked)
        absent = []
        for edge in plan.tree.absent:
            pulled = edge.name in plan.pulled_absent
            stream = _stream(len(streams), task, edge, plan.tree.task.sink, pulled, priority, absent=True)
            streams.append(stream)
            absent.append(stream.number)
        for node, listed in junctions.items():
            own = listed[-1]
            if own.task == task:
                is_sink = node == plan.tree.root.node
                watched = tuple(absent) if is_sink else ()
                listed[-1] = JunctionPlan(task, own.steps, outs.get(node), watched)
    nodes = sorted({node for stream in streams for node in stream.path})
    return {
        node: NodePlan(
            node,
            tuple(tasks),
            tuple(stream for stream in streams if node in stream.path),
            tuple(junctions.get(node, ())),
            limits or StoreLimits(),
        )
        for node in nodes
    }


def _stream(
    number: int, task: int, edge: Edge, end: str, pulled: bool, priority: int, *, absent: bool = False
) -> Stream:
    path = (*(hop.lower for hop in edge.hops), end)
    return Stream(number, task, tuple(sorted(edge.events)), path, pulled, absent, priority)
