"""What a study is: a question, a space to search, arms to confirm, and what identifies a trial. No Ray here."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Literal

from adalayers.comparisons import Comparison, PlannedArm, planned_comparisons
from adalayers.config import Shape, TrialConfig, trial_config, with_overrides
from adalayers.errors import BadInput
from adalayers.plain import plain

SEARCH_BEST = "search-best"


@dataclass(frozen=True)
class Space:
    """A search space: domains of `ray.tune` by hyperparameter.

    scientific: what the question is about; nuisance: what must be tuned along for a fair answer
    grid:       the values of each hyperparameter under `--search grid`
    fixed:      what the study sets for all its trials, unless --set says otherwise
    """

    scientific: dict[str, Any]
    nuisance: dict[str, Any]
    grid: dict[str, list[Any]]
    fixed: dict[str, Any] = field(default_factory=dict)

    def without(self, names: Sequence[str]) -> Space:
        """Return the space with some hyperparameters fixed elsewhere, and so taken out."""

        def keep(values: dict[str, Any]) -> dict[str, Any]:
            return {name: value for name, value in values.items() if name not in names}

        return Space(keep(self.scientific), keep(self.nuisance), keep(self.grid), self.fixed)

    @property
    def domains(self) -> dict[str, Any]:
        return {**self.scientific, **self.nuisance}


@dataclass(frozen=True)
class Factor:
    """A hyperparameter under study, as reports need to know it.

    label:         what axes and tables call it ("α"); meaning: its words ("scale of the mix logits")
    unit:          "" where it has none
    scale:         log or linear for an axis to scale, choice for levels side by side
    changes_speed: whether it sets how fast a model trains, so that a search that prunes cannot judge it
    """

    name: str = ""
    label: str = ""
    meaning: str = ""
    unit: str = ""
    scale: Literal["log", "linear", "choice"] = "linear"
    changes_speed: bool = False


@dataclass(frozen=True)
class Arm:
    """A configuration that is confirmed over paired seeds.

    group:     what it is to the study: core, published, uniform, last, best
    overrides: how it differs from the study's own settings
    """

    name: str
    group: str
    overrides: dict[str, Any]


@dataclass(frozen=True)
class Setting:
    """On what a study runs, as far as its arms depend on it.

    fixed: hyperparameters that the user fixed with --set
    base:  the study's own settings, those included
    train_examples: how many there are to train on
    """

    dataset: str
    shape: Shape
    fixed: dict[str, Any]
    base: TrialConfig
    train_examples: int

    def levels(self, factor: str, values: Sequence[Any]) -> list[Any]:
        """Return the levels of a factor under study: `values`, or the one that the user fixed."""
        return [self.fixed[factor]] if factor in self.fixed else list(values)


@dataclass(frozen=True)
class Flag:
    """A flag of one study alone, which takes a name and is part of the study's identity.

    name:      without its dashes ("reference-dataset"); help: as `--help` says it
    default:   returns what it is where it is not given, of the names of the datasets
    canonical: returns what it identifies the study by: an alias and a full id are one. Raises `BadInput`
    """

    name: str
    help: str
    default: Callable[[Sequence[str]], str]
    canonical: Callable[[str], str] = str

    @property
    def key(self) -> str:
        """What the flag goes by in `study.json`."""
        return self.name.replace("-", "_")


@dataclass(frozen=True)
class Study:
    """One question, as data.

    space:   returns what is searched; called once the flags are parsed, so that `--help` waits for no library
    arms:    returns the confirmed arms, control first, and notes for the report
    first:   returns configurations that the search tries before any other
    task_kind: the kind of task that it needs, by name; None for any
    factors: what is under study, as reports call it
    comparisons: returns what is planned to be compared, of the arms, the names of the factors and the control
    method:  what a report's reader must know of the model and the factors: title -> paragraph
    parts:   parts of the report that answer its question, first on the page: modules of `reports.parts`
    defaults: of the flags trials, seeds and epochs, where others suit the study better; without trials it searches
             only where the user asks for it
    backbones: those that it runs on where the user names none
    flags:   flags that it alone has
    measures: what is measured of every case without training: names of `adalayers.measures`
    """

    name: str
    question: str
    space: Callable[[], Space]
    arms: Callable[[Setting], tuple[list[Arm], list[str]]]
    first: Callable[[Setting], list[dict[str, Any]]] = lambda setting: []
    task_kind: str | None = None
    _: KW_ONLY
    factors: tuple[Factor, ...] = ()
    comparisons: Callable[[Sequence[PlannedArm], Sequence[str], str], list[Comparison]] = planned_comparisons
    method: Mapping[str, str] = field(default_factory=dict)
    parts: tuple[str, ...] = ()
    defaults: Mapping[str, int] = field(default_factory=dict)
    backbones: tuple[str, ...] = ("minilm",)
    flags: tuple[Flag, ...] = ()
    measures: tuple[str, ...] = ()


@dataclass(frozen=True)
class ConfirmedArm:
    """An arm with its whole configuration; `aliases` are arms of the same configuration."""

    name: str
    group: str
    config: TrialConfig
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True)
class Plan:
    """What a study will run on one backbone and dataset.

    base:    the study's own settings
    space:   what is searched; scientific, nuisance: names of all that the study searches, fixed by the user or not
    first:   configurations that the search tries before any other
    arms:    confirmed arms known beforehand, control first; the search's best joins them later
    dropped: (arm, reason) of arms that cannot run here
    """

    base: TrialConfig
    space: Space
    arms: list[ConfirmedArm]
    first: list[dict[str, Any]] = field(default_factory=list)
    scientific: tuple[str, ...] = ()
    nuisance: tuple[str, ...] = ()
    dropped: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def control(self) -> str:
        return self.arms[0].name


def base_config(space: Space, fixed: Mapping[str, Any], epochs: int) -> TrialConfig:
    """Return a study's own settings: the defaults, what its space fixes, then what the user does.

    Raises `BadInput` for an impossible value.
    """
    return with_overrides(trial_config(), {**space.fixed, **fixed, "epochs": epochs})


def plan(study: Study, space: Space, setting: Setting) -> Plan:
    """Return the arms of a study in one setting: whole configurations, equal ones merged, impossible ones dropped.

    Raises `BadInput` where the control itself cannot run.
    """
    wanted, notes = study.arms(setting)
    base = setting.base
    notes = [
        *notes,
        *(
            f"{name} is under study and was fixed to {setting.fixed[name]} with --set."
            for name in space.scientific
            if name in setting.fixed
        ),
    ]
    arms: list[ConfirmedArm] = []
    dropped: list[tuple[str, str]] = []
    for arm in wanted:
        try:
            config = arm_config(arm.overrides, setting)
        except BadInput as error:
            if arm is wanted[0]:
                raise BadInput(f"wanted the control arm {arm.name!r} to run, but {error}") from error
            dropped.append((arm.name, str(error)))
            continue
        merge(arms, ConfirmedArm(arm.name, arm.group, config), setting.shape)
    searched = space.without(list(setting.fixed))
    first = [
        {name: value for name, value in point.items() if name in searched.domains}
        for point in study.first(setting)
    ]
    return Plan(
        base,
        searched,
        arms,
        first,
        tuple(space.scientific),
        tuple(space.nuisance),
        dropped,
        notes,
    )


def arm_config(overrides: dict[str, Any], setting: Setting) -> TrialConfig:
    """Return an arm's configuration. Raises `BadInput` where it contradicts --set or cannot mix the hidden states."""
    for name, value in overrides.items():
        if name in setting.fixed and setting.fixed[name] != value:
            raise BadInput(f"it needs {name}={value} and --set fixed {name}={setting.fixed[name]}")
    config = with_overrides(setting.base, overrides)
    config.check(setting.shape)
    return config


