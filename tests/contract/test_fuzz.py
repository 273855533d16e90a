"""Three rounds of cases of odd and damaged input of every kind; `python -m tests.fuzz` runs thousands."""

import pytest

from tests.fuzz import KINDS, fuzz
from tests.helpers.studying import RAYS_OWN

pytestmark = [*RAYS_OWN, pytest.mark.filterwarnings("ignore")]  # of libraries, about damaged files


def test_odd_input_is_done_with_or_refused(tmp_path):
    assert fuzz(tmp_path, cases=66, seed=1, kinds=list(KINDS)) == []
