"""The sections on what intervals cover, on looks at the confirmed trials, and on openings of the test split."""

from __future__ import annotations

from statistics import median_low

from reports.evidence.analyses import Look, changed
from reports.evidence.claims import BETTER, WORSE, Claim
from reports.evidence.evidence import Evidence
from reports.evidence.resampling import RESAMPLES
from reports.evidence.statistics import LEVEL, comparison_alpha, look_alpha, look_cost
from reports.reading.frames import records
from reports.reading.load import Loaded, get, listing
from reports.words.labels import SPLITS, short
from reports.words.text import NONE, code, count, escape, estimate, folded, interval, several, table


def certainty(evidence: Evidence) -> list[str]:
    """What each interval covers: seeds, seeds and examples; and how often an arm wins on one seed."""
    claims = evidence.claims
    if not claims:
        return []
    split, first = SPLITS[evidence.split], claims[0]
    heads = ["arm", "difference [over seeds]", f"[over seeds and {split} examples]"]
    rows = [
        [
            code(claim.arm),
            estimate(claim.difference, claim.low, claim.high, claim.n, signed=True),
            _with_examples(claim),
            estimate(claim.improvement, claim.improvement_low, claim.improvement_high, claim.n, 2),
        ]
        for claim in claims
    ]
    why = f" Left out where {several(evidence.without_examples)}." if evidence.without_examples else ""
    return [
        f"Each is an interval of {first.interval_level:.3%}, so that those of one column hold together, at all looks, "
        f"with {first.level:.0%}. *Over seeds*: what would change with other initialisations and orders, on "
        f"these very {split} examples; verdicts rest on it. *Over seeds and {split} examples*: what would also change "
        f"with other examples of the same kind (paired bootstrap, {RESAMPLES:,} draws, the same for all arms); read "
        f"this one for a claim about new data.{why}",
        "*Beats the control*: the share of seeds on which the arm is ahead, a tie counting half, with Clopper and "
        "Pearson's exact interval: an estimate of how often it would be ahead on one fresh seed.",
        folded(
            "The intervals of each arm",
            len(rows),
            table([*heads, "beats the control, share of seeds"], rows),
        ),
    ]


def looks(loaded: Loaded, evidence: Evidence) -> list[str]:
    """What each look covered, what it might spend, and what it decided."""
    plan, claims = loaded.plan, evidence.claims
    m = claims[0].comparisons if claims else 0
    if not m:
        return ["Nothing was compared, so nothing was looked at."]
    n = median_low(claim.n for claim in claims)
    cost = f": {look_cost(plan.looks, m, n):.2f} times that of an only look at n = {n}" if n > 1 else ""
    paragraphs = [
        f"This is look {plan.looks} at the confirmed trials. A look is a run of the study after which new "
        "confirmed trials could be read; rebuilding this page from the same files shows nothing new and is "
        f"none. Looking again gives chance more goes, so look j may spend only 5% / 2^j: this one "
        f"{look_alpha(plan.looks):.3%}, shared by {count(m, 'comparison')}, so each interval of a difference is one of "
        f"{1 - comparison_alpha(plan.looks, m):.4%}. All looks together, however many follow, then hold with "
        f"{LEVEL:.0%}. The price is width{cost}; the seeds needed, under Limits, count it in.",
    ]
    if plan.looks > 1 and not evidence.looks:
        paragraphs.append(
            "`study.json` does not say which seeds each look covered, so what earlier looks decided cannot be "
            "worked out again."
        )
    if evidence.looks:
        heads = ["look", "ended", "seeds per arm", "may spend", "called better or worse", "holds no longer"]
        paragraphs.append(table(heads, [_look(look, claims) for look in evidence.looks]))
    gone = sorted({arm for look in evidence.looks for arm in changed(look, claims)})
    if gone:
        paragraphs.append(
            f"**A claim of an earlier look no longer holds**: {several([code(arm) for arm in gone])}. The verdict on "
            "this page is that of this look."
        )
    return paragraphs


def openings(loaded: Loaded, evidence: Evidence) -> list[str]:
    """How often the test split was opened, and validation minus test by arm."""
    opened = get(loaded.results.study, "happened", "test_opened")
    runs = [
        [escape(get(run, "ended", default="")), str(scored), code(str(get(run, "commit", default=""))[:10])]
        for run in listing(loaded.results.study, "happened", "runs")
        if isinstance(run, dict) and isinstance(scored := run.get("test_scored"), int) and scored
    ]
    times = f"{opened:.0f}" if isinstance(opened, (int, float)) else "an unknown number of"
    paragraphs = [
        f"The test split was opened in {times} {'run' if opened == 1 else 'runs'} of the study: each confirmed "
        "trial scores it once, when it ends, with the model that was best on validation. Nothing is chosen on it."
    ]
    if runs:
        paragraphs.append(table(["run ended", "confirmed trials that scored test", "commit"], runs))
    if evidence.optimism.empty:
        return [*paragraphs, "No confirmed trial has both a validation and a test score."]
    rows = [
        [code(row["arm"]), estimate(row["mean"], row["low"], row["high"], row["n"], signed=True)]
        for row in records(evidence.optimism)
    ]
    return [
        *paragraphs,
        "*Optimism* is the validation score minus the test score of the same trial. Stopping and the choice "
        "of the best epoch use validation, which flatters it; the two splits also differ in their examples, so a "
        "difference that all arms share is no fault of any.",
        folded(
            "The optimism of each arm",
            len(rows),
            table(
                [
                    "arm",
                    f"{short(loaded.plan.metric)}, validation − test, mean [{LEVEL:.0%} interval over seeds]",
                ],
                rows,
            ),
        ),
    ]


def _look(look: Look, now: list[Claim]) -> list[str]:
    then = [
        f"{code(claim.arm)} {claim.verdict}"
        for claim in look.claims or ()
        if claim.verdict in (BETTER, WORSE)
    ]
    sizes = sorted({len(held) for held in (look.seeds or {}).values()})
    seeds = " to ".join(str(size) for size in sorted({sizes[0], sizes[-1]})) if sizes else NONE
    known = look.claims is not None
    return [
        str(look.number),
        escape(look.ended) or NONE,
        seeds,
        f"{look_alpha(look.number):.3%}",
        (several(then) or "none") if known else "not known",
        (several([code(arm) for arm in changed(look, now)]) or "none") if known else "not known",
    ]


def _with_examples(claim: Claim) -> str:
    if claim.examples_low is None or claim.examples_high is None:
        return NONE
    return interval(claim.examples_low, claim.examples_high, signed=True)
