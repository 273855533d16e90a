"""What parts of the page show, against the numbers that were put in."""

from __future__ import annotations

import dataclasses

import pandas as pd
import pytest

from adalayers.comparisons import pair
from reports.evidence.best_set import BestSet, Excluded
from reports.evidence.evidence import Evidence
from reports.page.report import Page, details_page, short_page
from reports.parts import (
    answer,
    arms,
    core,
    importances,
    interaction,
    mix,
    parallel,
    quality,
    settings,
    setup,
)
from reports.parts.part import Part
from reports.reading.load import Loaded, load
from tests.helpers.made_up import CONTROL, CORE, MadeUp

OTHER = "alpha=8 entropy_weight=0"


def read(made: MadeUp, tmp_path) -> Loaded:
    return load(made.write(tmp_path / "study"))


def small(tmp_path, **how) -> Evidence:
    return Evidence(read(MadeUp(**{"seeds": 2, "search": 2, "evaluations": 2, **how}), tmp_path))


def test_the_core_is_a_grid_of_its_arms(tmp_path):
    evidence = small(tmp_path)
    found = core.info(evidence)
    assert found.columns == (1.0, 8.0, 64.0, 512.0)
    assert found.rows == ("λ = 0", "λ = 0.001", "λ = 0.01")
    assert {place: row["arm"] for place, row in found.cells.items()} == {
        (f"λ = {weight:g}", float(alpha)): f"alpha={alpha} entropy_weight={weight:g}"
        for alpha in (1, 8, 64, 512)
        for weight in (0, 0.001, 0.01)
    }


def test_three_factors_are_lines_of_two(tmp_path):
    made = MadeUp(seeds=2, search=0, evaluations=2)
    made.study["request"]["factors"].append({"name": "positions", "label": "order", "scale": "choice"})
    for arm in made.arms:
        arm["config"]["positions"] = arm["name"] in CORE[6:]
    for row in made.trials:
        row["config/positions"] = row["arm"] in CORE[6:]
    evidence = Evidence(read(made, tmp_path))
    assert core.info(evidence).rows[:2] == ("λ = 0, order = false", "λ = 0, order = true")
    assert interaction.info(evidence).parts.empty  # positions follow from alpha: no whole grid


def test_one_factor_has_no_interaction(tmp_path):
    made = MadeUp(seeds=2, search=0, evaluations=2)
    made.study["request"]["factors"] = made.study["request"]["factors"][:1]
    for arm in made.arms:
        arm["role"] = "core" if arm["name"].endswith("entropy_weight=0") else ""
    found = interaction.info(Evidence(read(made, tmp_path)))
    assert found.parts["part"].tolist() == [("alpha",)]


def test_cells_that_predict_alike_are_counted_and_leave_no_interval(tmp_path):
    made = MadeUp(seeds=3, search=0, evaluations=2)
    assert interaction.info(Evidence(read(made, tmp_path))).alike == 0
    same = {CORE[1], CORE[2], CORE[5]}
    trials = {row["trial_id"] for arm in same for row in made.of(arm)}
    for row in made.predictions:
        if row["trial_id"] in trials:
            row["prediction"] = 7
    evidence = Evidence(read(made, tmp_path))
    assert len(evidence.alike(CORE)) == 2  # two of the three say nothing new
    found = interaction.info(evidence)
    assert found.alike == 2
    assert found.parts[["low", "high"]].isna().all(axis=None)


def test_how_it_was_done(tmp_path):
    shown = setup.info(small(tmp_path))
    assert (shown.tools, shown.speed_factors, shown.seeds, shown.tested) == (
        ("optuna", "asha"),
        ("α",),
        2,
        True,
    )
    assert shown.dropped == (("published", "its cutoff 0.2 is not below 1/6"),)
    assert shown.fixed == ()
    assert shown.facts["trained parameters"].startswith("165,512")
    assert shown.facts["seeds"] == "confirm 1 and 2; search 0"


