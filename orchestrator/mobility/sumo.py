"""The mobility model ``sumo``: nodes are vehicles in the traffic that SUMO simulates.

Vehicles keep their distance, wait for each other at junctions, overtake and change lanes. Without ``config``
the streets are a grid that fills the area, and each node drives randomly through it for as long as the run
takes. With ``config`` SUMO runs a configuration of the user's, and the nodes are its vehicles in the order in
which they appear.
"""

import random
from dataclasses import dataclass
from functools import lru_cache
from math import ceil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Literal
from xml.parsers import expat

from pydantic import Field, PlainSerializer, PlainValidator, WithJsonSchema

from orchestrator.errors import BadInput
from orchestrator.mobility import sumo_tools
from orchestrator.mobility.fcd import Vehicles, parse_fcd, path_of
from orchestrator.mobility.streets import drive, read_streets, routes_file
from orchestrator.mobility.trace_file import named, read_text
from orchestrator.model.trace import Area, Trace
from orchestrator.spec import area as spec
from orchestrator.spec.file_reference import FileReference, reader
from orchestrator.spec.mobility import MobilityModel
from orchestrator.spec.problems import Finding
from orchestrator.spec.source_file import MOST_BYTES, Unreadable, read_bytes
from orchestrator.spec.units import PositiveLength, PositiveSpeed

LANE_M = 3.2
"""SUMO's width of a lane."""
CURB_M = 2.0
ROOM_M = 15.0
"""What a vehicle needs of a lane so that traffic still flows."""
MOST_LANES = 4
STEP_S = 1.0
_INPUTS = ("net-file", "route-files", "additional-files")


@dataclass(frozen=True)
class SumoConfig(FileReference):
    def contents(self) -> dict[str, bytes]:
        """Returns the configuration and the files that it reads, which lie beside it."""
        found = super().contents()
        for name in _inputs(self.path, found[self.path.name]):
            if Path(name).name != name:
                hint = "put it into the same folder and name it without one"
                raise Unreadable(f"it reads {name[:80]!r}, which lies in another folder", hint)
            found[name] = read_bytes(self.path.parent / name, MOST_BYTES)
        return found


def _inputs(path: Path, content: bytes) -> list[str]:
    named: list[str] = []

    def element(name: str, attributes: dict[str, str]) -> None:
        if name in _INPUTS:
            named.extend(part.strip() for part in attributes.get("value", "").split(",") if part.strip())

    parser = expat.ParserCreate()
    parser.StartElementHandler = element
    try:
        parser.Parse(content, True)
    except expat.ExpatError as error:
        raise Unreadable(f"is not a configuration of SUMO's: {expat.ErrorString(error.code)}", "") from None
    if not named:
        raise Unreadable("names no network and no routes", "it needs <net-file> and <route-files>")
    return named


SumoConfigField = Annotated[
    SumoConfig,
    PlainValidator(reader(SumoConfig, "town.sumocfg")),
    PlainSerializer(lambda file: str(file.path)),
    WithJsonSchema({"type": "string", "description": "A configuration of SUMO's, relative to this file"}),
]


