"""The sink of a heat map query: writes the newest map, and the last ones before it, as pictures."""

from collections.abc import Sequence

import cv2
import numpy as np

from node_agent.apps.dataflow.faces.display import QUALITY, picture_files
from node_agent.apps.dataflow.faces.faults import Faults
from node_agent.apps.dataflow.faces.frames import BadFrame
from node_agent.apps.dataflow.faces.heat import HeatMap, decode_heat
from node_agent.apps.dataflow.faces.params import ShowHeatParams
from node_agent.apps.dataflow.faces.pixels import Image, encode_jpeg
from node_agent.apps.dataflow.operators.registry import Context
from node_agent.apps.dataflow.windows.units import Unit

_CELL = 20


class HeatDisplay:
    def __init__(self, params: ShowHeatParams, context: Context) -> None:
        """Raises OSError."""
        self._params = params
        self._context = context
        self._files = picture_files(context, params.keep)
        self._faults = Faults(context)
        self._number = 0

    async def process(self, unit: Unit) -> Sequence[bytes]:
        for payload in unit.payloads():
            try:
                heat = decode_heat(payload)
            except BadFrame as error:
                self._faults.count("bad_frame", error)
                continue
            await self._keep(heat)
        return ()

    async def _keep(self, heat: HeatMap) -> None:
        self._number += 1
        number, files = self._number, self._files
        if files is None:
            return

        def draw_and_write() -> None:
            picture = encode_jpeg(drawn(heat), QUALITY)
            if self._params.keep > 0:
                files.add(number, picture)
            files.show(picture)

        try:
            await self._context.work(draw_and_write, modelled=self._params.cpu)
        except OSError as error:
            self._faults.count("not_written", error)


def drawn(heat: HeatMap) -> Image:
    """Draws places brighter the more often somebody was there."""
    counts = np.array(heat.counts, np.float64).reshape(heat.rows, heat.columns)
    bright = (255 * counts / max(1.0, counts.max())).astype(np.uint8)
    size = heat.columns * _CELL, heat.rows * _CELL
    large = cv2.resize(bright, size, interpolation=cv2.INTER_NEAREST)
    return np.asarray(cv2.applyColorMap(large, cv2.COLORMAP_INFERNO), np.uint8)