def test_arms_and_their_fusion(tmp_path):
    found = arms.info(small(tmp_path))
    assert found.arms["arm"].tolist() == [*CORE, "uniform", "last", "best"]
    assert found.score == "test Matthews correlation (-1 to 1)"
    assert found.lines == ("λ = 0", "λ = 0.001", "λ = 0.01")
    assert "| fusion |" not in "\n".join(arms.section(found))


@pytest.mark.parametrize(
    ("means", "told"),
    [
        ({}, "(95%, after Hsu). Ruled out: `w`, `x` and `y`."),
        ({"a": 0.5}, "; `a` has the best mean (0.500). Ruled out: "),
        ({"a": 0.5, "b": 0.4}, ": `a` (mean 0.500) and `b` (mean 0.400). The others are ruled out."),
    ],
)
def test_advice_names_only_arms_whose_mean_is_known(tmp_path, means, told):
    ruled_out = tuple(Excluded(arm, "a", 0.1, 3) for arm in "wxy")
    best = BestSet("f1", "test", 1, ("a", "b"), ruled_out, cheapest="b", saves=True)
    text = "\n".join(
        answer.section(dataclasses.replace(answer.info(small(tmp_path)), best=best, means=means))
    )
    assert told in text


@pytest.mark.parametrize(
    ("machine", "told"),
    [("cpu, torch 2.13.0", None), ("H100, torch 2.11.0", "H100, torch 2.11.0"), ("", None)],
)
def test_a_page_names_the_machine_of_its_trials_where_the_last_run_had_another(tmp_path, machine, told):
    made = MadeUp(seeds=2)
    made.study["runs"]["history"] = [
        {"confirmed": 30, "commit": "a", "machine": machine},
        {"confirmed": 0, "commit": "a", "machine": "cpu, torch 2.13.0"},
    ]
    facts = setup.info(Evidence(load(made.write(tmp_path)))).facts
    assert facts.get("machines of confirmed trials") == told


def test_parts_under_one_title_are_one_section(tmp_path, monkeypatch):
    made = [
        Part("A", lambda evidence: 1, lambda info: ["one"]),
        Part("A", lambda evidence: None, lambda info: ["never"]),
        Part(lambda info: f"{'A' * info}", lambda evidence: 1, lambda info: ["two", ""]),
        Part("B", lambda evidence: 1, lambda info: []),
        Part("C", lambda evidence: 1, lambda info: ["three"]),
    ]
    monkeypatch.setattr("reports.page.report.parts", lambda names, short: made)
    text = Page(small(tmp_path), tuple("vwxyz")).text()
    assert text.endswith("\n\n## A\n\none\n\ntwo\n\n## C\n\nthree\n")


def test_mix_of_the_best_trial_at_its_best_epoch(tmp_path):
    made = MadeUp(seeds=2, effects={CORE[6]: 0.3})
    made.study["environment"]["hidden_states"] = ["00", "01"]  # the study's own choice; this arm has another
    shown = mix.info(Evidence(read(made, tmp_path))).best
    best = max(made.of(CORE[6]), key=lambda row: row["val/matthews"])
    assert shown.best == shown.shown
    assert best["trial_id"] in shown.best
    point = next(
        row
        for row in made.history
        if row["trial_id"] == best["trial_id"] and row["epoch"] == best["best_epoch"]
    )
    assert list(shown.steps["layer"]) == [f"layer {n}" for n in range(1, 7)]
    assert list(shown.steps["best epoch"]) == [point[f"mix/weight_{n:02d}"] for n in range(1, 7)]
    assert shown.steps.shape == (6, 7)
    assert shown.history["step"].nunique() == 10  # mix weights between evaluations too


def test_a_best_model_without_learned_weights(tmp_path):
    shown = mix.info(Evidence(read(MadeUp(effects={"uniform": 0.9}), tmp_path))).best
    assert (shown.kind, shown.best != shown.shown) == ("uniform", True)
    assert "arm `uniform`" in shown.best


