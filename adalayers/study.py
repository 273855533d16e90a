"""What a study is: a question, a space to search, arms to confirm, and what identifies a trial. No Ray here."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import hashlib
import importlib
import itertools
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Literal

from adalayers.comparisons import TUNED, Comparison, PlannedArm, Role, named, planned_comparisons
from adalayers.config import DEFAULT_FUSION, TrialConfig, trial_config, with_overrides
from adalayers.errors import BadInput, unknown
from adalayers.installed import own_module
from adalayers.presets import Published, PublishedMix, SetUp, setups
from adalayers.provenance import Provenance
from adalayers.states import Settings, Shape
from adalayers.storage.to_json import to_json

SEARCH_BEST = "search-best"
TRIAL_ID = re.compile(r"t[0-9a-f]{12}")
"""What `trial_id` returns; anything else names no folder."""


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
    fixed: Settings = field(default_factory=dict)

    @property
    def points(self) -> list[Settings]:
        """The points of the grid."""
        grid = {name: values for name, values in self.grid.items() if name in self.domains}
        return [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]

    def without(self, names: Sequence[str]) -> Space:
        """Return the space with some hyperparameters fixed elsewhere, and so taken out."""
        scientific, nuisance, grid = (
            {name: value for name, value in values.items() if name not in names}
            for values in (self.scientific, self.nuisance, self.grid)
        )
        return Space(scientific, nuisance, grid, self.fixed)

    def limited(self, choices: Mapping[str, Sequence[Any]]) -> Space:
        """Return the space with these choices alone of some hyperparameters; of its grid those that are among them."""
        limited = copy.deepcopy(self)
        for name in limited.domains.keys() & choices.keys():
            limited.domains[name].categories = choices[name]
        grid = {
            name: [value for value in values if value in choices.get(name, values)]
            for name, values in self.grid.items()
        }
        return dataclasses.replace(limited, grid=grid)

    @property
    def domains(self) -> dict[str, Any]:
        return {**self.scientific, **self.nuisance}

    @property
    def choices(self) -> dict[str, list[Any]]:
        """The values of each hyperparameter that is no number of a range."""
        return {name: own.categories for name, own in self.domains.items() if hasattr(own, "categories")}


@dataclass(frozen=True)
class Factor:
    """A hyperparameter under study, as reports need to know it.

    label:         what axes and tables call it ("α"); meaning: its words ("scale of the mix logits")
    unit:          "" where it has none
    scale:         log or linear for an axis to scale, choice for levels side by side
    changes_speed: whether it sets how fast a model trains, so that a search that prunes cannot judge it
    condition:     whether it is a condition under which the others are compared, such as the amount of data: nobody
                   chooses a setting by it
    absent:        the level of an arm that does not use it; None: it is outside the core
    """

    name: str = ""
    label: str = ""
    meaning: str = ""
    unit: str = ""
    scale: Literal["log", "linear", "choice"] = "linear"
    changes_speed: bool = False
    condition: bool = False
    absent: str | None = None


FACTORS = {
    factor.name: factor
    for factor in (
        Factor("alpha", "α", "scale of the mix logits", scale="log", changes_speed=True),
        Factor("entropy_weight", "λ", "entropy weight", scale="choice"),
        Factor("k", "k", "width of the projections", scale="log"),
        Factor("cutoff", "cutoff", "mix weights at or below it become 0"),
        Factor(
            "cutoff_when", "cutoff at work", "always, or after training alone", "", "choice", absent="always"
        ),
        Factor("dropout", "dropout", "in the head"),
        Factor("train_examples", "training examples", "drawn for each seed", "count", "log", condition=True),
    )
}
"""Those that several studies share, or may, by name."""


@dataclass(frozen=True)
class Arm:
    """A configuration that is confirmed over paired seeds.

    Attributes:
        overrides: How it differs from the study's own settings.
        label: What it is called without the conditions, such as the amount of data, that it runs under; "" where that
            is its name.
        words: What pages call it, where its name does not say it.
        against: Names of the arms that it is compared with; None: of one outside the core, the control.
        secondary: The same of those that are not primary.
    """

    name: str
    role: Role
    overrides: Settings
    label: str = ""
    words: str = ""
    against: tuple[str, ...] | None = None
    secondary: tuple[str, ...] = ()


UNIFORM = Arm("uniform", "uniform", {"mix": "uniform"})
LAST = Arm("last", "last", {"mix": "last"})
"""The mixes that learn nothing: what a learned one has to beat."""


@dataclass(frozen=True)
class Variant:
    """A way to score a trained model other than as it was trained; nothing is trained again.

    without:     numbers of the layers taken away, of those that the model reads
    renormalise: whether the weights of the rest then sum to 1 again
    cutoff:      layers of this weight or less are taken away too; the rest is renormalised
    """

    without: tuple[int, ...] = ()
    renormalise: bool = True
    cutoff: float | None = None

    @property
    def name(self) -> str:
        """As `evaluations.parquet` names it: "without=3-5", "without=3-5 as they are", "cutoff=0.05"."""
        if self.cutoff is not None:
            return f"cutoff={self.cutoff:g}"
        return f"without={self.without[0]}-{self.without[-1]}{'' if self.renormalise else ' as they are'}"


@dataclass(frozen=True)
class Setting:
    """On what a study runs, as far as its arms depend on it.

    fixed: hyperparameters that the user fixed with --set
    base:  the study's own settings, those included
    train_examples: how many there are to train on
    classes: how many classes the labels have; of tags that mark entities, how many types of these
    own:   the flags that the study alone has, by `Flag.key`, as they identify it
    """

    dataset: str
    shape: Shape
    fixed: Settings
    base: TrialConfig
    train_examples: int
    classes: int
    own: Mapping[str, str] = field(default_factory=dict)

    @property
    def setup(self) -> SetUp:
        """The published setup for the dataset."""
        return setups(self.dataset, self.shape.head)[0]

    @property
    def published(self) -> PublishedMix:
        """The published mix for the dataset, its rate too, which gives it its step; --set mix_lr goes before that."""
        rate = self.fixed.get("mix_lr")
        own = {"mix_lr": rate} if isinstance(rate, float) else {}
        return PublishedMix({**self.setup.mix, **own}, self.setup.run.dataset)

    def levels(self, factor: str, values: Sequence[Any]) -> list[Any]:
        """Return the levels of a factor under study: `values`, or the one that the user fixed."""
        return [self.fixed[factor]] if factor in self.fixed else list(values)

    @property
    def layers(self) -> list[int]:
        """Numbers of the hidden states that are read."""
        return [state.number for state in self.base.states(self.shape)]

    def sizes(self, shares: Sequence[float]) -> list[int]:
        """Return numbers of training examples, the most first: shares of the pool, none of them below 16.

        A number that the user fixed is the only one.
        """
        pool = self.train_examples
        of_pool = {min(pool, max(16, round(share * pool))) for share in shares}
        return self.levels("train_examples", sorted(of_pool, reverse=True))

    def for_equal_steps(self, train_examples: int) -> Settings:
        """Return what an arm of so many examples sets to train for as many steps as one of the whole pool.

        It has more epochs, as many evaluations, and so the same patience in steps.
        """
        base, pool = self.base, self.train_examples
        if train_examples >= pool:
            return {"train_examples": train_examples}
        steps, fewer = (math.ceil(n / base.batch_size) for n in (pool, train_examples))
        epochs = round(base.epochs * steps / fewer)
        interval = max(1, round(epochs / base.epochs))
        return {"train_examples": train_examples, "epochs": epochs, "evaluate_every": interval}

    def own_settings(self, *names: str) -> Settings:
        """Return the study's own values of some hyperparameters, those that follow from others worked out."""
        values = self.base.resolved(self.shape)
        return {name: values[name] for name in names if name in values}


