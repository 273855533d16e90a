"""Every study is what it says: its space builds, its arms differ in what they name, its comparisons are of its arms."""

import ast
import dataclasses
import functools
import importlib
import math
import re

import numpy as np
import pytest
from ray.tune.search.optuna import OptunaSearch

from adalayers.command.studies import find_study
from adalayers.config import with_overrides
from adalayers.models.model import FusionModel
from adalayers.tasks.kinds import KINDS
from tests.helpers.planning import planned, planned_arms, setting_of
from tests.helpers.states import made_shape
from tests.helpers.studying import ROOT

STUDIES = sorted(path.stem for path in (ROOT / "studies").glob("*.py") if path.stem != "__init__")
HEADINGS = ("Question", "Scientific", "Nuisance", "Fixed", "Metric", "Budget", "Command", "Result")
PLACES = {
    "minilm on cola": (made_shape("sequence", 2, layers=6, width=384), "cola"),
    "minilm on conll2003": (made_shape("token", 9, layers=6, width=384), "conll2003"),
    "roberta-large on another": (made_shape("sequence", 2, 24, 1024, "roberta"), "another"),
    "bart's encoder on another": (made_shape("token", 9, 12, 1024, "bart"), "another"),
}
"""Where studies are planned: a shape, and a dataset that has a published set-up or none."""
SAMPLES = 25


def of_its_kind(study, shape):
    """Return the shape of a task that the study takes."""
    if study.task_kind is None:
        return shape
    return dataclasses.replace(shape, head=KINDS[study.task_kind].head)


every = pytest.mark.parametrize("name", STUDIES)
anywhere = pytest.mark.parametrize("place", PLACES)


@functools.cache
def plan_of(name, place):
    """Return a study, its setting in a place, and its plan there."""
    shape, dataset = PLACES[place]
    study = find_study(name)
    setting = setting_of(study, of_its_kind(study, shape), dataset)
    return study, setting, planned(study, setting)


@every
def test_a_study_says_what_it_asks_and_has_a_space_of_its_name(name):
    study, text = find_study(name), (ROOT / "studies" / f"{name}.py").read_text()
    doc = ast.get_docstring(ast.parse(text)) or ""
    assert tuple(re.findall(r"^([A-Z][a-z]+) {2,}", doc, re.M)) == HEADINGS
    assert study.name == name
    assert "?" in study.question
    assert f"studies/{name}.py" in doc
    assert (ROOT / "search_spaces" / f"{name}.py").is_file()
    assert len(text.splitlines()) <= 200, "readable in a minute"
    for part in study.page.parts:
        assert callable(importlib.import_module(f"reports.sections.{part}").section)


@every
@anywhere
def test_every_configuration_of_a_space_can_run(name, place):
    _, setting, made = plan_of(name, place)
    rng = np.random.RandomState(0)
    for search in made.searches:
        domains = search.space.domains
        drawn = [{key: of.sample(random_state=rng) for key, of in domains.items()} for _ in range(SAMPLES)]
        for values in [*search.first, *drawn]:
            with_overrides(search.base, values).check(setting.shape)
        grid, distributions = search.space.grid, OptunaSearch.convert_search_space(domains)
        for key in grid.keys() & domains.keys():
            assert grid[key], f"nothing of the grid of {key} is left"
            of = distributions[key]
            assert all(of._contains(of.to_internal_repr(value)) for value in grid[key]), f"{key}: {grid[key]}"


@every
def test_a_model_of_every_arm_can_be_built(name):
    study = find_study(name)
    shape = of_its_kind(study, made_shape("token", 5, layers=3, width=16))
    for arm in planned(study, setting_of(study, shape, k=16, heads=4, feedforward=8)).arms:
        assert FusionModel(arm.config, shape).n_parameters() > 0


@every
@anywhere
def test_arms_differ_from_the_control_in_what_they_name_and_their_comparisons_are_of_them(name, place):
    study, setting, made = plan_of(name, place)
    shape, control = setting.shape, made.arms[0]
    wanted = {arm.name: arm.overrides for arm in study.design.arms(setting)[0]}
    for arm in made.arms:
        resolved = [each.config.resolved(shape) for each in (control, arm)]
        shared = resolved[0].keys() & resolved[1].keys()  # another fusion has hyperparameters of its own
        differs = {key for key in shared if resolved[0][key] != resolved[1][key]}
        named = {*wanted[control.name], *wanted[arm.name]}
        follow = {"mix_lr", "base_lr"} if "lr" in named else set()  # where they are not set themselves
        assert differs <= named | follow
        for key, value in wanted[arm.name].items():
            found = getattr(arm.config, key)
            assert found == value or (isinstance(value, float) and math.isclose(found, value))
        for key, value in re.findall(r"(\w+)=([\d][\w.e-]*)", arm.name):
            assert f"{getattr(arm.config, key):g}" == value
    assert len({str(arm.config.identity(shape)) for arm in made.arms}) == len(made.arms) > 1

    factors = [factor.name for factor in study.design.factors]
    compared = study.design.planned(planned_arms(made, shape), factors, made.control)
    assert any(comparison.primary for comparison in compared)
    for comparison in compared:
        assert comparison.weights.keys() <= {arm.name for arm in made.arms}
        assert math.isclose(sum(comparison.weights.values()), 0, abs_tol=1e-9)
    assert len({comparison.key for comparison in compared}) == len(compared)
