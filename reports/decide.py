"""Evidence for scores that were made elsewhere: a table with a row per run, judged as a study's scores are.

One look, with the error that a study's planned analyses have together. What is compared on one score, over all its
cases, is judged together: a family of two Holm runs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from statistics import fmean
from typing import Any

import numpy as np
import pandas as pd
from scipy import optimize

from adalayers.comparisons import FIRST, pair
from adalayers.errors import BadInput, require_within, unknown
from adalayers.escaping import code
from adalayers.results.interim_analyses import PLANNED, InterimAnalysis
from reports.evidence import planning
from reports.evidence.claims import FIELDS, Claim, Family, judged
from reports.evidence.holm import BETTER, OPEN, SAME, WORSE, unpaired
from reports.render import markdown, render
from reports.words import estimate, number, several

GATE = {BETTER: 0, WORSE: 3, SAME: 4, OPEN: 5}
"""Exit codes of what a gate comes to."""

_NO_SCORE = ("", "nan", "-nan", "na", "n/a", "none", "null", "<na>")


def decide(
    frame: pd.DataFrame,
    *,
    control: str = "",
    pairs: Sequence[tuple[str, str]] = (),
    scores: Sequence[str] = ("score",),
    arm: str = "arm",
    seed: str | None = "seed",
    cases: Sequence[str] = (),
    smallest_effect: float | None = None,
    lower_is_better: bool = False,
) -> pd.DataFrame:
    """Return what runs that were made elsewhere allow one to claim.

    Arms are paired by seed. Two arms without a seed in common are compared by Welch's standard error, with the degrees
    of freedom of the smaller sample. A run whose score is missing withholds the verdict of its comparisons.

    Args:
        frame: A row per run.
        control: The arm that all others are compared with; or
        pairs: What is compared, each an arm and its control.
        scores: Names of the columns of scores; each score is a family of its own.
        arm: Name of the column of arms.
        seed: Name of the column of seeds; None: no runs belong together.
        cases: Names of columns, such as the dataset, within whose values arms are compared.
        smallest_effect: The smallest difference of interest, on the scores' scale; None: nothing is called the same.
        lower_is_better: Whether lower scores are.

    Returns:
        A row per case, score and comparison: the columns of `claims.json`, and `case`, `paired`, and `why` there is no
        verdict.

    Raises:
        BadInput: A column is missing, a score is no number, an arm is unknown, or a run is there twice.
    """
    if smallest_effect is not None:
        require_within("a smallest effect", smallest_effect, {"above": 0})
    scores, cases = ([name] if isinstance(name, str) else name for name in (scores, cases))
    runs = _runs(frame, arm, seed, scores, cases)
    control = "" if control is None else str(control)
    pairs = [(str(one), str(other)) for one, other in pairs]
    planned = _planned([*dict.fromkeys(runs["arm"])], control, pairs)
    words = {BETTER: WORSE, WORSE: BETTER} if lower_is_better else {}
    rows = []
    for score in scores:
        for case, claim in _judged(runs, score, planned, smallest_effect):
            claim = replace(claim, metric=score, verdict=words.get(claim.verdict or "", claim.verdict))
            rows.append({"case": case, **claim.as_json(), "paired": bool(claim.values), "why": _why(claim)})
    return pd.DataFrame(rows, columns=["case", *FIELDS, "paired", "why"])


def _runs(
    frame: pd.DataFrame, arm: str, seed: str | None, scores: Sequence[str], cases: Sequence[str]
) -> pd.DataFrame:
    """Return the runs: case, arm, seed (a whole number), and the scores, NaN where a run has none."""
    if not isinstance(frame, pd.DataFrame):
        raise BadInput(f"wanted a pandas frame with a row per run, got {type(frame)}; make one of it")
    named = [arm, *([] if seed is None else [seed])]
    hint = "name columns by --arm-column, --seed-column, --score-columns, --case-columns"
    for name in (*named, *scores, *cases):
        if name not in frame.columns:
            raise unknown("column", name, map(str, frame.columns), hint=hint)
    if frame.empty:
        raise BadInput("wanted a row per run, got none")
    told = frame[[*dict.fromkeys((*named, *cases))]].astype(str).apply(lambda column: column.str.strip())
    if (frame[named].isna() | (told[named] == "")).any(axis=None):
        raise BadInput(f"wanted {several(named)} of every run, got an empty one; leave out such rows")
    every = [*dict.fromkeys((*named, *scores, *cases))]
    if twice := [name for name in every if [*frame.columns].count(name) > 1]:
        raise BadInput(f"wanted one column {twice[0]!r}, got several; rename all but one")
    if clash := {*scores} & {"arm", "seed", "case"}:
        raise BadInput(
            f"wanted scores by another name than {min(clash)!r}, which runs are told by; rename it"
        )
    runs = pd.DataFrame({"arm": told[arm], "case": ""})
    for name in cases:
        runs["case"] = (runs["case"] + " " + told[name]).str.strip()
    if cases and (alike := told[[*cases]].groupby(runs["case"]).nunique().gt(1).any(axis=1)).any():
        raise BadInput(
            f"wanted cases that read apart, got several that read {alike.idxmax()!r}; rename a value"
        )
    runs["seed"] = np.arange(len(frame))
    if seed is not None:
        runs["seed"] = pd.factorize(told[seed].map(_seed))[0]
    for score in scores:
        numbers = pd.to_numeric(frame[score], errors="coerce")
        wrong = numbers.isna() & ~frame[score].map(str).str.strip().str.lower().isin(_NO_SCORE)
        if wrong.any():
            came = frame.loc[wrong, score].iloc[0]
            raise BadInput(f"wanted numbers in column {score!r}, got {came!r}; leave a missing score empty")
        runs[score] = numbers.astype(float).replace([np.inf, -np.inf], np.nan)
    for case, name, _ in runs.loc[runs.duplicated(keys := ["case", "arm", "seed"]), keys].to_numpy()[:1]:
        raise BadInput(
            f"wanted one run per arm and seed, got several of arm {name!r}{case and f' in {case!r}'} on one seed; name "
            "the columns that tell them apart as cases, or leave out the seeds"
        )
    return runs


def _seed(text: str) -> Decimal | str:
    """Return a seed as a number where it is one: 0, 00 and 0.0 are the same."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        return text
    return number if number.is_finite() else text