def crossed(setting: Setting, levels: Mapping[str, Sequence[Any]], base: Settings) -> list[Arm]:
    """Return an arm for each combination of levels on top of `base`, of a factor that the user fixed its level alone.

    The last factor varies fastest.
    """
    values = [setting.levels(name, of_factor) for name, of_factor in levels.items()]
    points = [dict(zip(levels, point, strict=True)) for point in itertools.product(*values)]
    return [Arm(" ".join(map(named, point, point.values())), "core", {**base, **point}) for point in points]


@dataclass(frozen=True)
class Flag:
    """A flag of one study alone, which takes a name and is part of the study's identity, unless it is empty.

    name:      without its dashes ("reference-dataset"); help: as `--help` says it
    default:   returns what it is where it is not given, of the names of the datasets
    canonical: returns what it, with `--data-dir`, identifies the study by: an alias and a full id are one. Raises
               `BadInput`
    several:   whether it takes several names, which are one text with spaces between
    choices:   the names there are; none: any
    """

    name: str
    help: str
    default: Callable[[Sequence[str]], str]
    canonical: Callable[[str, str | None], str] = lambda text, data_dir: text
    several: bool = False
    choices: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """What the flag goes by in `study.json`."""
        return self.name.replace("-", "_")


def named_by(wanted: str, names: Iterable[str], what: str) -> list[str]:
    """Return those of `names` that a flag of several names means; all where it is empty.

    A name is typed with - for spaces and without commas, in either case, whole or as far as one of its words; `what`
    says what it is of.

    Raises:
        BadInput: One that means none of them.
    """
    typed = {name: f"{name.replace(',', '').replace(' ', '-').lower()}-" for name in names}
    for prefix in wanted.split():
        if not any(name.startswith(f"{prefix.lower()}-") for name in typed.values()):
            raise unknown(what, prefix, [name.removesuffix("-") for name in typed.values()])
    prefixes = tuple(f"{prefix.lower()}-" for prefix in wanted.split()) or ("",)
    return [name for name, as_typed in typed.items() if as_typed.startswith(prefixes)]


