"""Figures of parts are drawn as a page draws them."""

import pytest

from reports.drawing.style import own_style


@pytest.fixture(autouse=True)
def _style():
    with own_style():
        yield
