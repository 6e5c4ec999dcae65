"""Counts where people were: faces in a grid, and grids added up on their way to the sink."""

from collections.abc import Iterable, Sequence

import msgspec
from msgspec import Struct

from node_agent.apps.dataflow.faces.faults import Faults
from node_agent.apps.dataflow.faces.frames import BadFrame, Frame, decode_frame
from node_agent.apps.dataflow.faces.params import Cells, HeatMapParams
from node_agent.apps.dataflow.operators.registry import Context
from node_agent.apps.dataflow.windows.units import Unit
from node_agent.apps.dataflow.wire.packing import MAX_PAYLOAD
from node_agent.model.checked import Checked, Refused, Whole


class HeatMap(Struct, frozen=True, array_like=True, tag="heat"):
    """``counts`` row by row; ``frames``: in how many pictures."""

    columns: Cells
    rows: Cells
    counts: tuple[Whole, ...]
    frames: Whole


_encoder = msgspec.msgpack.Encoder()
_heats: Checked[HeatMap] = Checked(HeatMap, MAX_PAYLOAD, "msgpack")


def encode_heat(heat: HeatMap) -> bytes:
    return _encoder.encode(heat)


def decode_heat(payload: bytes) -> HeatMap:
    """Raises BadFrame."""
    try:
        heat = _heats.decode(payload)
    except Refused as error:
        raise BadFrame(f"no heat map: {error}") from error
    if len(heat.counts) != heat.columns * heat.rows:
        raise BadFrame(f"a heat map of {heat.columns}×{heat.rows} with {len(heat.counts)} counts")
    return heat


def heat_of(frame: Frame, columns: int, rows: int) -> HeatMap:
    """Counts each face by its middle; one outside the picture counts at its border."""
    counts = [0] * (columns * rows)
    for face in frame.faces:
        x = (face.box.x + face.box.width / 2) / frame.width
        y = (face.box.y + face.box.height / 2) / frame.height
        column = max(0, min(columns - 1, int(x * columns)))
        row = max(0, min(rows - 1, int(y * rows)))
        counts[row * columns + column] += 1
    return HeatMap(columns, rows, tuple(counts), 1)


def added(maps: Iterable[HeatMap], columns: int, rows: int) -> HeatMap:
    """Returns the sum. Raises BadFrame if one has another grid."""
    counts, frames = [0] * (columns * rows), 0
    for heat in maps:
        if (heat.columns, heat.rows) != (columns, rows):
            raise BadFrame(f"a heat map of {heat.columns}×{heat.rows}, not {columns}×{rows}")
        counts = [one + other for one, other in zip(counts, heat.counts, strict=True)]
        frames += heat.frames
    return HeatMap(columns, rows, tuple(counts), frames)


class HeatMapper:
    """Adds up a window of frames and heat maps to one heat map."""

    def __init__(self, params: HeatMapParams, context: Context) -> None:
        self._params = params
        self._faults = Faults(context)

    async def process(self, unit: Unit) -> Sequence[bytes]:
        columns, rows = self._params.columns, self._params.rows
        heat = added((), columns, rows)
        for payload in unit.payloads():
            try:
                heat = added((heat, self._read(payload)), columns, rows)
            except BadFrame as error:
                self._faults.count("bad_frame", error)
        return (encode_heat(heat),)

    def _read(self, payload: bytes) -> HeatMap:
        try:
            return decode_heat(payload)
        except BadFrame:
            return heat_of(decode_frame(payload), self._params.columns, self._params.rows)