@dataclass(frozen=True, kw_only=True)
class Design:
    """What a study trains and compares.

    Attributes:
        arms: Returns the confirmed arms, control first, and notes for the report.
        factors: What is under study, as reports call it.
        comparisons: Returns what is planned to be compared, of the arms, the names of the factors and the control;
            None: what follows from arms and factors (`planned_comparisons`), conditions those factors that say so.
        tunings: Returns the components that are each tuned by a search of their own, over the space; None: one search.
        tuned_only: Whether arms that have a search of their own are confirmed as it finds them best, and not as they
            are too; without a search they are as they are.
        first: Returns configurations that the search tries before any other.
        variants: Returns how else the model of each confirmed trial is scored.
    """

    arms: Callable[[Setting], tuple[list[Arm], list[str]]]
    factors: tuple[Factor, ...] = ()
    comparisons: Callable[[Sequence[PlannedArm], Sequence[str], str], list[Comparison]] | None = None
    tunings: Callable[[Setting], list[Tuning]] | None = None
    tuned_only: bool = False
    first: Callable[[Setting], list[Settings]] = lambda setting: []
    variants: Callable[[Setting], list[Variant]] = lambda setting: []

    def planned(self, arms: Sequence[PlannedArm], factors: Sequence[str], control: str) -> list[Comparison]:
        """Return what is planned to be compared of these arms; `factors`: names of those that some arm uses."""
        if self.comparisons is not None:
            return self.comparisons(arms, factors, control)
        conditions = {factor.name for factor in self.factors if factor.condition}
        return planned_comparisons(arms, factors, control, conditions=conditions)


@dataclass(frozen=True, kw_only=True)
class Page:
    """What a study adds to its report.

    Attributes:
        parts: Sections of the report that answer its question: modules of `reports.sections`. The first figure of the
            first one stands on the page.
        headline: What the page opens with, each against the control: an arm's name, or a role, of which the arm that is
            best on validation is told; none: the best other arm.
        method: What a reader must know of the model and the factors: title -> paragraph.
        published: Returns what was published for its arms.
        title: What it is about, where its name is no words for that.
    """

    title: str = ""
    parts: tuple[str, ...] = ()
    headline: tuple[str, ...] = ()
    method: Mapping[str, str] = field(default_factory=dict)
    published: Callable[[Setting], Sequence[Published]] = lambda setting: ()


