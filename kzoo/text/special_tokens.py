"""The special tokens of every kzoo vocabulary."""

PAD, UNKNOWN, START, END = 0, 1, 2, 3
SPECIAL = {PAD: "<pad>", UNKNOWN: "<unk>", START: "<s>", END: "</s>"}
NOT_TEXT = [PAD, UNKNOWN, START]  # never in a translation