def _planned(arms: Sequence[str], control: str, pairs: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    if bool(control) == bool(pairs):
        raise BadInput(
            "wanted a control or pairs, to say what is compared; got " + ("both" if control else "neither")
        )
    planned = [*pairs] or [(name, control) for name in arms if name != control]
    for name in (control, *(name for one in pairs for name in one)):
        if name and name not in arms:
            raise unknown("arm", name, arms)
    if not planned or any(one == other for one, other in planned):
        raise BadInput(f"wanted two arms to compare, got {several(map(repr, arms))} alone")
    return planned


def _judged(
    runs: pd.DataFrame, score: str, planned: Sequence[tuple[str, str]], smallest: float | None
) -> list[tuple[str, Claim]]:
    """Return each case's comparisons on one score and what is claimed of them, all as one family."""
    cells: dict[str, dict[int, float]] = {
        f"{case}\t{arm}": dict(zip(of_arm["seed"], of_arm[score], strict=True))
        for (case, arm), of_arm in runs.groupby(["case", "arm"])
    }
    values = {cell: {s: x for s, x in own.items() if not math.isnan(x)} for cell, own in cells.items()}
    lost = {cell: frozenset(own.keys() - values[cell].keys()) for cell, own in cells.items()}
    family = Family(lambda _: values, smallest, lost)
    look = InterimAnalysis(covered={cell: [*own] for cell, own in cells.items()})
    cases = [*dict.fromkeys(runs["case"])]
    seen = []
    for case in cases:
        for arm, control in planned:
            weights = {f"{case}\t{arm}": 1.0, f"{case}\t{control}": -1.0}
            claim = Claim(**{**vars(pair(arm, control)), "weights": weights}, metric="", split="")
            seen.append(_unpaired(family.seen(claim, look), family))
    claims = judged(seen, [(PLANNED, dict(enumerate(seen)))], PLANNED)
    return [*zip([case for case in cases for _ in planned], claims, strict=True)]


def _unpaired(claim: Claim, family: Family) -> Claim:
    """Return the claim; of two arms without a seed in common, what is seen of two independent samples."""
    values = family.values(claim.weights)
    samples = [[w * value for value in values.get(cell, {}).values()] for cell, w in claim.weights.items()]
    n = min(map(len, samples))
    if claim.n or not n:
        return claim
    withheld = any(family.untestable[cell] for cell in claim.weights)
    scale = max(abs(value) for sample in samples for value in sample)
    tested = None if withheld or n < FIRST else unpaired(samples, family.smallest, scale=scale)
    return replace(claim, n=n, difference=sum(map(fmean, samples)), estimate=tested, withheld=withheld)


def _why(claim: Claim) -> str:
    """Return why there is no verdict, where that is not for want of evidence alone."""
    if claim.verdict != OPEN:
        return ""
    if claim.withheld:
        return "a run without a score"
    if claim.n < FIRST:
        return f"{claim.n} of {FIRST} {'pairs' if claim.values else 'runs'}"
    if claim.estimate:
        return ""
    return "the same difference on every seed" if claim.values else "no spread"


def gate(found: pd.DataFrame, arm: str) -> int:
    """Return the exit code of an arm: worse in any comparison; better in some; the same in all; else open.

    Raises:
        BadInput: It is in no comparison.
    """
    verdicts = {*found.loc[found["arm"] == arm, "verdict"]}
    if not verdicts:
        raise unknown("arm", arm, dict.fromkeys(found["arm"]), hint="a gate is an arm that is compared")
    decisive = next((verdict for verdict in (WORSE, BETTER) if verdict in verdicts), None)
    return GATE[decisive or (SAME if verdicts == {SAME} else OPEN)]


def as_texts(found: pd.DataFrame) -> pd.DataFrame:
    """Return claims as a table to read; a case or score that is the same in all rows is left out."""
    found = found.astype(dict.fromkeys(("difference", "low", "high", "at_most"), float))
    sizes = found[["difference", "low", "high", "n"]].to_numpy()
    texts = found[["case", "metric", "arm", "control"]].set_axis(["case", "score", "arm", "against"], axis=1)
    texts["verdict"] = found["verdict"] + found["why"].map(lambda why: why and f" ({why})")
    largest = np.nanmax(np.abs(sizes[:, :3]), axis=1, initial=0)  # of smaller ones three digits are shown
    digits = [max(4, 2 - math.floor(math.log10(most))) if most else 4 for most in largest]
    texts["difference [interval]"] = [
        estimate(mean, low, high, n, shown, signed=True)
        for (mean, low, high, n), shown in zip(sizes, digits, strict=True)
    ]
    texts["differs by at most"] = [*map(number, found["at_most"], digits)]
    return texts.drop(columns=[name for name in ("case", "score") if texts[name].nunique() == 1])


def page(found: pd.DataFrame, smallest_effect: float | None) -> str:
    """Return claims as Markdown; smallest_effect: as of `decide`."""
    texts = as_texts(found)
    for name in {*texts} & {"case", "score", "arm", "against"}:
        texts[name] = texts[name].map(code)
    decided = int(found["verdict"].isin([BETTER, WORSE, SAME]).sum())
    heads, *rows = [[markdown(cell) for cell in row] for row in ([*texts], *texts.to_numpy().tolist())]
    told = {"decided": decided, "level": PLANNED, "delta": smallest_effect}
    return render("decide.md.j2", claims=found, heads=heads, rows=rows, **told)


def noise(
    frame: pd.DataFrame,
    *,
    scores: Sequence[str] = ("score",),
    arm: str = "arm",
    seed: str | None = "seed",
    cases: Sequence[str] = (),
    smallest_effect: float | None = None,
) -> pd.DataFrame:
    """Return how much scores vary over seeds, and what that allows to find nine times in ten.

    Args:
        frame, scores, arm, seed, cases, smallest_effect: As of `decide`.

    Returns:
        A row per case and score: arms, seeds (the fewest of an arm), comparisons (each arm with a control, of all
        cases, which are judged together), sd (of one score, once its arm and seed are known where arms share three
        seeds, else its arm alone), finds (the difference that so many seeds find, from 6 on), seeds_needed (for the
        smallest effect; missing: over 100, or sd is).

    Raises:
        BadInput: As of `decide`.
    """
    if smallest_effect is not None:
        require_within("a smallest effect", smallest_effect, {"above": 0})
    scores, cases = ([name] if isinstance(name, str) else name for name in (scores, cases))
    runs, rows = _runs(frame, arm, seed, scores, cases), list[list[Any]]()
    comparisons = max(1, runs["arm"].nunique() - 1) * runs["case"].nunique()
    for case, of_case in runs.groupby("case", sort=False):
        for score in scores:
            values = of_case.pivot(index="seed", columns="arm", values=score).dropna(axis=1, how="all")
            seeds = min(values.count(), default=0)
            sd = planning.spread(values, {})
            sd = math.sqrt(values.var().mean()) if sd is None else sd
            difference, level = math.sqrt(2) * sd, PLANNED / comparisons
            finds = difference * _found_effect(seeds, level) if seeds >= FIRST else math.nan
            wanted = None if math.isnan(difference) else smallest_effect
            needed = planning.seeds_for(wanted, difference, level) if wanted else None
            rows.append([case, score, len(values.columns), seeds, comparisons, sd, finds, needed])
    columns = ["case", "metric", "arms", "seeds", "comparisons", "sd", "finds", "seeds_needed"]
    return pd.DataFrame(rows, columns=columns).astype({"seeds_needed": "Int64"})


def _found_effect(seeds: int, level: float) -> float:
    """Return the difference, in standard deviations of it, that so many pairs find nine times in ten."""
    return float(
        optimize.brentq(lambda effect: planning.chance(seeds, effect, level) - planning.CHANCE, 0, 100)
    )