@dataclass(frozen=True, kw_only=True)
class Defaults:
    """What suits a study where the user says nothing.

    Attributes:
        sizes: Of the flags trials, seeds and epochs; without trials it searches only where the user asks for it.
        smoke: The same of --smoke.
        backbones: Those that it runs on.
        metrics: The score that selects by kind of task, where it is not the task's own.
    """

    sizes: Mapping[str, int] = field(default_factory=dict)
    smoke: Mapping[str, int] = field(default_factory=dict)
    backbones: tuple[str, ...] = ("minilm",)
    metrics: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Study:
    """One question, as data.

    Attributes:
        name: That of its files: studies/<name>.py and search_spaces/<name>.py.
        about: The docstring of its file, of which the row `Question` is the question, and titled paragraphs below the
            table are the page's `method`.
        search_space: The module of its space, where that is not one of `search_spaces`, by its full name.
        task_kind: The kind of task that it needs, by name; None for any.
        flags: Flags that it alone has.
        measures: What is measured of every case without training: names of `adalayers.measures`.
    """

    name: str
    question: str = ""
    about: str | None = None
    design: Design
    page: Page = Page()
    defaults: Defaults = Defaults()
    task_kind: str | None = None
    flags: tuple[Flag, ...] = ()
    measures: tuple[str, ...] = ()
    search_space: str = ""

    def __post_init__(self) -> None:
        if self.about is None:
            return
        question = re.search(r"^Question +(.*(?:\n +.*)*)", self.about, re.M)
        paragraphs = re.findall(r"^(\S.*):\n((?: {4}.*\n?)+)", self.about, re.M)
        method = {title: " ".join(text.split()) for title, text in paragraphs}
        object.__setattr__(self, "question", " ".join(question[1].split()) if question else "")
        object.__setattr__(self, "page", dataclasses.replace(self.page, method=method))

    def space(self) -> Space:
        """Return what is searched, by the names of its `search_spaces` file, which imports Ray: not for `--help`."""
        own = self.search_space
        module = importlib.import_module(own) if own else own_module(f"search_spaces.{self.name}")
        return Space(*(getattr(module, name, {}) for name in ("SCIENTIFIC", "NUISANCE", "GRID", "FIXED")))


@dataclass(frozen=True, kw_only=True)
class ConfirmedArm(Arm):
    """An arm with its whole configuration, those that it stands for too, and the searches that it is the best of."""

    config: TrialConfig
    aliases: tuple[str, ...] = ()
    tunes: tuple[str, ...] = ()

    def planned(self, config: Settings) -> PlannedArm:
        """Return the arm as comparisons and reports know it, by these hyperparameters of it."""
        own = {name: value for name, value in vars(self).items() if name != "overrides"}
        return PlannedArm(**{**own, "config": config}, fusion=self.config.fusion)


@dataclass(frozen=True)
class Tuning:
    """A search that tunes one component of a study: where it starts, and what it tunes along.

    name:      of the search, and of the component; overrides: how it differs from the study's own settings
    space:     what it searches, where that is not the study's space
    required:  configurations that it tries, however few trials are requested
    """

    name: str
    overrides: Settings
    space: Space | None = None
    required: Sequence[Settings] = ()


@dataclass(frozen=True)
class PlannedSearch:
    """A search of a study: from which configuration, what is searched, and what its best is called.

    name:  that of the component that it tunes; "" where the study has one search
    becomes: the name of the arm that its best becomes, and `role` its role
    first: configurations that it tries before any other; min_trials: how many trials it has at least, if any
    notes: what a reader must know of the space
    """

    base: TrialConfig
    space: Space
    first: list[Settings] = field(default_factory=list)
    _: KW_ONLY
    name: str = ""
    min_trials: int = 0
    becomes: str
    role: Role
    notes: list[str] = field(default_factory=list)

    def at_most(self, trials: int, how: str) -> int:
        """Return how many trials it has where a user wants `trials`; a grid has no more than its points."""
        wanted = max(trials, self.min_trials) if trials else 0
        return min(wanted, len(self.space.points)) if how == "grid" else wanted


