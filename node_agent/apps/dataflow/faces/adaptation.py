"""Controls the quality of a source's pictures, so that the path keeps up. Without I/O.

It goes down a step as soon as frames cannot leave in time, and up again only after a while in which all of
them could. It lowers quality first, then resolution: coarse JPEG harms recognition less than small faces do.
"""

from msgspec import Struct, structs


class Step(Struct, frozen=True):
    """Shares of the quality and resolution asked for."""

    quality: float
    scale: float


STEPS = (Step(1, 1), Step(0.75, 1), Step(0.5, 1), Step(0.5, 0.75), Step(0.4, 0.6))
LATE_FRAMES = 3
TIMELY_FRAMES = 40


class Adaptation(Struct, frozen=True):
    """``late`` and ``timely``: how many frames in a row were so."""

    level: int = 0
    late: int = 0
    timely: int = 0

    @property
    def step(self) -> Step:
        return STEPS[self.level]

    def after(self, in_time: bool) -> "Adaptation":
        """Returns the state for the next frame, given whether this one could leave when it was due."""
        if in_time:
            if self.timely + 1 < TIMELY_FRAMES or self.level == 0:
                return structs.replace(self, late=0, timely=self.timely + 1)
            return Adaptation(self.level - 1)
        if self.late + 1 < LATE_FRAMES or self.level == len(STEPS) - 1:
            return structs.replace(self, late=self.late + 1, timely=0)
        return Adaptation(self.level + 1)
