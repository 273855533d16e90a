"""Pages under docs/results are what `adalayers report` makes of the numbers kept next to them."""

import json
import re
import shutil
import sys

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from reports.__main__ import main
from reports.evidence.holm import OPEN
from reports.publish import publish
from reports.write import write_cover
from tests.helpers.documented import KEPT, RESULTS, ROOT
from tests.helpers.long_form import long_but
from tests.helpers.pages import rebuild_claims

COVERS = sorted(path.parent for path in RESULTS.glob("*/claims.json"))
MOST = 14e6
"""Bytes of all that is kept."""
PAGE = [RESULTS / "methods" / "minilm-conll2003-frozen"]
"""Whose whole page is made again always."""
CLAIMS = [RESULTS / "alpha_lambda" / "minilm-cola", RESULTS / "reproduce" / "minilm-imdb"]
"""Whose claims are made again always: of a factorial and of pairs; the others in the long form."""


def compare(made, kept):
    found, claims = (json.loads((path / "claims.json").read_text()) for path in (made, kept))
    assert claims
    pd.testing.assert_frame_equal(*map(pd.json_normalize, (found, claims)), rtol=0, atol=1e-9)


def named(path):
    return str(path.relative_to(RESULTS))


def test_what_is_kept_is_small():
    assert sum(path.stat().st_size for path in RESULTS.rglob("*") if path.is_file()) <= MOST


NUMBER = re.compile(r"(?<![\w.])(?<!= )\d[\d,]*(?:\.\d+)?(?![\w%]| training examples)")
"""Of results: levels of factors are names."""


def precise(text):
    """Return the numbers in a text that have at least three significant digits."""
    numbers = [number.replace(",", "") for number in NUMBER.findall(text)]
    return [number for number in numbers if len(number.replace(".", "").strip("0")) > 2]


@pytest.mark.parametrize("kept", [*KEPT, *COVERS], ids=named)
def test_a_page_is_short_and_says_no_number_twice_outside_finding_and_table(kept):
    page = (kept / "report.md").read_text()
    assert len(re.findall(r"!\[", page)) <= 3
    text = re.sub(r"```.*?```|!\[.*?\]\(.*?\)", "", page, flags=re.DOTALL)
    assert len(re.sub(r"^\|.*?$", "", text, flags=re.MULTILINE).split()) <= 450
    text = re.sub(r"`.*?`", "", text, flags=re.DOTALL)
    finding, *rest = re.split(r"^(?=\||\*\*What limits|\*\*Set-up)", text, maxsplit=1, flags=re.MULTILINE)
    tables = re.findall(r"^\|.*$", "".join(rest), flags=re.MULTILINE)
    said = precise(re.sub(r"^\|.*$", "", "".join(rest), flags=re.MULTILINE))
    assert sorted(said) == sorted({*said} - {*precise(finding + "\n".join(tables))})


def numbers_alone(kept, tmp_path):
    """Return a copy of a folder without what is made of its numbers."""
    ignored = shutil.ignore_patterns("*.md", "figures", "claims.json")
    return shutil.copytree(kept, tmp_path / named(kept), ignore=ignored)


@pytest.mark.parametrize("kept", long_but(CLAIMS, [*KEPT, *COVERS]), ids=named)
def test_claims_are_those_of_the_rows(kept, tmp_path):
    """Of a study, or of a cover across cases."""
    made = numbers_alone(kept, tmp_path)
    write_cover(made) if kept in COVERS else rebuild_claims(made)
    compare(made, kept)


@pytest.mark.parametrize("kept", long_but(PAGE, KEPT), ids=named)
def test_pages_are_those_of_the_rows(kept, tmp_path):
    made = numbers_alone(kept, tmp_path)
    assert main([str(made)]) == 0
    compare(made, kept)
    publish(made)
    assert (made / "report.md").read_text() == (kept / "report.md").read_text()
    assert {path.name for path in made.glob("figures/*")} == {path.name for path in kept.glob("figures/*")}


SCRIPT = re.search(r"```python\n(.*?)```", (ROOT / "docs" / "evidence.md").read_text(), re.DOTALL)[1]