@dataclass(frozen=True)
class StudyPlan:
    """What a study will run on one backbone and dataset.

    base:    the study's own settings
    scientific, nuisance: names of all that the study searches, fixed by the user or not
    searches: each search in it
    arms:    confirmed arms known beforehand, control first; what the searches find best joins them later
    variants: how else the model of each confirmed trial is scored
    dropped: (arm, reason) of arms that cannot run here
    published: what was published for arms
    tuned_only: as `Design`'s
    """

    base: TrialConfig
    arms: list[ConfirmedArm]
    _: KW_ONLY
    searches: list[PlannedSearch] = field(default_factory=list)
    scientific: tuple[str, ...] = ()
    nuisance: tuple[str, ...] = ()
    dropped: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    variants: list[Variant] = field(default_factory=list)
    published: tuple[Published, ...] = ()
    tuned_only: bool = False

    @property
    def control(self) -> str:
        return self.arms[0].name

    def known_arms(self, trials: int) -> list[ConfirmedArm]:
        """Return the arms that are confirmed whatever searches of so many trials find."""
        return [] if self.tuned_only and trials else list(self.arms)


def base_config(space: Space, fixed: Mapping[str, Any], epochs: int) -> TrialConfig:
    """Return a study's own settings: the defaults, what its space fixes, then what the user does.

    Raises `BadInput` for an impossible value.
    """
    values = {**space.fixed, **fixed, "epochs": epochs}
    fusion = values.get("fusion", DEFAULT_FUSION)
    hyperparameters = {"fusion", *trial_config(fusion=fusion).values()}
    if lacking := [name for name in (*space.scientific, *space.fixed) if name not in hyperparameters]:
        raise BadInput(
            f"wanted a fusion with {' and '.join(lacking)}, which this study is about or sets, got --set "
            f"fusion={fusion}, which has none; leave fusion out, or run another study"
        )
    try:
        return with_overrides(trial_config(), values)
    except BadInput:
        # A factor under study may mean something in some arms alone, such as which layer is read.
        choices = {name: values for name, values in space.choices.items() if name in space.scientific}
        with_overrides(trial_config(), {**{name: first for name, (first, *_) in choices.items()}, **values})
        others = {name: value for name, value in values.items() if name not in choices}
        config = with_overrides(trial_config(), others)
        for name in [name for name in choices if name in values]:
            with contextlib.suppress(BadInput):  # of no meaning but in those arms, which have it from --set
                config = with_overrides(config, {name: values[name]})
        return config


def plan(study: Study, space: Space, setting: Setting) -> StudyPlan:
    """Return the arms of a study in one setting: whole configurations, equal ones merged, impossible ones dropped.

    Raises `BadInput` where the control itself cannot run.
    """
    setting.base.check(setting.shape)
    wanted, notes = study.design.arms(setting)
    base = setting.base
    arms: list[ConfirmedArm] = []
    dropped: list[tuple[str, str]] = []
    for arm in wanted:
        try:
            config = arm_config(arm.overrides, setting)
            merge(arms, ConfirmedArm(**vars(arm), config=config), setting.shape)
        except BadInput as error:
            if arm is wanted[0]:
                raise BadInput(f"wanted the control arm {arm.name!r} to run, but {error}") from error
            dropped.append((arm.name, str(error)))
    searches = _searches(study, space, setting)
    nuisance = [*space.nuisance, *(name for search in searches for name in search.space.nuisance)]
    return StudyPlan(
        base,
        arms,
        searches=searches,
        scientific=tuple(space.scientific),
        nuisance=tuple(dict.fromkeys(nuisance)),
        dropped=dropped,
        notes=notes,
        variants=study.design.variants(setting),
        published=tuple(study.page.published(setting)),
        tuned_only=study.design.tuned_only,
    )


def _searched(space: Space, setting: Setting, base: TrialConfig) -> tuple[Space, list[str]]:
    """Return what of a space is searched from `base`, and notes on what was left out.

    What the user fixed is taken out; where `base` could not take it, it has that one choice. Of the others those stay
    that can run here (a layer that the backbone lacks cannot), each tried in `base` with the first choice of the rest;
    domains of numbers stay as they are.
    """
    fixed = setting.fixed
    space = space.without([name for name, value in fixed.items() if getattr(base, name, None) == value])
    own = {name: [fixed[name]] for name in space.domains.keys() & fixed.keys()}
    choices = space.choices | own
    point = {name: values[0] for name, values in choices.items()}

    def runs(name: str, value: Any) -> bool:
        try:
            with_overrides(base, {**point, name: value}).check(setting.shape)
        except BadInput:
            return False
        return True

    kept = {name: [value for value in values if runs(name, value)] for name, values in choices.items()}
    notes = [
        f"Of the search space of {name}, {len(choices[name]) - len(values)} of {len(choices[name])} values cannot run "
        "on this backbone and were left out."
        for name, values in kept.items()
        if 0 < len(values) < len(choices[name])
    ]
    space = dataclasses.replace(space, grid=space.grid | own)
    return space.limited(own | {name: values for name, values in kept.items() if values}), notes


