"""What refused input is answered with."""

import pytest

from kzoo.errors import UserError


def message_of(function, *args, **kwargs) -> str:
    """Return the message of the UserError that a call raises, which must be one line."""
    with pytest.raises(UserError) as caught:
        function(*args, **kwargs)
    assert "\n" not in str(caught.value)
    return str(caught.value)
