"""Lists the link-state readers by name, and opens the one that an agent is configured to use."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from node_agent.extensions import ExtensionError, Registry
from node_agent.extensions.failures import Failures
from node_agent.extensions.files import short_name
from node_agent.extensions.guard import Failed, Foreign, guarded, guarded_await
from node_agent.linkstate.base import LinkState
from node_agent.linkstate.config import LinkStateConfig
from node_agent.linkstate.guarded import WHAT, GuardedReader, check_reader
from node_agent.linkstate.guarded_port import GuardedPort
from node_agent.linkstate.measured import MeasuredLinkState
from node_agent.linkstate.pushed import PushedLinkState
from node_agent.linkstate.source import Downstream, LinkStateReader, Source
from node_agent.model.refusals import Refusals
from node_agent.ports import Port

OPENING_S = 1.0
"""Processor time that a foreign reader may take to open."""


def checked_reader(name: str, value: object) -> LinkStateReader:
    """Takes a LinkStateReader, or a class or function that makes a reader of a Source. Raises
    ExtensionError.
    """
    if isinstance(value, LinkStateReader):
        return value
    if not callable(value):
        raise ExtensionError(f"{name} is {type(value).__name__}, not a class with a method read()")
    if isinstance(value, type) and not (hasattr(value, "read") or hasattr(value, "__aenter__")):
        raise ExtensionError(f"{name} has no method read()")
    metrics = getattr(value, "metrics", ())
    if not isinstance(metrics, tuple) or not all(isinstance(metric, str) for metric in metrics):
        raise ExtensionError(f"metrics of {name} is not a tuple of words")
    return LinkStateReader((value.__doc__ or "").strip().partition("\n")[0], metrics, value)


LINK_STATE_READERS: Registry[LinkStateReader] = Registry(
    WHAT,
    "rove.link_state_readers",
    checked_reader,
    {
        "olsrd_jsoninfo": "node_agent.linkstate.olsrd_jsoninfo:READER",
        "olsrd_txtinfo": "node_agent.linkstate.olsrd_txtinfo:READER",
        "netjson": "node_agent.linkstate.netjson:READER",
        "oonf": "node_agent.linkstate.oonf:TELNET_READER",
        "oonf_http": "node_agent.linkstate.oonf:HTTP_READER",
        "babeld": "node_agent.linkstate.babeld:READER",
        "aodv": "node_agent.aodv.reader:READER",
        "kernel": "node_agent.linkstate.kernel:READER",
        "probe": "node_agent.linkstate.probe.prober:READER",
        "pushed": "node_agent.linkstate.pushed:READER",
    },
)


def problems(config: LinkStateConfig) -> list[str]:
    """Returns why this configuration cannot be used, as far as is known before it is opened."""
    try:
        offered = LINK_STATE_READERS[config.kind].metrics
    except ExtensionError as error:
        return [str(error)]
    found = []
    tells_anything = not offered and not LINK_STATE_READERS.is_builtin(config.kind)
    if config.metric is not None and config.metric not in offered and not tells_anything:
        offers = ", ".join(offered) or "what it is sent"
        found.append(f"link state {config.kind} reports {offers}, not {config.metric}")
    if config.port is not None and not 0 < config.port < 65536:
        found.append(f"{config.port} is not a port number")
    if not config.keep >= 0:
        found.append("keep cannot be negative")
    if not (config.probe.budget > 0 and config.probe.pair_every > 0 and config.probe.silence > 0):
        found.append("a prober needs a budget, a share of pairs and a time of silence above 0")
    return found


@asynccontextmanager
async def open_link_state(
    config: LinkStateConfig,
    port: Port,
    names: Mapping[str, str],
    downstream: Downstream,
    keys: Mapping[str, bytes],
    refusals: Refusals | None = None,
    failures: Failures | None = None,
) -> AsyncIterator[LinkState]:
    """Opens the configured link state. ``names``: node by address. ``downstream``: the nodes whose costs
    matter.

    ``keys``: by node, the key that this node shares with it. ``refusals`` counts refused packets,
    ``failures`` errors of a foreign reader. Raises ExtensionError.
    """
    kind = LINK_STATE_READERS[config.kind]
    source = Source(
        config.host or kind.host,
        config.port or kind.port,
        port,
        names,
        downstream,
        keys,
        refusals,
        config.probe,
    )
    if LINK_STATE_READERS.is_builtin(config.kind):
        async with _entered(kind.open(source)) as opened:
            yield opened if isinstance(opened, PushedLinkState) else _measured(opened, config, port, names)
        return
    failures = failures or Failures()
    foreign = Foreign.of(WHAT, short_name(config.kind), kind.open)
    guarded_source = source._replace(node=GuardedPort(port, foreign, failures))
    try:
        made = guarded(foreign, lambda: kind.open(guarded_source), OPENING_S)
        entered = _entered(made)
        reader = await guarded_await(foreign, entered.__aenter__(), OPENING_S)
        guarded(foreign, lambda: check_reader(reader))
    except Failed as failed:
        raise ExtensionError(f"{foreign.name} cannot be opened: {failed}") from failed
    try:
        guard = GuardedReader(reader, foreign, failures)
        yield _measured(guard, config, port, names)
    finally:
        try:
            await guarded_await(foreign, entered.__aexit__(None, None, None), OPENING_S)
        except Failed as failed:
            failures.add(WHAT, foreign.name, failed.place, failed.error)


def _measured(
    reader: Any, config: LinkStateConfig, port: Port, names: Mapping[str, str]
) -> MeasuredLinkState:
    return MeasuredLinkState(reader, names, port.now_ns, config.metric, config.keep)


@asynccontextmanager
async def _entered(made: Any) -> AsyncIterator[Any]:
    if not isinstance(made, AbstractAsyncContextManager):
        yield made
        return
    async with made as reader:
        yield reader
