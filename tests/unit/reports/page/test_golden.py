"""Pages of a study of each kind, word for word; `python -m tests.helpers.golden` writes them again."""

import pytest

from tests.helpers.golden import GOLDEN, PAGES, written


@pytest.mark.parametrize("name", PAGES)
def test_a_page_says_what_it_said(tmp_path, name):
    assert written(name, tmp_path) == (GOLDEN / f"{name}.md").read_text(), "see tests/helpers/golden.py"
