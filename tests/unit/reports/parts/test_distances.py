"""Distance and score over cases: numbers by hand, a correlation from five cases on, and the page."""

import json
import re
from pathlib import Path

import pytest
from scipy import stats

from adalayers.results.intervals import Interval
from adalayers.results.measures import Measured, write_measures
from adalayers.storage.folder import Folder
from reports.tables.distances import MIN_CASES, Placed, correlations, reached, share_of_the_way
from reports.write import write_cover
from tests.helpers.made_up import MadeUp
from tests.helpers.pages import section


def placed(distance: float | None, share: float, backbone: str = "b") -> Placed:
    of = Measured(title="distance", unit="bits", value=distance, nothing=0.0)
    known = Interval(share, None, None, 3)
    return Placed("x", backbone, {"d": of}, "matthews", "test", known, 0.0, known)


def test_the_share_of_the_way_puts_metrics_on_one_scale():
    assert share_of_the_way(0.5, 0.0, "matthews") == 0.5
    assert share_of_the_way(0.75, 0.5, "accuracy") == 0.5
    assert share_of_the_way(0.4, 0.5, "accuracy") == pytest.approx(-0.2)
    assert share_of_the_way(None, 0.5, "accuracy") is None
    assert share_of_the_way(0.9, 1.0, "accuracy") is None
    assert share_of_the_way(0.9, 0.5, "unheard of") is None
    assert reached(Interval(0.75, 0.7, None, 5), 0.5, "accuracy") == Interval(
        0.5, pytest.approx(0.4), None, 5
    )


def test_a_correlation_takes_five_cases():
    cases = [placed(0.1 * i, 1 - 0.1 * i) for i in range(MIN_CASES)]
    assert correlations(cases[:-1]) == []
    (found,) = correlations(cases)
    assert (found.n, found.tau, found.significant) == (5, pytest.approx(-1.0), True)
    assert found.p_value == pytest.approx(2 / 120)  # two of the 5! orders are as extreme
    assert correlations([*cases[:-1], placed(None, 0.2)]) == []
    assert correlations([*cases[:-1], placed(0.4, 0.6, "another")]) == []


def test_the_correction_is_for_the_number_of_measures():
    of = [placed(0.1 * i, 1 - 0.1 * i) for i in range(MIN_CASES)]
    two = [
        Placed(c.name, c.backbone, {**c.measured, "e": c.measured["d"]}, *list(vars(c).values())[3:])
        for c in of
    ]
    assert [c.p_adjusted for c in correlations(two)] == [pytest.approx(4 / 120)] * 2


def test_ties_have_a_p_value_of_their_own():
    (found,) = correlations([placed(0.1 * (i // 2), 1 - 0.1 * i) for i in range(6)])
    assert found.tau == pytest.approx(stats.kendalltau([0, 0, 1, 1, 2, 2], [5, 4, 3, 2, 1, 0]).statistic)
    assert found.p_value == pytest.approx(16 / 720)  # of all orders, those within the ties, either way round


def study(root: Path, name: str, distance: float | None) -> None:
    made = MadeUp(seeds=5, search=0, evaluations=2)
    made.study["request"]["flags"] = {"reference_dataset": "here"}
    made.study["environment"]["dataset"]["baseline"] = {"val": 0.0, "test": 0.0}
    made.write(root / name)
    of = Measured(title="vocabulary divergence", unit="bits, 0 to 1", how="As told", nothing=0.1, n=7)
    none = Measured(title="masked-LM loss", unit="nats", why="its checkpoint holds no such head")
    found = {"vocabulary": Measured(**{**vars(of), "value": distance}), "masked_lm": none}
    write_measures(Folder(root / name), {}, found)


def test_a_dataset_counts_once_however_often_it_was_run(tmp_path):
    """A smoke run, one under another label and one set aside are no cases of their own."""
    names = ["minilm-near", "minilm-far", "minilm-far-again", "minilm-near.20260501-101112"]
    for name in names:
        study(tmp_path, name, 0.6 if "far" in name else 0.11)
    for name, path in ((name, tmp_path / name / "study.json") for name in names):
        document = json.loads(path.read_text())
        document["environment"]["dataset"]["fingerprint"] = "far" if "far" in name else "near"
        document["request"]["flags"] |= {"label": "again"} if "again" in name else {}
        path.write_text(json.dumps(document))
    text = Path(write_cover(tmp_path, [tmp_path / name for name in names])).read_text()
    told = section(text, "Distance and score")
    assert "minilm-near" in told
    assert not re.search("far-again|2026", told)


def test_the_cover_shows_distance_and_score_with_a_figure(tmp_path):
    study(tmp_path, "minilm-near", 0.11)
    study(tmp_path, "minilm-far", 0.6)
    text = Path(write_cover(tmp_path, [tmp_path / "minilm-far", tmp_path / "minilm-near"])).read_text()
    assert "## Distance and score" in text
    assert "| 0.600 | 0.100 | 0.500 |" in text
    assert (tmp_path / "figures" / "distances.svg").stat().st_size > 0
