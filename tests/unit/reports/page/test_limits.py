"""Each rule finds what was planted, with its size, and nothing where nothing was; its words are in the golden pages."""

import dataclasses
import math
from collections.abc import Callable, Iterable

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from adalayers.results.interim_analyses import EXTENSIONS
from adalayers.results.study_file import Run
from reports.evidence import planning
from reports.page.finding import finding
from reports.page.limits import RULES, limits, too_coarse
from reports.page.next_run import next_run
from reports.page.setup import setup
from reports.render import environment
from tests.helpers.made_up import CONTROL, CORE, MadeUp
from tests.helpers.pages import evidence_of


def sound() -> MadeUp:
    """A study without limits but its one rate: many seeds, arms told apart, nothing at an edge."""
    others = [arm for arm in (*CORE, "uniform", "last", "best") if arm != CORE[4]]
    effects = dict(zip(others, np.linspace(0, 2, 15), strict=False))
    effects[CORE[4]] = 3.0  # alpha 8, lambda 1e-3: inside the core
    made = MadeUp(seeds=25, search=0, evaluations=2, effects=effects)
    made.arms[-1]["role"] = "core"
    for row in made.of(CONTROL):
        row["mix/entropy"] *= 0.9  # a mix that has moved
    return made


def found(made: MadeUp, tmp_path) -> dict:
    return {name: dict(rows) for name, rows in limits(evidence_of(made, tmp_path))}


def of_arm(arm: str, **changed: object) -> Callable[[MadeUp], object]:
    return lambda made: [row.update(changed) for row in made.of(arm)]


def runs(*changes: dict) -> Callable[[MadeUp], object]:
    history = [dataclasses.asdict(Run(**{"confirmed": 1, "machine": "cpu", **change})) for change in changes]
    return lambda made: made.study["runs"].update(history=history)


def dataset(**changed: object) -> Callable[[MadeUp], object]:
    return lambda made: made.study["environment"]["dataset"].update(changed)


CUT = {"train": {"examples": 385}, "test": {"examples": 10}}
FAULTS: list[tuple[str, str, object, Callable[[MadeUp], object]]] = [
    ("code", "dirty", True, runs({"dirty": True})),
    ("code", "commits", 2, runs({"commit": "a"}, {"commit": "b"})),
    ("code", "machines", ["GPU", "cpu"], runs({}, {"machine": "GPU"}, {"confirmed": 0, "machine": "a"})),
    ("without_result", "lost", {"failed": 0, "diverged": 25}, of_arm(CORE[2], status="diverged")),
    ("parameters", "high_arm", "α = 8, λ = 0", of_arm(CORE[3], parameters=400_000)),
    ("truncated", "shares", {"train": 385 / 7695}, dataset(truncated=CUT)),
    ("shared", "n", 16, dataset(shared={"test": 16})),
    ("rate", "searched", ["α = 8, λ = 0"], of_arm(CORE[3], **{"config/lr": 1.0})),
    ("taken", "sources", [("another", 25)], of_arm("last", taken_from="another")),
    ("late", "arms", ["α = 8, λ = 0.01"], of_arm(CORE[5], **{"config/epochs": 9, "best_epoch": 9})),
]


def test_a_sound_study_has_two_limits_and_each_fault_is_found(tmp_path):
    assert set(found(sound(), tmp_path)) == {"rate", "without_examples"}
    for rule, key, size, change in FAULTS:
        made = sound()
        for row in made.trials:
            row |= {"config/epochs": 9, "best_epoch": 2}
        change(made)
        assert found(made, tmp_path)[rule][key] == size, rule


def test_the_power_of_few_seeds_is_that_of_the_studys_own_analyses(tmp_path):
    """Six seeds: a single t test at the step of Holm's procedure that stopped; of five no verdict comes."""
    evidence = evidence_of(MadeUp(seeds=6, search=0, evaluations=2, noise=0.05), tmp_path)
    claim = next(claim for claim in evidence.claims if claim.primary and not claim.decided)
    critical = stats.t.isf(claim.level / 2, 5)
    power = stats.nct.sf(critical, 5, math.sqrt(6)) + stats.nct.cdf(-critical, 5, math.sqrt(6))
    (told,) = (rows for name, rows in limits(evidence) if name == "power")
    assert told["chance"] == pytest.approx(power, abs=0.02)


