"""report.md: short enough to be read, with links that lead somewhere, and what it says of studies of every outcome."""

from __future__ import annotations

import functools
import re
import shlex
from collections.abc import Callable

import pytest

from reports.evidence.evidence import Evidence
from reports.page.report import details_page, short_page
from reports.parts import caveats, convergence
from reports.parts.cells import named
from reports.reading.load import load
from reports.write import build
from tests.helpers.golden import outcome, tied
from tests.helpers.made_layers import with_single_layers
from tests.helpers.made_up import CONTROL, MadeUp
from tests.helpers.studying import without_figures

LIKE_NONE = ("some decided", "nothing differs", "caveats")
"""Outcomes whose pages are each the longest in some part."""


def evidence_of(made: MadeUp, tmp_path) -> Evidence:
    return Evidence(load(made.write(tmp_path)))


def page(made: MadeUp, tmp_path) -> str:
    return short_page(evidence_of(made, tmp_path)).text()


def part(text: str, title: str) -> str:
    return text.split(f"## {title}\n", 1)[1].split("\n## ", 1)[0]


@pytest.fixture(scope="module")
def known(tmp_path_factory) -> Callable[[str], Evidence]:
    """Return what gives the evidence of one of `OUTCOMES`, worked out once for all tests."""
    return functools.cache(lambda name: outcome(name, tmp_path_factory.mktemp("study")))


@pytest.mark.parametrize("study", LIKE_NONE)
def test_it_is_short_and_every_link_leads_somewhere(known, study):
    evidence = known(study)
    text, other = short_page(evidence).text(), details_page(evidence).text()
    assert len(re.findall(r"\w+", re.sub(r"\]\([^)]*\)", "]", text))) <= 1000
    figures = re.findall(r"\(figures/(\w+)\.svg\)", text)
    assert 2 < len(figures) == len(set(figures)) <= 5
    assert len(re.findall(r"^\|(?: --- \|)+$", text, re.M)) <= 3
    anchors = set(re.findall(r"details\.md(?:#([^)]*))?\)", text)) - {""}
    assert anchors
    assert anchors <= {anchor(title) for title in re.findall(r"^## (.*)$", other, re.M)}


