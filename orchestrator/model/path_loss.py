"""What a path loss is to everybody who asks for one: decibels lost between nodes, for all pairs at once."""

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:  # numpy takes its time, and who only names the type need not wait for it
    import numpy as np
    import numpy.typing as npt

    Matrix = npt.NDArray[np.float64]


class PathLoss(Protocol):
    """One that changes by itself has a method ``at(t)``, too: the path loss that holds at ``t`` seconds."""

    def loss_db(self, distance_m: "Matrix") -> "Matrix":
        """The loss from node i (row) to node j (column); ``inf``: nothing arrives at all."""
        ...
