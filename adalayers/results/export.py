"""A study's tables for a paper: `adalayers export <folder> --format latex|csv|json`."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Literal

import pandas as pd

from adalayers.errors import BadInput
from adalayers.results.files import CLAIMS
from adalayers.results.frames import StudyResults
from adalayers.results.rescoring import SPLITS

Format = Literal["latex", "csv", "json"]

MARKS = {
    "better": r"$\uparrow$",
    "worse": r"$\downarrow$",
    "no difference seen": "$=$",
    "not enough evidence": "?",
}
"""Of verdicts, in LaTeX."""
_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What begins a formula in a spreadsheet."""
_CONDITIONAL = ("simple", "interaction")


def export(study: StudyResults, form: Format) -> str:
    """Return the table of arms and the table of comparisons, with their intervals, as text.

    latex has the page's columns as floats in booktabs, with effects at one level of another factor and interactions in
    one of their own; csv, with an empty line in between, and json have all.

    Raises:
        BadInput: There are no comparisons yet.
    """
    arms, claims = study.arms, study.claims
    if claims.empty:
        raise BadInput(
            f"wanted comparisons in {study.folder.uri}/{CLAIMS}, got none; finish the study, then "
            "`adalayers report` on its folder"
        )
    if form == "csv":
        return f"{_csv(arms)}\n{_csv(claims)}"
    if form == "json":
        return f'{{"arms": {arms.to_json(orient="records")}, "comparisons": {claims.to_json(orient="records")}}}\n'
    conditional = claims["kind"].isin(_CONDITIONAL)
    tables = [_latex_claims(study, claims[~conditional], len(claims), "comparisons")]
    if conditional.any():
        tables.append(_latex_claims(study, claims[conditional], len(claims), "interactions"))
    return "\n".join([_latex_arms(study, arms), *tables])


def _csv(frame: pd.DataFrame) -> str:
    """Return a table as CSV; text that a spreadsheet would take for a formula has an apostrophe in front."""
    text = {
        name: frame[name].map(lambda cell: f"'{cell}" if str(cell).startswith(_FORMULA) else cell)
        for name in frame.columns
        if not pd.api.types.is_numeric_dtype(frame[name])
    }
    return str(frame.assign(**text).to_csv(index=False))


def _latex_arms(study: StudyResults, arms: pd.DataFrame) -> str:
    split = str(arms["split"].iloc[0])
    rows = [
        [_text(row["arm"]), f"{row['n']:.0f}", _number(row["mean"]), _interval(row["low"], row["high"])]
        for row in arms.to_dict("records")
    ]
    caption = f"{_about(study)}: {SPLITS[split]} {_text(study.study.request.metric)} by arm, mean over seeds."
    return _float(study, "rrl", ["Arm", "Seeds", "Mean", r"95\% interval"], rows, caption, "arms")


def _latex_claims(study: StudyResults, claims: pd.DataFrame, planned: int, label: str) -> str:
    rows = []
    for row in claims.to_dict("records"):
        mark = "$=$ (tie)" if row.get("tie") else MARKS.get(row["verdict"], _text(row["verdict"]))
        names = _names(row)
        size = [_number(row["difference"], "+"), _interval(row["low"], row["high"], "+")]
        rows.append([names, f"{row['n']:.0f}", *size, mark])
    first = claims.iloc[0]
    key = ", ".join(f"{mark} {verdict}" for verdict, mark in MARKS.items())
    caption = (
        f"{_about(study)}: differences of {SPLITS[first['split']]} {_text(first['metric'])} over paired seeds; "
        f"intervals of all {planned} planned comparisons cover simultaneously at {100 * first['level']:.0f}\\%. {key}."
    )
    return _float(study, "rrlc", ["Comparison", "Seeds", "Difference", "Interval", ""], rows, caption, label)


def _names(row: Mapping[Hashable, Any]) -> str:
    """Return what is compared; an interaction, a difference of differences, is called one."""
    if row["kind"] == "interaction":
        return f"interaction of {_text(row['arm'])}"
    factor, equals, _ = str(row["arm"]).partition("=")
    same = factor + equals if row["kind"] in ("factor", "simple") else ""
    at = f" at {_text(row['at'])}" if row.get("at") else ""
    return f"{_text(row['arm'])} vs.\\ {_text(str(row['control']).removeprefix(same))}{at}"


def _float(
    study: StudyResults, columns: str, heads: Sequence[str], rows: list[list[str]], caption: str, label: str
) -> str:
    name = re.sub(r"[^A-Za-z0-9-]+", "-", f"{study.study.study}-{study.folder.name}-{label}")
    body = "\n".join(f"  {' & '.join(row)} \\\\" for row in [heads, *rows])
    head, _, rest = body.partition("\n")
    return (
        "% \\usepackage{array,booktabs}\n\\begin{table}\n  \\centering\\footnotesize\\setlength{\\tabcolsep}{4pt}\n"
        f"  \\caption{{{caption}}}\n  \\label{{tab:{name}}}\n"
        f"  \\begin{{tabular}}{{@{{}}>{{\\raggedright\\arraybackslash}}p{{0.44\\linewidth}}{columns}@{{}}}}\n"
        f"  \\toprule\n{head}\n  \\midrule\n{rest}\n  \\bottomrule\n"
        "  \\end{tabular}\n\\end{table}\n"
    )


def _about(study: StudyResults) -> str:
    environment = study.study.environment
    return f"{_text(environment.backbone.name)} on {_text(environment.dataset.name)}"


def _text(name: object) -> str:
    return re.sub(r"[\\~^&%$#_{}]", lambda found: _SPECIAL[found[0]], str(name))


def _number(value: float | None, sign: str = "") -> str:
    return "--" if value is None or pd.isna(value) else f"${value:{sign}.3f}$"


def _interval(low: float | None, high: float | None, sign: str = "") -> str:
    if low is None or high is None or pd.isna(low) or pd.isna(high):
        return "--"
    return f"$[{low:{sign}.3f}, {high:{sign}.3f}]$"
