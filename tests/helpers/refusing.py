"""Bad input: a call that is refused, by what its message says."""

import pytest

from adalayers.errors import BadInput


def refused(said, call, *args, **how):
    """Check that a call is bad input whose message matches `said`, and return the message."""
    with pytest.raises(BadInput, match=said) as caught:
        call(*args, **how)
    return str(caught.value)