class SumoTraffic(MobilityModel):
    """Nodes are vehicles in a grid of streets, or in a traffic simulation of your own."""

    model: Literal["sumo"]
    block: PositiveLength = Field(default=200.0, description="The length of a street between two junctions")
    lanes: int = Field(default=2, ge=1, le=MOST_LANES, description="In each direction")
    speed: PositiveSpeed = Field(default=13.9, description="The speed limit", examples=["50 km/h"])
    config: SumoConfigField | None = Field(default=None, examples=["town.sumocfg"])

    def findings(self) -> list[Finding]:
        given = self.model_fields_set & {"block", "lanes", "speed"}
        if self.config is not None and given:
            text = "has its own streets"
            return [Finding(("config",), text, f"remove {' and '.join(sorted(given))}")]
        return []

    def findings_for(self, nodes: tuple[str, ...], area: spec.Area) -> list[Finding]:
        try:
            sumo_tools.find("sumo")
        except sumo_tools.NoSumo as error:
            return [Finding(("mobility", "model"), error.message, sumo_tools.INSTALL)]
        if self.config is not None:
            return []
        columns, rows = self._junctions(area)
        if min(columns, rows) < 2:
            least = self.block + 2 * self._margin
            text = f"an area of {area[0]:g} m × {area[1]:g} m has no room for a block of {self.block:g} m"
            return [Finding(("mobility", "block"), text, f"make the area at least {least:g} m wide and high")]
        streets = columns * (rows - 1) + rows * (columns - 1)
        room = int(2 * self.lanes * streets * self.block / ROOM_M)
        if len(nodes) > room:
            text = f"the streets have room for about {room} vehicles, and there are {len(nodes)} nodes"
            return [Finding(("mobility", "model"), text, "use more lanes or a larger area")]
        return []

    def trace(self, nodes: tuple[str, ...], area: spec.Area, seed: int, until: float) -> Trace:
        return Trace(
            {node: path_of(samples) for node, samples in self.drives(nodes, area, seed, until).items()}
        )

    def drives(self, nodes: tuple[str, ...], area: spec.Area, seed: int, until: float) -> Vehicles:
        """Returns the vehicles with speeds and lanes. Raises BadInput if SUMO fails or has too few."""
        return _simulated(self, nodes, (area[0], area[1]), seed, until)

    def summary(self) -> str:
        if self.config is not None:
            return f"SUMO's traffic by {self.config.path.name}"
        return f"SUMO's traffic, blocks of {self.block:g} m, {self.lanes} lanes, up to {self.speed:g} m/s"

    @property
    def _margin(self) -> float:
        return self.lanes * LANE_M + CURB_M

    def _junctions(self, area: Area) -> tuple[int, int]:
        """Returns how many there are from left to right and from top to bottom."""
        columns, rows = (int((side - 2 * self._margin) // self.block) + 1 for side in area)
        return columns, rows

    def simulate(self, folder: Path, nodes: tuple[str, ...], area: Area, seed: int, until: float) -> Vehicles:
        """Writes SUMO's files to ``folder``."""
        shift = (0.0, 0.0)
        if self.config is not None:
            inputs = ["--configuration-file", str(self.config.path)]
        else:
            columns, rows = self._junctions(area)
            left, top = (
                (side - (n - 1) * self.block) / 2 for side, n in zip(area, (columns, rows), strict=True)
            )
            shift = (left, top)
            self._build(folder, columns, rows)
            streets = read_streets(folder / "streets.net.xml")
            count = ceil(until * self.speed / self.block) + 2
            ways = {node: drive(streets, count, random.Random(f"mobility/{seed}/{node}")) for node in nodes}
            (folder / "drives.rou.xml").write_text(routes_file(ways))
            inputs = ["--net-file", "streets.net.xml", "--route-files", "drives.rou.xml"]
            inputs += ["--step-length", f"{STEP_S:g}", "--time-to-teleport", "-1"]
        output = folder / "vehicles.fcd.xml"
        options = ["--begin", "0", "--end", f"{ceil(until) + 1}", "--seed", f"{seed % 2**31}"]
        options += [
            "--fcd-output",
            str(output),
            "--no-step-log",
            "--no-warnings",
            "--xml-validation",
            "never",
        ]
        sumo_tools.run("sumo", [*inputs, *options], folder)
        return parse_fcd(read_text(output), "SUMO's output", area, shift)

    def _build(self, folder: Path, columns: int, rows: int) -> None:
        grid = ["--grid", "--grid.x-number", f"{columns}", "--grid.y-number", f"{rows}"]
        grid += ["--grid.length", f"{self.block:g}", "--default.lanenumber", f"{self.lanes}"]
        options = [
            "--default.speed",
            f"{self.speed:g}",
            "--no-turnarounds",
            "--output-file",
            "streets.net.xml",
        ]
        sumo_tools.run("netgenerate", [*grid, *options], folder)


# The cells of a sweep mostly have the same vehicles.
@lru_cache(maxsize=4)
def _simulated(model: SumoTraffic, nodes: tuple[str, ...], area: Area, seed: int, until: float) -> Vehicles:
    with TemporaryDirectory(prefix="rove-sumo-") as folder:
        found = model.simulate(Path(folder), nodes, area, seed, until)
    if model.config is None:
        late = [node for node in nodes if node not in found]
        if late:
            raise BadInput(f"mobility model sumo: the streets are too full for {late[0]}; use a larger area")
        return {node: found[node] for node in nodes}
    trace = named([path_of(samples) for samples in found.values()], nodes, model.config.path.name)
    return dict(zip(trace.paths, found.values(), strict=False))