def anchor(title: str) -> str:
    """Return what a Markdown viewer makes of a heading: small letters, no punctuation, dashes for spaces."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


@pytest.mark.parametrize("study", LIKE_NONE)
def test_no_sentence_with_a_number_is_said_twice(known, study):
    text = short_page(known(study)).text()
    answer = part(text, "Answer")
    rest = text.replace(answer, "")
    sentences = [one.strip() for one in re.split(r"(?<=[.;])\s+|\n", answer)]
    numbered = [one for one in sentences if re.search(r"\d", one)]
    assert all(len(one) > 10 for one in numbered)
    assert len(numbered) > 2
    assert [one for one in numbered if one in rest] == []


def test_equal_predictions_decide_where_there_are_enough_seeds(tmp_path):
    made = tied(MadeUp(seeds=6, search=0, evaluations=2))
    decided = []
    for _ in range(3):
        decided.append(sum(claim.decided for claim in evidence_of(made, tmp_path).claims if claim.primary))
        del made.trials[-1]  # `best` on its last seed: five are left, which is enough; four are not
    assert decided == [8, 8, 7]


def test_predictions_that_contradict_the_scores_are_no_tie(tmp_path):
    made = tied(MadeUp(seeds=6, search=0))
    for row in made.of("last"):
        row["test/matthews"] += 0.01 * row["seed"]
    (last,) = [claim for claim in evidence_of(made, tmp_path).claims if claim.arm == "last"]
    assert not last.tie
    assert last.difference == pytest.approx(0.035)


@pytest.mark.parametrize(
    ("kind", "saturated", "shown"),
    [
        *(("first", True, False), ("last", True, False)),
        *(("alike", False, False), ("apart", False, True)),
    ],
)
def test_speed_is_drawn_only_where_it_can_be_compared(tmp_path, kind, saturated, shown):
    made = MadeUp(seeds=4, search=0, evaluations=1 if kind == "first" else 5)
    slow = {row["trial_id"]: row["seed"] for row in made.trials if row.get("config/alpha") == 512}
    for row in made.history:
        if kind == "last" and row["epoch"] == 5:
            row["val/matthews"] = 0.9
        if kind == "apart" and row["trial_id"] in slow:
            row["step"] = 20 * row["step"] + slow[row["trial_id"]]
    evidence = evidence_of(made, tmp_path)
    assert (evidence.pace.saturated, convergence.info(evidence).decided) == (saturated, shown)
    assert ("figures/convergence" in short_page(evidence).text()) == shown


@pytest.mark.parametrize(("evaluations", "steps"), [(3, {400}), (5, {600, 800})])
def test_steps_of_convergence_are_drawn_where_they_differ(tmp_path, evaluations, steps):
    evidence = evidence_of(MadeUp(seeds=2, search=0, evaluations=evaluations), tmp_path)
    info = convergence.info(evidence)
    assert set(info.core["median"]) == steps
    assert info.steps_differ == (len(steps) > 1)
    assert ("convergence" in details_page(evidence).figures()) == info.steps_differ


def test_main_caveats_are_the_most_serious_ones(known):
    info = caveats.info(known("caveats"))
    severities = [caveat.severity for caveat in info.main]
    assert severities == sorted(severities, key=("serious", "caution").index)  # and no mere note
    assert {caveat.on_top for caveat in info.caveats} == {True, False}
    assert not any(caveat.on_top for caveat in info.main)  # those are said on top
    (text,) = caveats.short_section(info)
    assert text.count("\n- ") == caveats.MOST  # and a line that says how many more there are


def test_a_comparison_is_named_by_its_levels_whatever_their_words(tmp_path):
    made = MadeUp(seeds=2, search=0)
    names = {1: "none", 8: "a few", 64: "many of=them", 512: "all"}
    for arm in made.arms[:12]:
        arm["config"]["alpha"] = names[arm["config"]["alpha"]]
    for row in made.trials:
        row["config/alpha"] = names.get(row.get("config/alpha"))
    evidence = evidence_of(made, tmp_path)
    said = [named(claim, evidence.plan) for claim in evidence.claims]
    assert said[:3] == [f"α = {name} instead of none" for name in ("a few", "many of=them", "all")]
    assert "λ = 0.01 instead of 0, at α = a few" in said
    assert "α = a few, λ = 0.01 together" in said


# The next run


def next_run(made: MadeUp, tmp_path) -> str:
    return part(page(made, tmp_path), "Limits and the next run")


def commanded(text: str) -> list[str]:
    (command,) = re.findall(r"```sh\n(.*)\n```", text)
    return shlex.split(command)


@pytest.mark.parametrize("failed", [(), tuple((CONTROL, seed) for seed in (1, 2, 3))])
@pytest.mark.parametrize("command", ["", "python studies/alpha_lambda.py --note 'half"])
def test_without_pairs_or_a_command_that_a_shell_can_read_no_number_of_seeds_is_named(
    tmp_path, failed, command
):
    made = MadeUp(seeds=3, search=0, failed=failed)
    made.study["request"]["command"] = command
    text = next_run(made, tmp_path)
    assert "100 seeds" not in text
    assert "--until-decided" not in text
    assert ("```" in text) == bool(command)  # as it was given


@pytest.mark.parametrize("seeds", [["--seeds", "3"], ["--seeds=3"], []])
def test_the_next_run_has_more_seeds_and_keeps_every_other_flag(tmp_path, seeds):
    made = MadeUp(seeds=3, search=0)
    kept = ["--backbone", "minilm", "--dataset", "my data; rm -r $HOME", "--note", "it's", "--seed", "3"]
    start = ["python", "studies/alpha_lambda.py"]
    made.study["request"]["command"] = shlex.join([*start, *kept[:4], *seeds, "--fresh", *kept[4:]])
    words = commanded(next_run(made, tmp_path))
    assert words[:-3] == [*start, *kept]
    assert words[-3:-1] == ["--until-decided", "--seeds"]
    assert int(words[-1]) > 3


def test_seeds_of_the_next_run_find_the_smallest_effect_of_what_is_open(tmp_path):
    made = MadeUp(seeds=4, search=0)
    text = next_run(made, tmp_path)
    wanted = int(re.findall(r"about (\d+) for one arm against another", text)[0])
    assert commanded(text)[-1] == str(wanted)
    made.study["request"]["seeds"] = 90  # of which four have been run
    assert int(commanded(next_run(made, tmp_path))[-1]) > 90
    made.study["request"] |= {"seeds": 4, "smallest_effect": None}
    assert int(commanded(next_run(made, tmp_path))[-1]) > 4


def test_a_study_that_did_not_finish_goes_on_with_its_own_command(tmp_path):
    made = MadeUp(seeds=3, search=0)
    made.study["runs"]["state"] = "interrupted"
    text = next_run(made, tmp_path)
    assert f"```sh\n{made.study['request']['command']}\n```" in text
    assert "not finished" in text


def test_where_seeds_would_not_help_no_run_is_named(tmp_path):
    made = MadeUp(seeds=3, search=0)
    made.study["request"]["smallest_effect"] = 0.0005
    text = next_run(made, tmp_path)
    assert "8 comparisons would take more than 100 seeds to decide" in text
    assert "```" not in text


def test_comparisons_that_name_no_arms_are_left_out(tmp_path):
    made = MadeUp(seeds=3, search=0)
    made.study["request"]["comparisons"] = [
        {},
        {"arm": "last", "control": CONTROL, "weights": {"last": 1.0, CONTROL: -1.0}},
    ]
    assert [claim.arm for claim in evidence_of(made, tmp_path).claims] == ["last"]


def test_a_study_s_own_parts_come_first_and_their_tables_are_in_the_details(tmp_path):
    made = with_single_layers(MadeUp(seeds=3, search=0, layers=12))
    made.study["request"]["parts"] = ["single_layers", "none_of_ours"]
    made.write(tmp_path)
    with without_figures():
        build(tmp_path)
    short, details = ((tmp_path / name).read_text() for name in ("report.md", "details.md"))
    heads = re.findall(r"^## (.+)$", short, re.M)
    assert heads[:3] == ["Question", "Answer", "Single layers"]
    assert "**Layers** (" in short
    assert "single_layers.png" in short
    assert "single_layers.png" not in details
    assert "| layer 12 |" not in short
    assert "(details.md#single-layers)" in short
    assert re.findall(r"^## (.+)$", details, re.M)[0] == "Single layers"
    assert "| layer 12 |" in details
    assert len(list((tmp_path / "figures").glob("single_layers.png"))) == 1
