"""The section that CONTRIBUTING.md shows works as it stands: a file and a name in the list of sections."""

import re
import sys
import types
from pathlib import Path

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from reports.page.details import SECTIONS, Details
from tests.helpers.made_up import CONTROL, MadeUp
from tests.helpers.pages import evidence_of

GUIDE = Path(__file__).parents[2] / "CONTRIBUTING.md"


@pytest.fixture
def name(monkeypatch) -> str:
    """The snippet as the module that it says it is."""
    section = GUIDE.read_text().split("## A section of a report\n", 1)[1].split("\n## ", 1)[0]
    (snippet,) = re.findall(r"^```python\n(.*?)^```$", section, re.M | re.S)
    (name,) = re.findall(r"^`reports/sections/(\w+)\.py`, whole", section, re.M)
    module = types.ModuleType(f"reports.sections.{name}")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(snippet, str(GUIDE), "exec"), vars(module))
    return name


def test_the_section_is_shown_with_its_numbers_and_its_figure(tmp_path, name):
    made = MadeUp(seeds=2, search=0, evaluations=2)
    for row, seconds in zip(made.of(CONTROL), (10.0, 20.0), strict=True):
        row["seconds"] = seconds
    page = Details(evidence_of(made, tmp_path), (SECTIONS[0], name))
    text = page.text("a study")
    assert "## Training time" in text
    assert rf"| {CONTROL} | 15.000 |".replace("_", r"\_") in text
    FigureCanvasAgg(page.figures[name]).draw()


def test_the_section_is_left_out_where_it_does_not_apply(tmp_path, name):
    made = MadeUp(seeds=1, search=2, evaluations=2)
    made.trials = [row for row in made.trials if row["stage"] == "search"]
    assert "Training time" not in Details(evidence_of(made, tmp_path), (name,)).text("a study")
