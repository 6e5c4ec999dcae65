"""The radio process: `python -m orchestrator.backends.netns.radio CONFIG DESCRIPTOR,DESCRIPTOR,…`

The descriptors are the nodes' radio ends, in the nodes' order. It reads commands from standard input, and
writes answers and reports to standard output. It consists of two processes: the loop carries frames and dies
with its parent, the helper. The helper ends when its input does, so nothing outlives the owner.
"""

import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NoReturn

import msgspec

from orchestrator.backends.netns import syscalls
from orchestrator.backends.netns.radio import shared
from orchestrator.backends.netns.radio.config import RadioConfig, hardware_address
from orchestrator.backends.netns.radio.helper import RadioHelper
from orchestrator.backends.netns.radio.loop import TICK_NS, AirLoop
from orchestrator.backends.netns.radio.models import AirModel, Seen, air_model
from orchestrator.backends.netns.radio.priority import become_realtime
from orchestrator.backends.netns.radio.shared import Shared
from orchestrator.errors import BadInput
from orchestrator.model.trace import Trace


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the owner decides when to stop
    config = msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=RadioConfig)
    config.check()
    descriptors = [int(number) for number in sys.argv[2].split(",")]
    origin = time.monotonic_ns() if config.origin_ns is None else config.origin_ns
    first_tick = (time.monotonic_ns() - origin) // TICK_NS
    if first_tick < 0:
        raise BadInput("model time 0 lies in the future")
    trace = Trace(config.trace)
    now = 0.0 if config.waits else first_tick * TICK_NS / 1e9
    positions = {node: trace.position(node, now) for node in config.nodes}
    model = air_model(config)
    first = model.look(positions, now)
    memory = Shared(len(config.nodes))
    loop = os.fork()
    if not loop:
        _carry_frames(config, memory, model, first, descriptors, origin, first_tick)
    for descriptor in descriptors:
        os.close(descriptor)
    with suppress(BrokenPipeError):  # the owner is gone
        RadioHelper(config, model, memory, first, first_tick, origin, loop).serve()


def _carry_frames(
    config: RadioConfig,
    memory: Shared,
    model: AirModel,
    first: Seen,
    descriptors: Sequence[int],
    origin_ns: int,
    first_tick: int,
) -> NoReturn:
    try:
        syscalls.die_with_parent(signal.SIGKILL)
        nowhere = os.open(os.devnull, os.O_RDWR)
        os.dup2(nowhere, 0)
        os.dup2(nowhere, 1)
        memory.cells[shared.FIFO] = become_realtime()
        rng = random.Random(f"medium/{config.seed}")
        addresses = [hardware_address(address) for address in config.addresses.values()]
        AirLoop(
            partial(model.medium, first, rng),
            descriptors,
            addresses,
            memory,
            origin_ns,
            first_tick,
            station_tables=config.stations is not None,
        ).run()
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


if __name__ == "__main__":
    main()
