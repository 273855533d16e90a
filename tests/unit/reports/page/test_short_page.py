"""report.md: short enough to be read, and what it says of studies of every outcome."""

import re
import shlex
from functools import partial

import pandas as pd
import pytest

from reports.page.report import short_page
from reports.parts import importances
from tests.helpers.golden import outcome, tied
from tests.helpers.made_up import CONTROL, MadeUp
from tests.helpers.pages import evidence_of, section

LIKE_NONE = ("some decided", "nothing differs", "caveats")
"""Outcomes whose pages are each the longest in some part."""


def page(made: MadeUp, tmp_path) -> str:
    return short_page(evidence_of(made, tmp_path)).text()


@pytest.mark.parametrize("study", LIKE_NONE)
def test_it_is_short_and_links_to_its_figures_alone(study, tmp_path):
    text = short_page(outcome(study, tmp_path)).text()
    assert len(re.findall(r"\w+", re.sub(r"\]\([^)]*\)", "]", text))) <= 1060
    figures = re.findall(r"\]\(figures/(\w+)\.png\)", text)
    assert 2 < len(figures) == len(set(figures)) <= 5
    assert len(re.findall(r"^\|(?: --- \|)+$", text, re.M)) <= 3
    assert text.count("](") == len(figures)  # the page is published without details and vector figures


def test_predictions_that_contradict_the_scores_are_no_tie(tmp_path):
    made = tied(MadeUp(seeds=6, search=0))
    for row in made.of("last"):
        row["test/matthews"] += 0.01 * row["seed"]
    (last,) = [claim for claim in evidence_of(made, tmp_path).claims if claim.arm == "last"]
    assert not last.tie
    assert last.difference == pytest.approx(0.035)


# The next run


def next_run(made: MadeUp, tmp_path) -> str:
    return section(page(made, tmp_path), "Limits and the next run")


def commanded(text: str) -> list[str]:
    (command,) = re.findall(r"```sh\n(.*)\n```", text)
    return shlex.split(command)


@pytest.mark.parametrize("failed", [tuple((CONTROL, seed) for seed in (1, 2, 3))])
@pytest.mark.parametrize("command", ["", "python studies/alpha_lambda.py --note 'half"])
def test_without_pairs_or_a_readable_command_no_number_of_seeds_is_named(tmp_path, failed, command):
    made = MadeUp(seeds=3, search=0, failed=failed)
    made.study["request"]["command"] = command
    text = next_run(made, tmp_path)
    assert "100 seeds" not in text
    assert "--until-decided" not in text
    assert ("```" in text) == bool(command)  # as it was given


@pytest.mark.parametrize("seeds", [["--seeds", "6"], ["--seeds=6"], []])
def test_the_next_run_has_more_seeds_and_keeps_every_other_flag(tmp_path, seeds):
    made = MadeUp(seeds=6, search=0)
    kept = ["--backbone", "minilm", "--dataset", "my data; rm -r $HOME", "--note", "it's", "--seed", "3"]
    start = ["python", "studies/alpha_lambda.py"]
    made.study["request"]["command"] = shlex.join([*start, *kept[:4], *seeds, "--fresh", *kept[4:]])
    words = commanded(next_run(made, tmp_path))
    assert words[:-3] == [*start, *kept]
    assert words[-3:-1] == ["--until-decided", "--seeds"]
    assert int(words[-1]) > 6


def test_where_importances_are_the_question_and_open_the_next_run_has_trials_beside_seeds(tmp_path):
    made = MadeUp(seeds=6, search=14, stopped=12)
    made.study["request"] |= {"parts": ["importances"], "scheduler": "asha"}
    made.study["request"]["command"] = "python studies/search.py --label a --trials 14"
    text = next_run(made, tmp_path)
    assert "takes 95 search trials that are trained to the end, here are 2; seeds add nothing" in text
    trials, seeds = map(shlex.split, re.findall(r"```sh\n(.*)\n```", text))
    assert trials[2:] == ["--trials", "95", "--scheduler", "fifo", "--label", "a-fifo"]
    assert seeds[2:7] == ["--label", "a", "--trials", "14", "--until-decided"]


def test_seeds_of_the_next_run_find_the_smallest_effect_of_what_is_open(tmp_path):
    made = MadeUp(seeds=6, search=0)
    text = next_run(made, tmp_path)
    wanted = int(re.findall(r"about \d+ to (\d+) for one arm against another", text)[0])
    assert commanded(text)[-1] == str(wanted)
    made.study["request"]["seeds"] = 90  # of which six have been run
    assert int(commanded(next_run(made, tmp_path))[-1]) > 90
    made.study["request"] |= {"seeds": 6, "smallest_effect": None}
    assert int(commanded(next_run(made, tmp_path))[-1]) > 6


def test_fewer_than_six_seeds_say_which_way_they_point_and_what_six_cost(tmp_path):
    made = MadeUp(seeds=5, search=0, effects={"uniform": 0.3})
    for row in made.trials:
        row["seconds"] = 10.0
    made.study["request"]["command"] = "python studies/alpha_lambda.py --seeds 5"
    text = next_run(made, tmp_path)
    assert "`uniform` +0.3" in text
    assert "on 5 of 5 seeds above" in text
    assert f"{10 * len(made.arms)} seconds" in text
    assert commanded(text) == ["python", "studies/alpha_lambda.py", "--seeds", "6"]