def test_seeds_are_planned_at_the_error_that_the_look_beyond_has(tmp_path):
    evidence = evidence_of(MadeUp(seeds=6, search=0, evaluations=2, noise=0.012), tmp_path)
    effect, later = evidence.request.smallest_effect, EXTENSIONS / 2 / evidence.analyses[-1].level
    open_ = [claim for claim in evidence.planned if not claim.decided]
    needed = [planning.seeds_for(effect, claim.sd, later * claim.level) for claim in open_]
    assert next_run(evidence).seeds == max(filter(None, needed))


def test_a_setting_that_some_arms_lack_is_not_told_of_all(tmp_path):
    made = sound()
    for arm in made.arms[1:]:
        arm["config"]["k"] = 64
    assert setup(evidence_of(made, tmp_path))["of_some"] == ["k"]


def shifted(made: MadeUp, differences: Iterable[float]) -> None:
    """Put the differences of one arm to the control, by seed."""
    for row, control, difference in zip(made.of("uniform"), made.of(CONTROL), differences, strict=True):
        row["test/matthews"] = control["test/matthews"] + difference


@pytest.mark.parametrize("later", [0.2, -0.3, 0.9])
def test_seeds_after_a_decision_that_disagree_with_it(tmp_path, later):
    made = MadeUp(seeds=12, search=0).ran((6,), (12,))
    wobble = 1e-4 * np.tile([0, 1, -1], 4)
    shifted(made, np.repeat([0.2, later], 6) + wobble)
    told = found(made, tmp_path).get("after_decision", {"names": []})
    assert told["names"] == ([] if later == 0.2 else ["equal weights"])


def test_a_seed_that_holds_most_of_a_comparisons_variance(tmp_path):
    """Of ten normal ones, one may well hold 63%, which is less than seldom; one far off holds nearly all."""
    made = MadeUp(seeds=10, search=0)
    even = [-1.5, -1.0, -0.7, -0.4, -0.1, 0.1, 0.4, 0.7, 1.0]
    shares = []
    for last in (3.5, 15.0):
        shifted(made, np.multiply(0.01, [*even, last]))
        rows = found(made, tmp_path).get("heavy", {"found": []})["found"]
        shares.append([row for row in rows if row[0] == "equal weights"])
    assert shares == [[], [("equal weights", 10, pytest.approx(0.88, abs=0.01))]]


def test_arms_that_learned_nothing_come_first_where_the_control_is_one(tmp_path):
    made = MadeUp(seeds=6, search=0)
    for arm in ("uniform", CONTROL):
        for row in made.of(arm)[:3]:
            row["test/matthews"] = 0.0
        told = finding(evidence_of(made, tmp_path))
        assert told.mostly_nothing == (arm == CONTROL)
    assert set(told.nothing) == {"equal weights", "α = 1, λ = 0"}


def test_rates_that_differ_between_arms_are_told(tmp_path):
    evidence = evidence_of(sound(), tmp_path)
    rows = [(CONTROL, 3e-4, True), (CONTROL, 1e-3, False), ("uniform", 1e-3, True), ("last", 1e-3, True)]
    evidence.__dict__["rates"] = pd.DataFrame(rows, columns=["arm", "lr", "kept"]).assign(edge="")
    by_rate = [(3e-4, ["α = 1, λ = 0"]), (1e-3, ["equal weights", "last layer"])]
    assert limits(evidence)[0] == ("own_rates", {"by_rate": by_rate})


def test_every_rule_has_its_words():
    words = environment().get_template("limits.md.j2").module
    assert all(hasattr(words, rule.__name__) for rule in RULES)
    lost = {"lost": {"failed": 0, "diverged": 2}, "arms": [], "unfinished": 0}
    assert "again" not in words.without_result(lost), "a trial that diverged is not tried again"
    assert "tries them again" in words.without_result(lost | {"lost": {"failed": 1, "diverged": 0}})


def test_where_nothing_is_planned_or_believed_nothing_comes_next(tmp_path):
    evidence = evidence_of(sound(), tmp_path)
    evidence.__dict__["claims"] = []
    assert next_run(evidence).kind == "none"
    one = sound()
    one.trials.append({**one.of(CONTROL)[0], "trial_id": "again"})  # two of one seed: none is believed
    withheld = evidence_of(one, tmp_path)
    assert len(withheld.loaded.withheld) == 2
    assert next_run(withheld).kind == "none"
    withheld.__dict__["example_variances"] = {claim.key: 1.0 for claim in withheld.planned}
    assert too_coarse(withheld) == {}, "what is not believed needs no more examples"
