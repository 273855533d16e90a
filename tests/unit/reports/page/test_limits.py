"""Each rule finds what was planted, with its size, and nothing where nothing was; its words are in the golden pages."""

import dataclasses
import functools
import math
import operator
from collections.abc import Callable

import jinja2.meta
import numpy as np
import pytest
from scipy import stats

from adalayers.results.study_file import Run
from reports.page.finding import finding
from reports.page.limits import RULES, limits
from reports.page.next_run import next_run
from reports.render import TEMPLATES, environment
from tests.helpers.made_up import CONTROL, CORE, MadeUp
from tests.helpers.pages import evidence_of


def sound(**how) -> MadeUp:
    """A study without limits but its one rate: many seeds, arms told apart, nothing at an edge."""
    levels = np.linspace(0, 2, 15)
    effects = dict(
        zip([arm for arm in (*CORE, "uniform", "last", "best") if arm != CORE[4]], levels, strict=False)
    )
    effects[CORE[4]] = 3.0  # alpha 8, lambda 1e-3: inside the core
    made = MadeUp(**{"seeds": 25, "search": 0, "evaluations": 2, "effects": effects, "examples": 0, **how})
    made.arms[-1]["role"] = "core"
    made.predictions.clear()
    for row in made.of(CONTROL):
        row["mix/entropy"] *= 0.9  # a mix that has moved
    return made


def found(made: MadeUp, tmp_path) -> dict:
    return {limit.name: dict(limit.rows) for limit in limits(evidence_of(made, tmp_path))}


def test_a_sound_study_is_limited_by_its_rate_and_the_missing_interval_alone(tmp_path):
    assert set(found(sound(), tmp_path)) == {"rate", "without_examples"}


def of_arm(arm: str, **changed: object) -> Callable[[MadeUp], object]:
    return lambda made: [row.update(changed) for row in made.of(arm)]


def study(place: str, value: object) -> Callable[[MadeUp], None]:
    """Return what sets one value of `study.json`; place: the keys that lead to it."""
    *into, last = place.split()

    def change(made: MadeUp) -> None:
        functools.reduce(operator.getitem, into, made.study)[last] = value

    return change


RUN = dataclasses.asdict(Run(confirmed=1, commit="a", dirty=False, machine="cpu, torch 2"))
OTHERS = [RUN, {**RUN, "machine": "H100, torch 2"}, {**RUN, "machine": "other", "confirmed": 0}]
CUT = {"train": {"examples": 385}, "test": {"examples": 10}}
FAULTS: dict[str, tuple[Callable[[MadeUp], object], str, dict]] = {
    "dirty run": (study("runs history", [{**RUN, "dirty": True}]), "code", {"dirty": True, "commits": 1}),
    "commits": (study("runs history", [RUN, {**RUN, "commit": "b"}]), "code", {"commits": 2}),
    "machines": (study("runs history", OTHERS), "code", {"machines": ["H100, torch 2", "cpu, torch 2"]}),
    "diverged": (
        of_arm(CORE[2], status="diverged"),
        "without_result",
        {"lost": {"failed": 0, "diverged": 25}},
    ),
    "larger": (
        of_arm(CORE[3], parameters=400_000),
        "parameters",
        {"high": 400_000, "high_arm": "α = 8, λ = 0"},
    ),
    "cut": (study("environment dataset truncated", CUT), "truncated", {}),
    "shared": (study("environment dataset shared", {"test": 16}), "shared", {"n": 16, "of": 1043}),
    "taken": (of_arm("last", taken_from="another"), "taken", {"sources": [("another", 25)]}),
    "late": (of_arm(CORE[5], **{"config/epochs": 9, "best_epoch": 9}), "late", {"arms": ["α = 8, λ = 0.01"]}),
}


@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_is_found(tmp_path, name):
    change, rule, rows = FAULTS[name]
    made = sound()
    for row in made.trials:
        row |= {"config/epochs": 9, "best_epoch": 2}
    change(made)
    told = found(made, tmp_path)[rule]
    assert {key: told[key] for key in rows} == rows


