"""Runs the handlers of a listener's streams: one task each, all cancelled when the listener closes."""

import asyncio

from node_agent.ports import OnStream, PortError, Stream


class Handlers:
    """The running handlers of one listener. A dict, not a set: they are cancelled in the order they came."""

    def __init__(self, on_stream: OnStream) -> None:
        self._on_stream = on_stream
        self._running: dict[Stream, asyncio.Task[None]] = {}
        self._closed = False

    def start(self, stream: Stream) -> None:
        if self._closed:
            stream.abort()
        else:
            self._running[stream] = asyncio.get_running_loop().create_task(self._handle(stream))

    def close(self) -> None:
        self._closed = True
        this = _current_task()
        for stream, task in self._running.items():
            if task is not this:
                task.cancel()
                # Abort here, too: a task that is cancelled before its first step runs no clean-up.
                stream.abort()
        self._running.clear()

    async def _handle(self, stream: Stream) -> None:
        try:
            await self._on_stream(stream)
            stream.close()
        except PortError:
            stream.abort()
        except Exception as error:
            stream.abort()
            message = f"the handler of the stream from {stream.peer} failed"
            asyncio.get_running_loop().call_exception_handler({"message": message, "exception": error})
        finally:
            self._running.pop(stream, None)


def _current_task() -> "asyncio.Task[object] | None":
    try:
        return asyncio.current_task()
    except RuntimeError:  # a simulator may take a node down between two steps of the loop
        return None