def test_trained_models_with_their_level_line_and_mix(tmp_path):
    made = MadeUp(seeds=2, search=0, evaluations=2)
    info = mix.info(Evidence(read(made, tmp_path)))
    assert len(info.rows) == 2 * len(CORE)
    rows = {row["trial_id"]: row for row in made.trials}
    for model in info.rows.to_dict("records"):
        row = rows[model["trial_id"]]
        assert (model["level"], model["entropy"]) == (row["config/alpha"], row["mix/entropy"])
        assert model["line"] == f"λ = {row['config/entropy_weight']:g}"
        assert model["live"] == row["mix/live_layers"]
    assert info.layers == tuple(f"mix/weight_{n:02d}" for n in range(1, 7))
    for row in made.trials:
        row["mix/live_layers"] = 6
    panels = [len(mix.draw_entropy(shown).axes) for shown in (info, mix.info(Evidence(read(made, tmp_path))))]
    assert panels == [2, 1]  # live layers are drawn where some are cut


def test_no_function_changes_what_it_is_given(tmp_path):
    loaded = read(MadeUp(failed=((OTHER, 1),)), tmp_path)
    before = [frame.copy(deep=True) for frame in (loaded.results.trials, loaded.results.history)]
    evidence = Evidence(loaded)
    pages = short_page(evidence), details_page(evidence)
    assert all(page.shown for page in pages)  # works out every table
    small = {
        name: value.copy(deep=True)
        for name, value in vars(evidence).items()
        if isinstance(value, pd.DataFrame)
    }
    assert len(small) > 5
    for page in pages:
        page.figures()
        page.text()
    for frame, copy in zip((loaded.results.trials, loaded.results.history), before, strict=True):
        pd.testing.assert_frame_equal(frame, copy)
    for name, copy in small.items():
        pd.testing.assert_frame_equal(getattr(evidence, name), copy)


def test_what_an_arm_sets_itself_is_not_called_alike_in_all(tmp_path):
    def roles():
        return {name: role for name, role, _ in setup.info(evidence).hyperparameters}

    made = MadeUp(seeds=2, search=0, evaluations=2)
    evidence = Evidence(read(made, tmp_path))
    assert settings.info(evidence).shared["k"] == 64
    assert "batch_size" in settings.info(evidence).shared
    assert roles()["batch_size"] == "fixed"
    made.arms[1]["config"]["batch_size"] = 600
    for arm in made.arms:
        arm["config"]["k"] = 128
    evidence = Evidence(read(made, tmp_path))
    assert settings.info(evidence).shared["k"] == 128
    assert "batch_size" not in settings.info(evidence).shared
    assert roles()["batch_size"] == "fixed, unless an arm says otherwise"


def test_a_pair_of_arms_is_not_called_a_comparison_with_the_control(tmp_path):
    made = MadeUp(seeds=6, search=0, evaluations=2)
    made.study["request"]["comparisons"] = [
        dataclasses.asdict(pair(arm, other)) for arm, other in (("last", CONTROL), ("last", "uniform"))
    ]
    figure = quality.draw(quality.info(Evidence(read(made, tmp_path))))
    names = [tick.get_text().replace("\n", " ") for tick in figure.axes[0].get_yticklabels()]
    assert names == ["last instead of the control (n = 6)", "last instead of uniform (n = 6)"]


def test_trials_of_searches_for_different_components_are_not_pooled(tmp_path):
    made = MadeUp(search=20)
    evidence = Evidence(load(made.write(tmp_path / "one")))
    assert evidence.searches == 1
    assert importances.info(evidence) is not None
    searched = [row for row in made.trials if row["stage"] == "search"]
    for place, row in enumerate(searched):
        row["search"] = "ab"[place % 2]
    evidence = Evidence(load(made.write(tmp_path / "two")))
    assert evidence.searches == 2
    assert [part.info(evidence) for part in (importances, parallel)] == [None, None]