def test_the_power_of_few_seeds_is_that_of_the_studys_own_analyses(tmp_path):
    """Six seeds: a single t test at the step of Holm's procedure that stopped; of five no verdict comes."""
    evidence = evidence_of(MadeUp(seeds=6, search=0, evaluations=2, noise=0.05), tmp_path)
    claim = next(claim for claim in evidence.claims if claim.primary and not claim.decided)
    critical = stats.t.isf(claim.level / 2, 5)
    power = stats.nct.sf(critical, 5, math.sqrt(6)) + stats.nct.cdf(-critical, 5, math.sqrt(6))
    (told,) = (limit.rows for limit in limits(evidence) if limit.name == "power")
    assert told["chance"] == pytest.approx(power, abs=0.02)


@pytest.mark.parametrize("later", [0.2, -0.3])
def test_seeds_after_a_decision_that_disagree_with_it(tmp_path, later):
    made = MadeUp(seeds=12, search=0).ran((6,), (12,))
    wobble = (0.0, 0.0001, -0.0001)
    for row, control, place in zip(made.of("uniform"), made.of(CONTROL), range(12), strict=True):
        difference = (0.2 if place < 6 else later) + wobble[place % 3]
        row["test/matthews"] = control["test/matthews"] + difference
    told = found(made, tmp_path).get("after_decision", {"names": []})
    assert told["names"] == (["equal weights"] if later < 0 else [])


def shifted(made: MadeUp, differences: list[float]) -> None:
    """Put the differences of one arm to the control, by seed."""
    for row, control, difference in zip(made.of("uniform"), made.of(CONTROL), differences, strict=True):
        row["test/matthews"] = control["test/matthews"] + difference


def test_a_seed_that_holds_most_of_a_comparisons_variance(tmp_path):
    """Of ten like the normal distribution's quantiles the largest holds 30%; one far off holds nearly all."""
    made = MadeUp(seeds=10, search=0, examples=0)
    even = [0.01 * value for value in (-1.5, -1.0, -0.7, -0.4, -0.1, 0.1, 0.4, 0.7, 1.0, 1.5)]
    shifted(made, even)
    assert "equal weights" not in [
        name for name, *_ in found(made, tmp_path).get("heavy", {"found": []})["found"]
    ]
    shifted(made, [*even[:-1], 0.15])
    (told,) = [row for row in found(made, tmp_path)["heavy"]["found"] if row[0] == "equal weights"]
    assert told == ("equal weights", 10, pytest.approx(0.88, abs=0.01))


def test_arms_that_learned_nothing_come_first_where_the_control_is_one(tmp_path):
    made = MadeUp(seeds=6, search=0)
    for arm in ("uniform", CONTROL):
        for row in made.of(arm)[:3]:
            row["test/matthews"] = 0.0
        told = finding(evidence_of(made, tmp_path))
        assert told.mostly_nothing == (arm == CONTROL)
    assert set(told.nothing) == {"equal weights", "α = 1, λ = 0"}


@pytest.mark.parametrize(
    ("seeds", "kind"), [(3, "six"), (6, "seeds")], ids=["up to the sixth", "what finds the smallest effect"]
)
def test_the_next_run_is_a_command_with_its_price(tmp_path, seeds, kind):
    made = MadeUp(seeds=seeds, search=0)
    for row in made.trials:
        row["seconds"] = 60.0
    told = next_run(evidence_of(made, tmp_path))
    assert told.kind == kind
    assert f"--seeds {told.seeds}" in told.command
    assert told.minutes == pytest.approx(len(made.arms) * (told.seeds - seeds))


def test_every_rule_has_its_words_and_no_template_a_name_that_nobody_gives():
    words = environment().get_template("limits.md.j2").module
    assert all(hasattr(words, rule.__name__) for rule in RULES)
    given = {
        "page.md.j2": {"title", "runs", "dirty", "finding", "own_draws", "lead", "scores"}
        | {"planned", "limits", "setup", "next", "problems"},
        "details.md.j2": {"title", "chapters", "limits", "problems"},
        "cover.md.j2": {"title", "questions", "entries", "arms", "nothing", "told", "left_out", "distances"}
        | {"correlations"}
        | {"figures", "problems", "error"},
        "decide.md.j2": {"claims", "heads", "rows", "decided", "level", "delta"},
        "html.j2": {"title", "body"},
        "index.md.j2": {"current", "aside", "broken", "covers"},
    }
    for path in TEMPLATES.glob("*.j2"):
        asked = jinja2.meta.find_undeclared_variables(environment().parse(path.read_text()))
        assert asked <= given.get(path.name, set()), path.name
