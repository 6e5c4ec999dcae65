"""What the radio process is told: who is on the air, where they are over time, and which radio they have."""

from collections.abc import Mapping
from math import isfinite
from pathlib import Path

from msgspec import Struct

from orchestrator.backends.netns.layout import Layout
from orchestrator.backends.netns.marks import Mark
from orchestrator.contacts.plan import ContactLink, ContactPlan
from orchestrator.errors import BadInput
from orchestrator.model.trace import Trace, Waypoint
from orchestrator.radio.choice import RadioChoice
from orchestrator.radio.settings import Mac


class RadioConfig(Struct, frozen=True):
    run_id: str
    directory: str
    """The run's; ground truth and lateness go to ``radio/`` in it."""
    addresses: dict[str, str]
    """Each node's hardware address. Their order numbers the nodes."""
    trace: dict[str, tuple[Waypoint, ...]]
    radio: RadioChoice = RadioChoice()
    mac: Mac = Mac()
    seed: int = 1
    origin_ns: int | None = None
    """Model time 0 on this machine's monotonic clock; None: the moment the air is up."""
    waits: bool = False
    """Nodes stand at the beginning of their paths until they are told to move; else they move from time 0."""
    contacts: ContactPlan | None = None
    """Who can talk when, in place of the radio; of ``mac`` only the length of the queue matters then."""
    wires: tuple[ContactLink, ...] = ()
    """Cables beside the radio; not with contacts."""
    stations: str | None = None
    """The folder for the nodes' station tables; None: nobody reads them."""

    @property
    def nodes(self) -> tuple[str, ...]:
        return tuple(self.addresses)

    @property
    def place(self) -> Path:
        return Path(self.directory) / "radio"

    @property
    def mark(self) -> Mark:
        return Mark(self.run_id, Path(self.directory))

    def check(self) -> None:
        """Everything that can be wrong with it, before anything is started."""
        self.radio.radio()
        if not self.addresses:
            raise BadInput("the air needs at least one node")
        for node, address in self.addresses.items():
            hardware_address(address)
            path = self.trace.get(node)
            if not path:
                raise BadInput(f"the mobility trace has no path for {node}")
            if not all(map(isfinite, (number for waypoint in path for number in waypoint))):
                raise BadInput(f"{node}: every waypoint must be three finite numbers")
        if self.contacts is not None and self.contacts.nodes != self.nodes:
            raise BadInput("the contacts are those of other nodes")
        if not {end for wire in self.wires for end in (wire.a, wire.b)} <= self.addresses.keys():
            raise BadInput("a wire ends at another node")
        if len({hardware_address(address) for address in self.addresses.values()}) < len(self.addresses):
            raise BadInput("two nodes have the same hardware address")


def radio_config(
    mark: Mark,
    layout: Layout,
    trace: Trace,
    radio: RadioChoice,
    mac: Mac,
    seed: int,
    stations: Path | None = None,
    waits: bool = False,
    contacts: ContactPlan | None = None,
    wires: tuple[ContactLink, ...] = (),
) -> RadioConfig:
    """The air for a network that was built from ``layout``."""
    paths: Mapping[str, tuple[Waypoint, ...]] = trace.paths
    return RadioConfig(
        run_id=mark.run_id,
        directory=str(mark.directory),
        addresses={node.name: node.mac for node in layout.nodes},
        trace={node.name: paths[node.name] for node in layout.nodes if node.name in paths},
        radio=radio,
        mac=mac,
        seed=seed,
        stations=None if stations is None else str(stations),
        waits=waits,
        contacts=contacts,
        wires=wires,
    )


def hardware_address(text: str) -> bytes:
    try:
        address = bytes.fromhex(text.replace(":", ""))
    except ValueError:
        address = b""
    if len(address) != 6 or address[0] & 1:
        raise BadInput(f"{text!r} is not a hardware address of a single node")
    return address
