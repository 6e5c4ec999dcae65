"""The control port of a node's EMANE: what its physical layer measured."""

from typing import Any

from core import recorded  # type: ignore[import-not-found,unused-ignore]

_DOUBLE, _UINT16 = 10, 4


class ControlPortClient:
    def __init__(self, address: str, port: int) -> None:
        self._nem = port - 47000
        assert address == f"172.16.0.{self._nem}"

    def getManifest(self) -> dict[int, Any]:
        return {self._nem: ((1, "PHY", ""), (2, "MAC", "ieee80211abgmaclayer"), (3, "TRANSPORT", ""))}

    def getStatisticTable(self, build: int, tables: list[str]) -> dict[str, Any]:
        assert (build, tables) == (1, ["ReceivePowerTable"])
        (session,) = recorded.sessions().values()
        names = dict(enumerate(session["nodes"], start=1))
        rows = tuple(
            (
                (nem, _UINT16),
                (0, _UINT16),
                (recorded.rx_dbm(session, names[self._nem], name), _DOUBLE),
            )
            for nem, name in names.items()
            if nem != self._nem
        )
        return {"ReceivePowerTable": (("NEM", "Rx Antenna", "Rx Power"), rows)}

    def stop(self) -> None:
        pass
