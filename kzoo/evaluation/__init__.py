"""Scores of translations, and figures for them."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "ambiguous_words": ["AmbiguousScores", "score_ambiguous_words"],
        "bridge_plots": ["plot_bridge"],
        "character_frequency": ["frequency_buckets", "score_by_frequency"],
        "directions": ["direction_table", "evaluate_directions", "plot_directions"],
        "glyph_plots": [
            "nearest_characters",
            "plot_activations",
            "plot_glyphs",
            "plot_nearest",
            "top_activations",
        ],
        "image_plots": ["plot_image_attention", "plot_regions"],
        "meteor": ["find_meteor", "meteor_score"],
        "scores": ["SplitScores", "evaluate", "score_table", "score_translations"],
        "senteval": ["TaskScores", "evaluate_embeddings", "senteval_table", "write_senteval"],
        "significance": ["ComparedBleu", "compare_bleu", "comparison_table"],
        "tagging": ["TaggingScores", "score_tagging"],
        "word_similarity": ["WordPair", "open_word_pairs", "read_word_pairs", "score_word_similarity"],
    },
)