@pytest.mark.parametrize("kept", KEPT, ids=named)
def test_forty_lines_of_pandas_and_scipy_give_the_same_verdicts(kept, capsys, monkeypatch):
    assert len(SCRIPT.splitlines()) <= 40
    imported = set(re.findall(r"^(?:import|from) (.*?)(?: import.*)?$", SCRIPT, re.M))
    assert imported <= {"json, pathlib, sys", "pandas as pd", "scipy"}
    monkeypatch.setattr(sys, "argv", ["verdicts.py", str(kept)])
    exec(SCRIPT, {})  # of our own documentation
    verdicts, ties, withheld = json.loads(capsys.readouterr().out)
    claims = [claim for claim in json.loads((kept / "claims.json").read_text()) if claim["primary"]]
    assert ties == [place for place, claim in enumerate(claims) if claim["tie"]]
    assert not {*withheld} & {place for place, claim in enumerate(claims) if claim["low"] is not None}
    told = [OPEN if claim["tie"] else claim["verdict"] for claim in claims]
    assert [verdict for verdict in verdicts if verdict] == told


ANSWERS = ROOT / "docs" / "answers.md"
LINK = re.compile(r"\[[^\]]*\]\(([^)#]+)(?:#([^)]*))?\)")
FIGURE = re.compile(r"(?<![\d.])\d+\.\d{2,}(?![\d.])")
"""A number as pages print scores: two decimals or more."""
SETTINGS = {"0.01", "0.02", "0.042", "0.083", "0.12", "0.0064"}
"""Numbers that are none of results: smallest effects, lambda, cutoffs, the thesis's step on CoLA."""


def anchors(page):
    heads = re.findall(r"^#+ (.*)$", page.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def test_the_answers_point_at_what_is_there():
    text = re.sub(r"```.*?```", "", ANSWERS.read_text(), flags=re.DOTALL)
    links = [link for link in LINK.findall(text) if not link[0].startswith("http")]
    assert len(links) > 15
    for target, anchor in links:
        page = ANSWERS.parent / target
        assert page.exists(), target
        assert not anchor or anchor in anchors(page), f"{target}#{anchor}"


def figures_of(folder):
    """Return all that a published folder says in numbers: its claims, the means of its arms, its slopes."""
    claims = pd.DataFrame(json.loads((folder / "claims.json").read_text()))
    numbers = [*claims.reindex(columns=["difference", "low", "high", "at_most"]).stack()]
    if (folder / "trials.csv").exists():
        trials = pd.read_csv(folder / "trials.csv").query("stage == 'confirm'")
        numbers += list(trials.groupby("arm").mean(numeric_only=True).stack())
        numbers += slopes(trials)
    return {f"{abs(number):.{digits}f}" for number in numbers for digits in (2, 3)}


def slopes(trials):
    """Return what a nat of the mix's entropy gains over the cells of alpha and lambda: mean, low, high over seeds."""
    cells = trials[trials["arm"].str.match(r"alpha=\d+ entropy_weight")]
    if cells["arm"].nunique() < 12:
        return []
    score = next(name for name in ("test/matthews", "test/f1", "test/accuracy") if name in cells)
    each = [np.polyfit(seed["mix/entropy"], seed[score], 1)[0] for _, seed in cells.groupby("seed")]
    return [np.mean(each), *stats.t.interval(0.95, len(each) - 1, np.mean(each), stats.sem(each))]


@pytest.mark.parametrize(
    ("page", "ends", "least"),
    [(ANSWERS, r"\n(?=#|\*\*)", 60), (ROOT / "README.md", r"\n\s*\n|\n(?=- )", 4)],
    ids=["answers", "readme"],
)
def test_the_numbers_of_the_answers_are_those_of_the_studies_next_to_them(page, ends, least):
    """A study that goes on changes its numbers, and no answer may go on to say what it no longer shows."""
    checked = 0
    for part in re.split(ends, page.read_text()):
        links = [page.parent / target for target, _ in LINK.findall(part) if target.endswith("report.md")]
        there = set().union(*(figures_of(link.parent) for link in links))
        for number in FIGURE.findall(LINK.sub("", part)) if links else []:
            assert number in there or number in SETTINGS, f"{number}: {part}"
            checked += 1
    assert checked > least


def test_the_numbers_in_the_docstrings_of_studies_are_those_of_the_answers():
    answered = FIGURE.findall(ANSWERS.read_text())
    texts = [path.read_text().split("\nResult ")[1] for path in ROOT.glob("studies/[a-z]*.py")]
    said = FIGURE.findall(" ".join(text.split('"""')[0] for text in texts))
    assert len(said) > 5
    assert set(said) <= set(answered)
