"""The ids of the tokens that are in every vocabulary of the zoo."""

PAD, UNKNOWN, START, END = 0, 1, 2, 3
SPECIAL = {PAD: "<pad>", UNKNOWN: "<unk>", START: "<s>", END: "</s>"}
NOT_TEXT = [PAD, UNKNOWN, START]  # no translation has them
