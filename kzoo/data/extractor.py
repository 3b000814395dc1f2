"""What computed features of pictures: written beside them, and kept by the model that is trained on them."""

from dataclasses import dataclass, replace

from kzoo.errors import UserError


@dataclass(frozen=True)
class Extractor:
    """What computed features: those of two extractors cannot take each other's place.

    Args:
        model: name of the network, such as "vgg19".
        layer: name of the layer whose output they are.
        weights: SHA-256 of its weights' values, or "random".
        seed: of random weights, else `None`.
        corrupt: what pictures that cannot be read have: `""`: there are none; "mean": the mean of the others.

    Raises:
        UserError: a name with a slash: presets have the extractor in their settings, where no path may stand.
    """

    model: str
    layer: str
    weights: str
    seed: int | None = None
    corrupt: str = ""

    def __post_init__(self):
        for name in (self.model, self.layer, self.weights):
            if "/" in name or "\\" in name:
                raise UserError(
                    f"an extractor is named without slashes, not {name!r}: a preset keeps its name"
                )

    def __str__(self) -> str:
        weights = (
            f"random weights of seed {self.seed}"
            if self.weights == "random"
            else f"weights {self.weights[:12]}"
        )
        return f"{self.model} {self.layer} ({weights})"

    def fits(self, other: "Extractor") -> bool:
        """Return whether features of both mean the same; corrupt pictures may be treated differently."""
        return replace(self, corrupt="") == replace(other, corrupt="")
