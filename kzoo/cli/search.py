"""The search of a command: a preset's own, with what the user gives in its place."""

from kzoo.decoding.search_settings import GNMT, Exponent, SearchSettings


def asked_search(
    own: SearchSettings, beam_size: int | None, length_penalty: float | None, gnmt: float | None
) -> SearchSettings:
    """Return a search with the options that are given.

    Args:
        own: what the preset says.
        beam_size: `--beam`.
        length_penalty: `--length-penalty`, the α of log P / length^α.
        gnmt: `--gnmt`, the α of GNMT's penalty, used instead.

    Raises:
        UserError: α is not finite.
    """
    penalty = None if length_penalty is None else Exponent(length_penalty)
    return own.changed(beam_size=beam_size, length_penalty=penalty if gnmt is None else GNMT(gnmt))
