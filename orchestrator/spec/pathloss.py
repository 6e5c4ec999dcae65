"""The ``pathloss`` section of a radio: the registry of models, and what a model is.

A model is one class: its fields are its parameters in the file, ``loss_db`` computes what a signal loses.

    class Foliage(PathLossModel):
        depth: PositiveLength = 50.0

        def loss_db(self, distance_m: Matrix) -> Matrix:
            return 40.0 + 35.0 * np.log10(np.maximum(distance_m, 1.0)) + 0.2 * self.depth

A topology names it by its file, ``pathloss: {model: my_losses.py:Foliage, depth: 20 m}``, or by the name that
a package gives it among its entry points of the group ``rove.path_loss_models``.
"""

from typing import TYPE_CHECKING, Annotated, ClassVar

from node_agent.extensions import ExtensionError, Registry
from orchestrator.model.path_loss import PathLoss
from orchestrator.spec.base import Section
from orchestrator.spec.problems import Finding, in_words
from orchestrator.spec.registered import Registered

if TYPE_CHECKING:
    from orchestrator.model.path_loss import Matrix


class PathLossModel(Section):
    """Computes how much of its power a signal loses between two nodes."""

    follows_distance: ClassVar[bool] = True
    """False: the loss of each link is looked up, so the radio has no range."""
    changes: ClassVar[bool] = False
    """True: losses change over time even if no node moves.
    Then ``path_loss`` returns a value with ``at(t)``.
    """

    model: str

    def loss_db(self, distance_m: "Matrix") -> "Matrix":
        """Returns the loss over these distances, an array of any shape; ``inf``: nothing arrives."""
        raise NotImplementedError

    def path_loss(self, nodes: tuple[str, ...]) -> PathLoss:
        """Returns the path loss between these nodes, in this order. Override it if losses depend on more than
        distance.
        """
        return self

    def summary(self) -> str:
        """Describes the model in a few words."""
        own = [f"{key} {in_words(value)}" for key, value in self if key != "model"]
        return ", ".join([self.model.rpartition("/")[2], *own])

    def findings_for(self, nodes: tuple[str, ...]) -> list[Finding]:
        """Returns what does not fit these nodes; places are keys of this section."""
        return []


def _checked_model(name: str, value: object) -> type[PathLossModel]:
    if not isinstance(value, type) or not issubclass(value, PathLossModel):
        base = f"{PathLossModel.__module__}.{PathLossModel.__name__}"
        raise ExtensionError(f"{name} is not a path-loss model: derive a class from {base}")
    if value.loss_db is PathLossModel.loss_db and value.path_loss is PathLossModel.path_loss:
        raise ExtensionError(f"the path-loss model {name} does not define loss_db(distance_m)")
    return value


PATH_LOSS_MODELS: Registry[type[PathLossModel]] = Registry(
    "path-loss model",
    "rove.path_loss_models",
    _checked_model,
    {
        "two_ray": "orchestrator.radio.path_loss.two_ray:TwoRay",
        "two_ray_ground": "orchestrator.radio.path_loss.two_ray_ground:TwoRayGround",
        "free_space": "orchestrator.radio.path_loss.free_space:FreeSpace",
        "log_distance": "orchestrator.radio.path_loss.log_distance:LogDistance",
        "range": "orchestrator.radio.path_loss.range:Range",
        "matrix": "orchestrator.radio.path_loss.matrix:LossMatrix",
        "trace": "orchestrator.radio.path_loss.trace:LossTrace",
    },
)

PathLossField = Annotated[PathLossModel, Registered(PATH_LOSS_MODELS, "model")]
