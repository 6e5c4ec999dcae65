"""Processes one unit with one operator: whether the operator is called, and what happens if it fails."""

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
    """The operator failed, and its policy is to continue without the result."""

    def __init__(self, error: Exception) -> None:
        super().__init__(f"{type(error).__name__}: {error}"[:_LONGEST_REASON])


class CannotBeSent(Exception):
    """What an operator returned, or a source captured, is larger than a frame between replicas can be."""


def sendable(payloads: tuple[bytes, ...]) -> tuple[bytes, ...]:
    """Returns ``payloads``. Raises CannotBeSent: it must fail here, and not on the connection to the next
    replica.
    """
    if (why := unfit(payloads)) is not None:
        raise CannotBeSent(why)
    return payloads


async def process(
    operator: Operator, unit: Unit, spec: OperatorSpec, sleep: Callable[[float], Awaitable[None]]
) -> tuple[bytes, ...]:
    """Returns the payloads of the result. Raises GivenUp, or the operator's error if its policy is to stop.

    A result that cannot be sent is given up under every policy: it may be made of items that others sent.
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
    """Whether the operator is called: not for an end or holes only; a join on τ needs a payload of every
    input.
    """
    if not unit.payloads():
        return False
    if not isinstance(spec.takes, SameTau):
        return True
    return all(any(item.payloads for item in unit.inputs.get(name, ())) for name in spec.after)
