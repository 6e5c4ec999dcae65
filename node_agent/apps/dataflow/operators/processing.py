"""One unit through one operator: whether it is called at all, and what happens if it fails."""

from collections.abc import Awaitable, Callable

from node_agent.apps.dataflow.model.query import OperatorSpec
from node_agent.apps.dataflow.model.units import SameTau
from node_agent.apps.dataflow.operators.registry import Operator
from node_agent.apps.dataflow.windows.units import Unit
from node_agent.apps.dataflow.wire.packing import unfit

RETRY_PAUSE = 0.1
LONGEST_RETRY_PAUSE = 10.0
_LONGEST_REASON = 200


class GivenUp(Exception):
    """The operator failed, and its policy is to go on without the result."""

    def __init__(self, error: Exception) -> None:
        super().__init__(f"{type(error).__name__}: {error}"[:_LONGEST_REASON])


class CannotBeSent(Exception):
    """What an operator returned, or a source captured, is more than a frame between replicas carries."""


def sendable(payloads: tuple[bytes, ...]) -> tuple[bytes, ...]:
    """The same. Raises CannotBeSent: here, and not where the link to the next replica would choke on it."""
    if (why := unfit(payloads)) is not None:
        raise CannotBeSent(why)
    return payloads


async def process(
    operator: Operator, unit: Unit, spec: OperatorSpec, sleep: Callable[[float], Awaitable[None]]
) -> tuple[bytes, ...]:
    """The payloads of the result. Raises GivenUp, or what the operator raised where that is to stop it.

    A result that cannot be sent is given up under every policy: items that others have sent may add up to it.
    """
    if not has_work(unit, spec):
        return ()
    try:
        return sendable(tuple(await operator.process(unit)))
    except Exception as error:
        return await process_again(operator, unit, spec, sleep, error)


async def process_again(
    operator: Operator,
    unit: Unit,
    spec: OperatorSpec,
    sleep: Callable[[float], Awaitable[None]],
    error: Exception,
) -> tuple[bytes, ...]:
    """The same after the operator has failed once, with ``error``."""
    pause = RETRY_PAUSE
    for _ in range(spec.on_error.retries):
        await sleep(pause)
        pause = min(2 * pause, LONGEST_RETRY_PAUSE)
        try:
            return sendable(tuple(await operator.process(unit)))
        except Exception as again:
            error = again
    if spec.on_error.then == "stop" and not isinstance(error, CannotBeSent):
        raise error
    raise GivenUp(error) from error


def has_work(unit: Unit, spec: OperatorSpec) -> bool:
    """Not for an end or holes only; a join on τ needs something of every input."""
    if not unit.payloads():
        return False
    if not isinstance(spec.takes, SameTau):
        return True
    return all(any(item.payloads for item in unit.inputs.get(name, ())) for name in spec.after)
