"""Reads the records of remote nodes while they are written, a bounded piece at a time.

A node's answer says where its bytes belong; it is believed only where that follows from the question.
"""

import re
from collections.abc import Mapping, Sequence

from node_agent.agent.control import Report
from node_agent.supervisor.commands import (
    FOLDER,
    LONGEST_FOLDER,
    MOST_PICTURE,
    MOST_TAIL,
    ReadPicture,
    ReadSegment,
)
from node_agent.telemetry.records import MOST_BOOTS
from orchestrator.backends.agent_channel import AgentLost
from orchestrator.backends.remote.supervisor import NodeSupervisor
from orchestrator.planning.application import AppPlan
from orchestrator.runs.backend import Cursor, NodeNotSeen

READ_S = 5.0
MOST_SEGMENTS = 999_999
_LARGEST = 2**40
_FOLDER = re.compile(FOLDER)


class SupervisedRecords:
    """``supervisors``: by node, as far as they have started; read each time."""

    def __init__(self, apps: Mapping[str, AppPlan], supervisors: Mapping[str, NodeSupervisor]) -> None:
        self._apps = apps
        self._supervisors = supervisors

    def nodes(self) -> Sequence[str]:
        return tuple(self._supervisors)

    async def tail(self, node: str, cursor: Cursor) -> tuple[Cursor, bytes]:
        report = await self._read(node, ReadSegment(*cursor))
        if len(report.at) != 3 or len(report.data) > MOST_TAIL:
            raise NodeNotSeen(f"{node} answers something else than its telemetry")
        at = Cursor(*report.at)
        goes_on = at == cursor
        is_next = (
            at[:2] > cursor[:2]
            and at.offset == 0
            and 1 <= at.boot <= MOST_BOOTS
            and 1 <= at.segment <= MOST_SEGMENTS
        )
        if not (goes_on or is_next) or at.offset + len(report.data) > _LARGEST:
            raise NodeNotSeen(f"{node} answers telemetry that was not asked for")
        return at, report.data

    def picture_folders(self, node: str) -> Sequence[str]:
        named = (folder for plan in self._apps.values() for folder in plan.picture_folders(node))
        return [name for name in named if len(name) <= LONGEST_FOLDER and _FOLDER.fullmatch(name)]

    async def picture(self, node: str, folder: str, stamp: int) -> tuple[int, bytes]:
        report = await self._read(node, ReadPicture(folder, stamp))
        if len(report.at) != 1 or report.at[0] < 0 or len(report.data) > MOST_PICTURE:
            raise NodeNotSeen(f"{node} answers something else than a picture")
        return report.at[0], report.data

    async def _read(self, node: str, command: ReadSegment | ReadPicture) -> Report:
        supervisor = self._supervisors.get(node)
        if supervisor is None:
            raise NodeNotSeen(f"{node} has no supervisor")
        try:
            return await supervisor.ask_quietly(command, READ_S)
        except AgentLost as error:
            raise NodeNotSeen(f"{node} cannot be read now: {error}") from error
