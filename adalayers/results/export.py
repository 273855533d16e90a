"""A study's tables for a paper: `adalayers export <folder> --format latex|csv|json`."""

from __future__ import annotations

import json
import re
from functools import partial
from typing import Any, Literal

import pandas as pd

from adalayers.errors import BadInput
from adalayers.results.frames import StudyResults
from adalayers.results.rescoring import SPLITS
from adalayers.storage.to_json import to_json

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
            f"wanted comparisons of arms in {study.folder.uri}, its rows hold none yet; go on with the study"
        )
    if form == "csv":
        return f"{_csv(arms)}\n{_csv(claims)}"
    if form == "json":
        both = {"arms": arms.to_dict("records"), "comparisons": claims.to_dict("records")}
        return f"{json.dumps(to_json(both))}\n"
    conditional = claims["kind"].isin(_CONDITIONAL)
    tables = [_latex_claims(study, claims[~conditional], "comparisons")]
    if conditional.any():
        tables.append(_latex_claims(study, claims[conditional], "interactions"))
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
    table = {
        "Arm": arms["arm"].map(_text),
        "Seeds": arms["n"].astype(int),
        "Mean": arms["mean"].map(_number),
        r"95\% interval": [*map(_interval, arms["low"], arms["high"])],
    }
    what = f"{SPLITS[arms['split'].iloc[0]]} {_text(study.study.request.metric)}"
    return _float(study, table, "rrl", f"{what} by arm, mean over seeds.", "arms")


def _latex_claims(study: StudyResults, claims: pd.DataFrame, label: str) -> str:
    verdicts = claims["verdict"].fillna("").map(lambda verdict: MARKS.get(verdict, _text(verdict)))
    wholes = claims["kind"] == "omnibus"  # tested by permutation, which gives no interval
    intervals = claims.apply(lambda row: _interval(row["low"], row["high"], sign="+"), axis=1)
    table = {
        "Comparison": claims.apply(_names, axis=1),
        "Seeds": claims["n"],
        "Difference": claims["difference"].map(partial(_number, sign="+")),
        "Interval": intervals.mask(wholes, claims["p_adjusted"].map(_p_value)),
        "": verdicts.mask(claims["tie"], "$=$ (tie)"),
    }
    first = claims.iloc[0]
    key = ", ".join(f"{mark} {verdict}" for verdict, mark in MARKS.items())
    caption = (
        f"differences of {SPLITS[first['split']]} {_text(first['metric'])} over paired seeds, each with the interval "
        f"of its own test{', factors as wholes with their adjusted p' if wholes.any() else ''}. {key}."
    )
    return _float(study, table, "rrlc", caption, label)


def _names(row: pd.Series) -> str:
    """Return what is compared; an interaction, a difference of differences, is called one."""
    if row["kind"] == "omnibus":
        return f"{_text(row['arm'])}, as a whole"
    if row["kind"] == "interaction":
        return f"interaction of {_text(row['arm'])}"
    factor, equals, _ = row["arm"].partition("=")
    same = factor + equals if row["kind"] in ("factor", "simple") else ""
    at = f" at {_text(row['at'])}" if row.get("at") else ""
    return f"{_text(row['arm'])} vs.\\ {_text(str(row['control']).removeprefix(same))}{at}"


def _float(study: StudyResults, table: dict[str, Any], columns: str, caption: str, label: str) -> str:
    name = re.sub(r"[^A-Za-z0-9-]+", "-", f"{study.study.study}-{study.folder.name}-{label}")
    environment = study.study.environment
    text = pd.DataFrame(table).to_latex(
        index=False,
        caption=f"{_text(environment.backbone.name)} on {_text(environment.dataset.name)}: {caption}",
        label=f"tab:{name}",
        column_format=f"@{{}}>{{\\raggedright\\arraybackslash}}p{{0.44\\linewidth}}{columns}@{{}}",
    )
    small = "\\begin{table}\n\\centering\\footnotesize\\setlength{\\tabcolsep}{4pt}"
    return "% \\usepackage{array,booktabs}\n" + text.replace("\\begin{table}", small, 1)


def _text(name: object) -> str:
    return re.sub(r"[\\~^&%$#_{}]", lambda found: _SPECIAL[found[0]], str(name))


def _number(value: float, sign: str = "") -> str:
    return "--" if pd.isna(value) else f"${_rounded(value, sign)}$"


def _p_value(value: float) -> str:
    return "--" if pd.isna(value) else f"$p = {value:.2g}$" if value >= 1e-4 else "$p < 0.0001$"


def _interval(low: float, high: float, sign: str = "") -> str:
    return "--" if pd.isna(low) else f"$[{_rounded(low, sign)}, {_rounded(high, sign)}]$"


def _rounded(value: float, sign: str) -> str:
    text = f"{value:{sign}.3f}"
    return text.lstrip("+-") if float(text) == 0 else text
