"""A mapping that makes its values when asked."""

import pytest

from adalayers.features.lazy import Lazy


def test_values_are_made_when_asked_for_and_not_kept():
    made = []
    squares = Lazy([2, 3], lambda key: made.append(key) or key * key)
    assert list(squares) == [2, 3]
    assert len(squares) == 2
    assert not made
    assert squares[3] == 9
    assert squares[3] == 9
    assert made == [3, 3]
    assert 4 not in squares
    with pytest.raises(KeyError):
        squares[4]
