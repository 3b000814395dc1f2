"""Scores of translations, and the pictures that go with them."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "bridge_plots": ["plot_bridge"],
        "directions": ["direction_table", "evaluate_directions", "plot_directions"],
        "scores": ["SplitScores", "evaluate", "score_table", "score_translations"],
    },
)
