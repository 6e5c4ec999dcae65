"""Who may say what of a query's operators that move: the home coordinates, a source's broker streams, and
brokers speak for what they host."""

from collections.abc import Callable, Iterable

from node_agent.apps.mcep.channel import Message
from node_agent.apps.mcep.deployment import Deployed, Deployment
from node_agent.apps.mcep.graph import CONSUMER
from node_agent.apps.mcep.moving.messages import (
    Agreed,
    Arrived,
    Handed,
    Hosted,
    JointAt,
    Planning,
    Rates,
    Relocate,
    Role,
    Said,
    Told,
    Visited,
    Wish,
)
from node_agent.apps.mcep.moving.places import HOME, Joint, Neighbourhood, Places, neighbourhoods
from node_agent.apps.mcep.moving.planning import flow
from node_agent.apps.mcep.packed import decode_message
from node_agent.migration.live.claims import Parties, refusal
from node_agent.migration.live.messages import Copy, Items, Outputs, Start
from node_agent.migration.messages import PlanUpdated, Reserve, ReserveReply, Revoke

Mistold = Callable[[Message, str], str | None]
"""What is wrong with a message of a producer."""


class MovesClaims:
    """``receiver`` is a broker. ``mistold``: raises Refused, too, if bytes are no message."""

    def __init__(self, receiver: str, deployed: Deployed, deployment: Deployment, mistold: Mistold) -> None:
        servers = deployment.brokers
        self._receiver, self._deployed, self._mistold = receiver, deployed, mistold
        self._servers, self._clients = frozenset(servers), frozenset(deployment.clients)
        self._around = neighbourhoods(deployed, servers)
        self._places = Places(deployed)
        graph = deployed.query.graph
        self._streams = frozenset((each.producer, each.successor) for each in graph.streams)
        flows = (flow(*each) for each in self._streams if each[0] not in self._around)
        self._rated = frozenset((*self._around, *flows))
        self._parties: dict[str, Parties] = {
            operator: around.parties(self._servers) for operator, around in self._around.items()
        }

    def refusal(self, sender: str, said: Said) -> str | None:
        """Returns one word that says why it cannot be; None if it can. Raises Refused."""
        home = self._deployed.home
        if sender not in self._servers:
            return "sender"
        match said:
            case Told():
                return self._told(sender, said)
            case Relocate(producer, successor, _, to):
                known = Joint(producer, successor) in self._places and to in self._servers
                return "sender" if sender != home else None if known else "joint"
            case Handed():
                owners = {said.producer_at, said.successor_at}
                if Joint(said.producer, said.successor) not in self._places or not owners <= self._servers:
                    return "joint"
                return self._wrong(said.producer, (item.payload for item in said.kept))
            case Arrived(producer, successor):
                known = Joint(producer, successor) in self._places
                return "receiver" if self._receiver != home else None if known else "joint"
            case JointAt(producer, successor, _, broker):
                known = Joint(producer, successor) in self._places and broker in self._servers
                return "sender" if sender != home else None if known else "joint"
            case _:
                return self._planning(sender, said)

    def _planning(self, sender: str, said: Planning) -> str | None:
        deployed = self._deployed
        if deployed.migration is None or not deployed.migration.plans:
            return "message"
        planners = {*deployed.hosts.values(), deployed.home}
        match said:
            case Agreed():
                return self._agreed(sender, said)
            case Rates(values):
                if self._receiver not in planners:
                    return "receiver"
                return None if {name for name, _ in values} <= self._rated else "stream"
            case Hosted(operator, host):
                if sender != deployed.home:
                    return "sender"
                return None if operator in self._around and host in self._servers else "operator"
            case Wish(operator, to):
                if self._receiver != deployed.home:
                    return "receiver"
                if operator not in self._around or to not in self._servers:
                    return "operator"
                return None if deployed.hosts[operator] == sender else "sender"
            case Visited(client):
                if client not in self._clients:
                    return "client"
                return None if self._receiver == deployed.home else "receiver"

    def _agreed(self, sender: str, said: Agreed) -> str | None:
        deployed, operator, name = self._deployed, said.operator, said.sender
        migration = deployed.migration
        if operator not in self._around or migration is None or migration.planning is None:
            return "operator"
        if isinstance(said.message, Reserve | Revoke):
            return None if name == operator and deployed.hosts[operator] == sender else "sender"
        if deployed.hosts[operator] != self._receiver:
            return "receiver"
        if isinstance(said.message, ReserveReply):
            return None if not name else "sender"
        is_source = name not in self._around
        if (name, operator) not in self._streams and (operator, name) not in self._streams:
            return "sender"
        if sender != (deployed.home if is_source else deployed.hosts[name]):
            return "sender"
        if isinstance(said.message, PlanUpdated):
            if said.message.final != is_source or not set(said.message.plan.brokers()) <= self._servers:
                return "plan"
        elif is_source:
            return "sender"
        return None

    def _told(self, sender: str, said: Told) -> str | None:
        around = self._around.get(said.operator)
        if around is None:
            return "operator"
        names = self._name(sender, said.sender, around), self._name(self._receiver, said.receiver, around)
        if names[0] is None:
            return "sender"
        if names[1] is None:
            return "receiver"
        refused = refusal(self._parties[said.operator], names[0], names[1], said.message)
        if refused is not None:
            return refused
        match said.message:
            case Items(items):
                producer = around.streams[said.sender.name].producer
                return self._wrong(producer, (item.payload for item in items))
            case Copy(_, stream, items):
                return self._wrong(around.streams[stream].producer, (item.payload for item in items))
            case Outputs(_, payloads) | Start(_, _, payloads):
                return self._wrong(said.operator, payloads)
            case _:
                return None

    def _name(self, node: str, role: Role, around: Neighbourhood) -> str | None:
        """What a role is called; None if the node cannot have it."""
        match role.kind:
            case "host":
                return node
            case "home":
                return HOME if node == self._deployed.home else None
            case "stream":
                channel = around.streams.get(role.name)
                return None if channel is None or (channel.origin or node) != node else role.name
            case "sink":
                successor = around.sinks.get(role.name)
                at_home = successor == CONSUMER and node != self._deployed.home
                return None if successor is None or at_home else role.name

    def _wrong(self, producer: str, payloads: Iterable[bytes]) -> str | None:
        found = (self._mistold(decode_message(each), producer) for each in payloads)
        return next((wrong for wrong in found if wrong), None)