@pytest.mark.parametrize("seeds", [6, 8])
def test_what_a_failed_trial_withholds_waits_for_it_and_not_for_seeds(tmp_path, seeds):
    made = MadeUp(seeds=seeds, search=0, failed=((CONTROL, 4),))
    made.study["request"]["command"] = f"python studies/alpha_lambda.py --fresh --seeds {seeds}"
    text = page(made, tmp_path)
    assert "ew seeds for what is open" not in text
    following = section(text, "Limits and the next run")
    assert "waits for trials that failed" in following
    assert commanded(following) == ["python", "studies/alpha_lambda.py", "--seeds", str(seeds)]


def test_what_test_examples_leave_open_asks_for_more_of_them_and_not_for_seeds(tmp_path):
    made = MadeUp(seeds=6, search=0, examples=20)
    made.study["request"]["smallest_effect"] = 0.005
    text = next_run(made, tmp_path)
    assert "for other examples more seeds decide nothing there" in text
    assert "test examples, not seeds" in text
    assert "--smallest-effect" not in text
    plenty = MadeUp(seeds=6, search=0, examples=20)
    plenty.study["request"]["smallest_effect"] = 10.0
    assert "more seeds decide nothing" not in next_run(plenty, tmp_path)


def test_a_page_says_whose_trials_it_has_and_how_to_get_others(tmp_path):
    made = MadeUp(seeds=3, search=0)
    for row in made.of("last"):
        row["taken_from"] = "alpha_lambda/minilm-cola"
    made.study["request"]["seed"] = 5
    text = next_run(made, tmp_path)
    assert (
        f"3 of {len(made.trials)} trials are those of `alpha_lambda/minilm-cola`: no second witness." in text
    )
    assert "another `--seed`, such as 1005" in text


@pytest.mark.parametrize(("source", "said"), [("local:mine", True), ("nyu-mll/glue:cola", False)])
def test_the_files_of_ones_own_data_are_named_by_role(tmp_path, source, said):
    made = MadeUp(seeds=3, search=0)
    roles, unused = {"train": "a.csv", "test": "b_2.csv"}, ["c.json (another format)"]
    made.study["environment"]["dataset"] |= {"source": source, "roles": roles, "unused": unused}
    line = r"- Data: train = a.csv, test = b\_2.csv; not used: c.json (another format)."
    assert (line in next_run(made, tmp_path)) == said


def test_comparisons_that_name_no_arms_are_left_out(tmp_path):
    made = MadeUp(seeds=3, search=0)
    made.study["request"]["comparisons"] = [
        {},
        {"arm": "last", "control": CONTROL, "weights": {"last": 1.0, CONTROL: -1.0}},
    ]
    assert [claim.arm for claim in evidence_of(made, tmp_path).claims] == ["last"]


# What stands on top


def test_a_mix_that_stayed_uniform_is_said_first_and_in_every_figure(tmp_path):
    made = MadeUp(seeds=6, search=0, evaluations=2)
    evidence = evidence_of(made, tmp_path)
    shown = short_page(evidence)
    head = shown.text().split("\n## ", 1)[0]
    assert f"> **Effectively uniform: the mix of `{CONTROL}`" in head
    for figure in shown.figures().values():
        assert "Effectively uniform" in figure.get_suptitle()
        figure.draw_without_rendering()
        note = figure._suptitle.get_window_extent()
        assert not note.count_overlaps([legend.get_window_extent() for legend in figure.legends])
    for row in made.of(CONTROL):
        row["mix/entropy"] = 1.0
    shown = short_page(evidence_of(made, tmp_path))
    assert "ffectively uniform" not in shown.text()
    assert not any(figure.get_suptitle() for figure in shown.figures().values())


def test_scores_near_the_baseline_are_said_before_the_answer(tmp_path):
    made = MadeUp(seeds=6, search=0, evaluations=2)
    made.study["environment"]["dataset"]["baseline"]["test"] = 0.39
    head, answer, *_ = page(made, tmp_path).split("\n## ")
    assert "> **Near the baseline: the best arm closes" in head
    assert "Near the baseline" not in answer


def test_many_comparisons_of_one_kind_are_a_table(tmp_path):
    made = MadeUp(seeds=6, search=0, evaluations=2)
    made.study["request"]["factors"] = []
    for arm in made.arms:
        arm["role"] = ""
    answer = section(page(made, tmp_path), "Answer")
    assert "; the table below has each." in answer
    assert answer.count("\n| ") == 2 + len(made.arms) - 1  # two lines of heads, and each arm but the control


def test_importances_of_few_trials_are_no_answer():
    few, many = ({"done": n, "completed": n} for n in (40, 100))
    row = {"name": "lr", "importance": 0.5, "low": 0.4, "high": 0.6}
    info = partial(importances.Info, pd.DataFrame([row]), unread=(), plan=None)
    assert "open, 40 search trials completed of the 95 that are needed" in importances.answer(info(**few))[0]
    assert "`lr` 0.50" in importances.answer(info(**many))[0]