def _searches(study: Study, space: Space, setting: Setting) -> list[PlannedSearch]:
    """Return the searches of a study: one, or one for each component that is tuned by itself.

    A component that cannot run here has none, nor has one that is another one's equal here. Each begins with the
    component as it is.
    """
    tunings = study.design.tunings(setting) if study.design.tunings else [Tuning("", {})]
    searches: list[PlannedSearch] = []
    for tuning in tunings:
        try:
            config = arm_config(tuning.overrides, setting)
        except BadInput:
            continue  # so is its arm, with the reason
        same = config.identity(setting.shape)
        if any(search.base.identity(setting.shape) == same for search in searches):
            continue
        searched, notes = _searched(tuning.space or space, setting, config)
        as_it_is = [config.resolved(setting.shape)] if tuning.name else []
        required = [_within(point, searched) for point in tuning.required]
        different = [point for i, point in enumerate(required) if point and point not in required[:i]]
        points = [*as_it_is, *required, *study.design.first(setting)]
        first = list(filter(None, (_within(point, searched) for point in points)))
        tuned = tuning.name if study.design.tuned_only else f"{tuning.name}{TUNED}"
        searches.append(
            PlannedSearch(
                config,
                searched,
                first,
                name=tuning.name,
                min_trials=len(different),
                becomes=tuned if tuning.name else SEARCH_BEST,
                role="tuned" if tuning.name else "best",
                notes=notes,
            )
        )
    return searches


def _within(point: Mapping[str, Any], space: Space) -> Settings:
    """Return what of a point the space searches; choices that it has not are left to the search."""
    choices = space.choices
    searched = {name: value for name, value in point.items() if name in space.domains}
    return {name: value for name, value in searched.items() if value in choices.get(name, [value])}


def arm_config(overrides: Settings, setting: Setting) -> TrialConfig:
    """Return an arm's configuration. Raises `BadInput` where it contradicts --set or cannot mix the hidden states."""
    for name, value in overrides.items():
        if name in setting.fixed and setting.fixed[name] != value:
            raise BadInput(f"it needs {name}={value} and --set fixed {name}={setting.fixed[name]}")
    config = with_overrides(setting.base, overrides)
    config.check(setting.shape)
    return config


def merge(arms: list[ConfirmedArm], arm: ConfirmedArm, shape: Shape) -> str:
    """Add an arm, or its name as an alias of the arm that has its configuration; return the name it goes by."""
    identity = arm.config.identity(shape)
    for i, merged in enumerate(arms):
        if merged.config.identity(shape) == identity:
            named = () if arm.name in (merged.name, *merged.aliases) else (arm.name,)
            tunes = tuple(dict.fromkeys((*merged.tunes, *arm.tunes)))
            arms[i] = dataclasses.replace(merged, aliases=(*merged.aliases, *named), tunes=tunes)
            return merged.name
    arms.append(arm)
    return arm.name


def trial_id(config: TrialConfig, shape: Shape, seed: int, provenance: Provenance) -> str:
    """Return the identity of a trial: a hash of the hyperparameters it uses, its seed, its backbone and its data.

    The letter in front keeps an id from being read as a number.
    """
    settings = config.identity(shape)
    if settings.get("draw") == seed:  # what it is where nothing is said
        del settings["draw"]
    backbone = provenance.backbone
    identity = {
        "config": settings,
        "seed": seed,
        "backbone": backbone.fingerprint,
        "labels": provenance.labels,
        "splits": provenance.splits,
        "precision": provenance.precision,
        **({"metric": provenance.metric} if provenance.metric else {}),
        **({"dtype": backbone.dtype} if backbone.dtype != "float32" else {}),
    }
    text = json.dumps(to_json(identity), sort_keys=True)
    return f"t{hashlib.sha256(text.encode()).hexdigest()[:12]}"