def merge(arms: list[ConfirmedArm], arm: ConfirmedArm, shape: Shape) -> str:
    """Add an arm, or its name as an alias of the arm that has its configuration; return the name it goes by."""
    for i, other in enumerate(arms):
        if other.config.identity(shape) == arm.config.identity(shape):
            if arm.name not in (other.name, *other.aliases):
                arms[i] = dataclasses.replace(other, aliases=(*other.aliases, arm.name))
            return other.name
    arms.append(arm)
    return arm.name


def trial_id(config: TrialConfig, shape: Shape, seed: int, about: dict[str, Any]) -> str:
    """Return the identity of a trial: a hash of the hyperparameters it uses, its seed, its backbone and its data.

    `about` is `TrialData.about`. The letter in front keeps an id from being read as a number.
    """
    settings = config.identity(shape)
    if settings.get("draw") == seed:  # what it is where nothing is said
        del settings["draw"]
    identity = {
        "config": settings,
        "seed": seed,
        "backbone": about["backbone"]["fingerprint"],
        "labels": about["labels"],
        "splits": about["splits"],
        "precision": about["precision"],
        **{name: about[name] for name in ("metric",) if name in about},
    }
    text = json.dumps(plain(identity), sort_keys=True)
    return f"t{hashlib.sha256(text.encode()).hexdigest()[:12]}"
