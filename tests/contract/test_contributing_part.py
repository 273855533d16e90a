"""The report part that CONTRIBUTING.md shows works as it stands: a file and a name in the list of parts."""

import re
import sys
import types
from pathlib import Path

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from reports.evidence.evidence import Evidence
from reports.page.report import PARTS, ReportPage
from reports.reading.load import load
from tests.helpers.made_up import CONTROL, MadeUp

GUIDE = Path(__file__).parents[2] / "CONTRIBUTING.md"


@pytest.fixture
def part(monkeypatch):
    """The snippet as the module that it says it is."""
    section = GUIDE.read_text().split("## A report part\n", 1)[1].split("\n## ", 1)[0]
    (snippet,) = re.findall(r"^```python\n(.*?)^```$", section, re.M | re.S)
    (name,) = re.findall(r"^`reports/parts/(\w+)\.py`, whole", section, re.M)
    module = types.ModuleType(f"reports.parts.{name}")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(snippet, str(GUIDE), "exec"), vars(module))
    return name, module


def test_the_part_is_shown_with_its_numbers_and_its_figure(tmp_path, part):
    name, module = part
    made = MadeUp(seeds=2, search=0, evaluations=2)
    for row, seconds in zip(made.of(CONTROL), (10.0, 20.0), strict=True):
        row["seconds"] = seconds
    evidence = Evidence(load(made.write(tmp_path)))
    assert module.info(evidence).seconds[CONTROL] == 15.0
    page = ReportPage(evidence, (*PARTS[:2], name))
    assert "## Training time" in page.text()
    assert f"| `{CONTROL}` | 15.0 |" in page.text()
    FigureCanvasAgg(page.figures()[name]).draw()


def test_the_part_is_left_out_where_it_does_not_apply(tmp_path, part):
    name, _ = part
    made = MadeUp(seeds=1, search=2, evaluations=2)
    made.trials = [row for row in made.trials if row["stage"] == "search"]
    assert "Training time" not in ReportPage(Evidence(load(made.write(tmp_path))), (name,)).text()
