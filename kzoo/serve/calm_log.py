"""A log that many equal failures do not fill."""

import logging
import math


class OnceASecond(logging.Filter):
    """Passes one record a second from each place in the code; the next one says how many were left out."""

    def __init__(self):
        super().__init__()
        self._last = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the record is logged."""
        place = record.pathname, record.lineno
        passed, left_out = self._last.get(place, (-math.inf, 0))
        if record.created < passed + 1:
            self._last[place] = passed, left_out + 1
            return False
        self._last[place] = record.created, 0
        if left_out:
            record.msg, record.args = f"{record.getMessage()} (and {left_out:,} more before)", ()
        return True
