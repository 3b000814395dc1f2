"""The extractor of picture features: described beside the features, and in the model trained on them."""

from dataclasses import dataclass, replace

from kzoo.errors import UserError


@dataclass(frozen=True)
class Extractor:
    """Describes how features were computed: features of different extractors are not interchangeable.

    Args:
        model: name of the network, such as "vgg19".
        layer: name of the layer whose outputs are the features.
        weights: SHA-256 of the network's weights, or "random".
        seed: of random weights, else `None`.
        corrupt: features of unreadable pictures: `""`: there are none; "mean": the mean of the others.

    Raises:
        UserError: a name with a slash: presets keep the extractor in their settings, which may hold no path.
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
                    f"an extractor's names have no slashes, unlike {name!r}: a preset keeps its name"
                )

    def __str__(self) -> str:
        weights = (
            f"random weights of seed {self.seed}"
            if self.weights == "random"
            else f"weights {self.weights[:12]}"
        )
        return f"{self.model} {self.layer} ({weights})"

    def fits(self, other: "Extractor") -> bool:
        """Return whether features of both are interchangeable, apart from those of corrupt pictures."""
        return replace(self, corrupt="") == replace(other, corrupt="")
