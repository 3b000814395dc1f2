"""Parallel text: corpora by name or from files, and batches for training."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "batches": ["Batches"],
        "conllu": ["read_conllu"],
        "corpora": ["CORPORA", "open_corpus", "open_files"],
        "corpus": ["Corpus"],
        "ctb5": ["read_ctb5"],
        "feature_writing": ["write_features"],
        "image_features": ["Extractor", "FeatureFile", "open_features"],
        "language_pairs": ["language_pairs"],
        "pair_batches": ["PairBatches"],
        "sharded_batches": ["ShardedBatches"],
        "shards": ["Shards"],
        "senteval": ["SENTEVAL_TASKS", "senteval_examples", "senteval_tasks"],
    },
)
