"""What a study plans to compare, as data: contrasts of the mean scores of arms, fixed before any score is seen."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from adalayers.states import Settings

FIRST, BLOCK = 6, 3
"""Fewest seeds of an analysis, for fewer than six pairs know no spread; of how many the middle one is a multiple."""

IMPORTANCES_FROM, IMPORTANCES_NAMED_FROM = 10, 95
"""Completed trials of a search below which importances say nothing but chance; from which on a page names the largest.

By then PED-ANOVA rests on the best ten, a tenth of them.
"""

TUNED = ", tuned"
"""What follows the name of an arm whose other hyperparameters a search of its own has tuned."""

Kind = Literal["arm", "factor", "simple", "interaction", "omnibus"]

_Mixes = Literal["core", "control", "published", "uniform", "last", "best", "tuned", "changed", "single"]
_Methods = Literal["mix", "floor", "frozen", "adapters", "fine-tuned", "first-token"]
_Others = Literal["component", "twin", "untrained"]
Role = Literal["", _Mixes, _Methods, _Others]
"""What an arm is to its study; `core`: a cell of the factorial, `best`, `tuned`: found by a search, "": not known."""


@dataclass(frozen=True)
class Change:
    """A factor at `level` instead of at `reference`."""

    factor: str = ""
    level: Any = None
    reference: Any = None


@dataclass(frozen=True)
class At:
    """The level of another factor at which something is compared."""

    factor: str = ""
    level: Any = None


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """One planned comparison: the sum of `weights` x mean score, which is 0 where nothing differs.

    Attributes:
        arm, control: Names of the two arms that are compared; "" where levels of factors are.
        changes: What is compared of factors: one change, or the two of an interaction.
        at: Of an effect at one level of another factor, that level.
        weights: Arm -> weight; they sum to 0.
        primary: Whether it answers the study's question by itself: `--until-decided` waits for these.
    """

    arm: str = ""
    control: str = ""
    changes: tuple[Change, ...] = ()
    at: At | None = None
    weights: dict[str, float] = field(default_factory=dict)
    primary: bool = True

    @property
    def kind(self) -> Kind:
        """`arm`: two arms; `factor`: a level against its reference, averaged over whatever else its arms differ in.

        `simple`: the same at one level of another factor; `interaction`: how far two simple effects differ.
        """
        if not self.changes:
            return "arm"
        return "interaction" if len(self.changes) > 1 else "simple" if self.at else "factor"

    @property
    def key(self) -> tuple[object, ...]:
        """What tells it from the other comparisons of a study."""
        return self.arm, self.control, self.changes, self.at

    @property
    def names(self) -> tuple[str, str, str]:
        """What `claims.json` calls its sides and `at`: ("alpha=8", "alpha=1", "entropy_weight=0.01")."""
        condition = named(self.at.factor, self.at.level) if self.at else ""
        levels = " ".join(named(change.factor, change.level) for change in self.changes)
        references = " ".join(named(change.factor, change.reference) for change in self.changes)
        return levels or self.arm, references or self.control, condition


def named(factor: str, level: Any) -> str:
    """Return what a level of a factor is called: "alpha=8"."""
    return f"{factor}={level:g}" if isinstance(level, float) else f"{factor}={level}"


def pair(arm: str, control: str, *, primary: bool = True) -> Comparison:
    """Return the comparison of two arms."""
    return Comparison(arm=arm, control=control, weights={arm: 1.0, control: -1.0}, primary=primary)


@dataclass(frozen=True)
class PlannedArm:
    """A confirmed arm, as comparisons, `study.json` and reports know it.

    Attributes:
        config: The hyperparameters it uses; of those that are compared, all there are.
        aliases: Names of arms that turned out to be this one.
        label: What it is called without the conditions, such as the amount of data, that it ran under; "" where that
            is its name.
        tunes: Names of the arms whose searches found this configuration.
        words: What pages call it, where its name does not say it.
        against: Names of the arms that it is compared with; None: of one outside the core, the control.
        secondary: The same of those that are not primary.
    """

    name: str = ""
    role: Role = ""
    config: Settings = field(default_factory=dict)
    aliases: tuple[str, ...] = ()
    label: str = ""
    tunes: tuple[str, ...] = ()
    fusion: str = ""
    words: str = field(default="", metadata={"later": True})
    against: tuple[str, ...] | None = field(default=None, metadata={"later": True})
    secondary: tuple[str, ...] = field(default=(), metadata={"later": True})

    @property
    def reads(self) -> tuple[Any, Any]:
        """Which hidden states it mixes: entropies of mixes of others are no measure of how even these are."""
        return self.config.get("stream"), self.config.get("hidden_states")

    @property
    def levels(self) -> Settings:
        """Its level of every factor that it has."""
        return {**self.config, "fusion": self.fusion} if self.fusion else self.config


def planned_comparisons(
    arms: Sequence[PlannedArm], factors: Sequence[str], control: str, *, conditions: Collection[str] = ()
) -> list[Comparison]:
    """Return the comparisons of a factorial core and of the arms outside it.

    Primary: each level of a factor against its reference (the control's), averaged over the other factors; each
    arm outside the core against the control, or those that it names; of components that have searches of their own
    each as tuned against the control as tuned. Then, for factors that are crossed: each level at one level of another
    factor, and the interactions. A level is averaged over those cells that exist for it and for its reference.

    conditions: factors whose own effect nobody asks for (more data is better), nor how two of them interact: the
                others are averaged over their levels, and compared at each of them
    """
    if control not in {arm.name for arm in arms}:
        return []
    cells: dict[tuple[Any, ...], str] = {}
    for arm in arms if factors else ():
        if arm.role == "core" and set(factors) <= set(arm.levels):
            cells.setdefault(tuple(arm.levels[name] for name in factors), arm.name)
    reference = next((key for key, name in cells.items() if name == control), next(iter(cells), ()))
    places = range(len(factors) if cells else 0)
    asked = [place for place in places if factors[place] not in conditions]
    levels = [dict.fromkeys(key[place] for key in cells) for place in places]
    others = [[level for level in levels[place] if level != reference[place]] for place in places]

    def effects(*changed: int, at: At | None = None) -> Iterator[Comparison]:
        """Give the effects of these factors, averaged over the combinations of the others that have all their cells.

        Of one factor an effect is a difference, of two a difference of differences.
        """
        old = tuple(reference[place] for place in changed)
        rests = dict.fromkeys(
            tuple(None if i in changed else level for i, level in enumerate(key))
            for key in cells
            if at is None or key[factors.index(at.factor)] == at.level
        )
        for new in itertools.product(*(others[place] for place in changed)):
            complete = []
            for rest in rests:
                signs: dict[str | None, float] = {}
                for side in itertools.product(*zip(new, old, strict=True)):
                    cell = {**dict(enumerate(rest)), **dict(zip(changed, side, strict=True))}
                    signs[cells.get(tuple(cell.values()))] = (-1.0) ** sum(map(operator.eq, side, old))
                complete += [] if None in signs else [signs]
            weights = {str(cell): sign / len(complete) for signs in complete for cell, sign in signs.items()}
            changes = tuple(map(Change, [factors[place] for place in changed], new, old))
            if complete:
                primary = len(changes) == 1 and at is None
                yield Comparison(changes=changes, at=at, weights=weights, primary=primary)

    planned = [effect for place in asked for effect in effects(place)]
    planned += _pairs(arms, {*cells.values()}, control)
    # Where the other factor has one level alone, the effect there is the averaged one.
    averaged = [comparison.weights for comparison in planned]
    for changed, fixed in itertools.permutations(places, 2):
        for level in levels[fixed] if changed in asked else ():
            simple = effects(changed, at=At(factors[fixed], level))
            planned += [comparison for comparison in simple if comparison.weights not in averaged]
    for first, second in itertools.combinations(places, 2):
        planned += effects(first, second) if {first, second} & {*asked} else ()
    return planned


def _pairs(arms: Sequence[PlannedArm], cells: Collection[str], control: str) -> Iterator[Comparison]:
    """Yield the comparisons of two arms: what each names, else the control; then of what searches have tuned."""
    names = {alias: arm.name for arm in arms for alias in (*arm.aliases, arm.name)}
    # What searches of earlier runs found best stands behind the others, and gives way.
    tuned = {component: arm.name for arm in reversed(arms) for component in arm.tunes}
    sides = []
    for arm in arms:
        unnamed = () if arm.name in cells or arm.role == "tuned" else (control,)
        sides += [(arm.name, other, True) for other in (unnamed if arm.against is None else arm.against)]
        sides += [(arm.name, other, False) for other in arm.secondary]
    sides += [(tuned[arm.name], tuned.get(control, ""), True) for arm in arms if arm.name in tuned]
    for name, other, primary in sides:
        if names.get(other, name) != name:
            yield pair(name, names[other], primary=primary)


def crossing(
    cells: Mapping[str, Mapping[str, Any]], factors: Sequence[str]
) -> tuple[tuple[str, ...], dict[tuple[Any, ...], str]]:
    """Return the factors that the cells of a core cross completely, and their levels -> its cell.

    Args:
        cells: Name -> level of every factor that it has, of each cell of the core.
        factors: Those under study; one of which the core has a single level is none.

    Returns:
        None and none where a cell is missing or lacks a factor, or fewer than two factors are left.
    """
    levels = {name: dict.fromkeys(cell.get(name) for cell in cells.values()) for name in factors}
    crossed = tuple(name for name in factors if len(levels[name]) > 1)
    by_level = {tuple(cell.get(name) for name in crossed): arm for arm, cell in cells.items()}
    complete = set(itertools.product(*(levels[name] for name in crossed)))
    known = not any(None in levels[name] for name in crossed)
    whole = known and len(cells) == len(complete) and by_level.keys() == complete
    return (crossed, by_level) if whole and len(crossed) > 1 else ((), {})
