"""The one place that prepares text: for training, both engines, the command line, the server and scoring.

`prepare`, which every tokenizer applies first, makes one line of a text and removes what no reader sees. In a
SavedModel, `kzoo.export.graph_inputs` does the same, except for the characters that only some scripts need.
"""

import re

# Sources: Unicode's Default_Ignorable_Code_Point, without letters (Hangul's fillers) and Mongolian's
# selectors; UAX #31 for joiners; Line_Break=Complex_Context for spaces without width; UTS #51 for emoji. Not
# from `regex`, whose import takes a fifth of the command line's time.
NEVER_SEEN = (
    "\u00ad\u034f\u061c\u17b4\u17b5\u200e\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0e\ufeff\ufff0-\ufff8"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e001f\U000e0080-\U000e0fff"
)
# Scripts whose letters join (Arabic's kind, Indic conjuncts), those without spaces, and emoji.
JOINING = (
    "\u0600-\u109f\u1700-\u1cff\u2d30-\u2d7f\ua800-\ua95f\ua980-\uabff\ufb50-\ufdff\ufe70-\ufefc"
    "\U00010a00-\U00011fff\U00016100-\U0001613f\U0001e900-\U0001e95f"
)
SPACELESS = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u1950-\u19df\u1a20-\u1aaf\ua9e0-\ua9ff\uaa60-\uaadf"
    "\U00011700-\U0001174f"
)
EMOJI = "\u00a9\u00ae\u203c\u2049\u2100-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
# These and others, in few ranges: without this search first, German takes 1.4 times as long to tokenize.
PERHAPS = re.compile(
    "[\u00ad\u034f\u061c\u17b4\u17b5\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\ufff0-\ufff8"
    "\U0001bca0-\U000e0fff]"
)
INVISIBLE = re.compile(
    f"[{NEVER_SEEN}]"
    f"|(?<![{JOINING}{EMOJI}])(?<![{EMOJI}]\ufe0f)[\u200c\u200d]"
    f"|(?<![{SPACELESS}])\u200b"
    f"|(?<![{EMOJI}])\ufe0f(?!\u20e3)"
    "|(?<![\U0001f3f4\U000e0020-\U000e007f])[\U000e0020-\U000e007f]"  # the letters of a flag
)


def prepare(text: str) -> str:
    """Return a text as every tokenizer reads it, in training and translation.

    - Line ends become spaces; those at its beginning and end are removed.
    - Characters that no reader sees and no script needs are removed, such as soft hyphens and marks of the
      writing direction. Joiners stay after letters that join and within emoji, as do a space without width
      in scripts without spaces and the selectors of emoji.

    Example:

    >>> prepare("A play\\u00adhouse\\r\\nin the garden.\\n")
    'A playhouse in the garden.'
    """
    text = " ".join(filter(None, text.splitlines()))
    return text if text.isascii() or not PERHAPS.search(text) else INVISIBLE.sub("", text)
