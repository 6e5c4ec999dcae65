"""Runs an operator or a sink that takes items one by one, and hands on finished items together."""

import asyncio
from collections.abc import Callable, Iterable

from node_agent.apps.dataflow.delivery.tuple_recorder import TupleRecorder
from node_agent.apps.dataflow.model.query import OperatorSpec
from node_agent.apps.dataflow.model.tuples import StreamTuple
from node_agent.apps.dataflow.operators.processing import GivenUp, process_again, sendable
from node_agent.apps.dataflow.operators.registry import Context, Operator, Role
from node_agent.apps.dataflow.windows.batcher import Batcher
from node_agent.apps.dataflow.windows.each import unit_of
from node_agent.apps.dataflow.windows.units import Unit

Payloads = tuple[bytes, ...]
HandOn = Callable[[list[StreamTuple], list[Payloads]], None]
"""Called with finished items and the payloads of each result; the same object if input and result are
equal.
"""


class OneByOne:
    def __init__(
        self,
        operator: Operator,
        spec: OperatorSpec,
        role: Role,
        context: Context,
        recorder: TupleRecorder,
        hand_on: HandOn,
    ) -> None:
        self._operator = operator
        self._spec = spec
        self._role = role
        self._context = context
        self._recorder = recorder
        self._hand_on = hand_on
        self._finished = Batcher[tuple[StreamTuple, Payloads]](self._finish)

    async def work(self, inputs: Iterable[tuple[str, StreamTuple]]) -> None:
        """Processes ``inputs`` one after the other; each comes with the operator that sent it."""
        process, finished = self._operator.process, self._finished
        finished.begin()
        for upstream, item in inputs:
            payloads = item.payloads
            if payloads:
                unit = unit_of(upstream, item)
                try:
                    made = tuple(await process(unit))
                    if not made:
                        payloads = made
                    elif made != payloads:
                        payloads = sendable(made)
                    elif len(payloads) > 1:
                        sendable(payloads)
                except Exception as error:
                    await self._go_on_after(error, unit, item)
                    continue
            if finished.add((item, payloads)):
                if finished.alone:
                    await asyncio.sleep(0)
                finished.begin()
        finished.flush()

    async def _go_on_after(self, error: Exception, unit: Unit, item: StreamTuple) -> None:
        """Retries or gives up, as the operator's policy says."""
        try:
            made = await process_again(self._operator, unit, self._spec, self._context.sleep, error)
        except GivenUp as reason:
            self._finished.flush()
            self._recorder.dropped(item, f"dead_letter:{reason}")
            self._hand_on([item], [()])
            self._finished.begin()
        else:
            self._finished.add((item, made))

    def _finish(self, finished: list[tuple[StreamTuple, Payloads]], took: float) -> None:
        items = [item for item, _ in finished]
        if self._role == "operator":
            self._recorder.processed(items, round(took * 1e9))
        else:
            self._recorder.reached(items)
        self._hand_on(items, [payloads for _, payloads in finished])
