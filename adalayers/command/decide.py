"""`adalayers decide` and `adalayers noise`: evidence for scores that were made elsewhere, from a table of runs."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection
from typing import Any

import pandas as pd

from adalayers.errors import BadInput, require_readable
from adalayers.installed import own_module
from adalayers.storage.to_json import to_json

_judging = own_module("reports.decide")
decide, noise = _judging.decide, _judging.noise


def run_decide(file: str, pairs: list[str], gate: str | None, form: str, **how: Any) -> int:
    """Print what a table of runs allows to claim; return 0, or a gate's code."""
    frame = _read(file)
    arms = {str(name).strip() for name in frame.loc[:, frame.columns == how["arm"]].to_numpy().ravel()}
    found = decide(frame, pairs=[_sides(one, arms) for one in pairs], **how)
    code: int = _judging.gate(found, gate) if gate else 0
    if form == "json":
        print(json.dumps(to_json(found.to_dict("records")), indent=1))
    elif form == "latex":
        print(_judging.as_texts(found).to_latex(index=False, escape=True), end="")
    else:
        print(_judging.page(found, how["smallest_effect"]), end="")
    return code


def run_noise(file: str, **how: Any) -> None:
    """Print how much the scores of a table vary, and what that allows to find."""
    found = noise(_read(file), **how)
    empty = {"case": not found["case"].any(), "seeds_needed": how["smallest_effect"] is None}
    shown = found.drop(columns=[column for column, without in empty.items() if without])
    if "seeds_needed" in shown:
        shown["seeds_needed"] = shown["seeds_needed"].astype(object).fillna("-")
    print(shown.to_string(index=False, na_rep="-"))
    print(
        "\nsd: of one score, over seeds; finds: the difference from a control that so many seeds find nine times in "
        "ten (-: fewer than 6);\nseeds_needed: how many find --smallest-effect (-: more than 100, or sd is unknown)"
    )


def _sides(pair: str, arms: Collection[str]) -> tuple[str, str]:
    """Return an arm and its control; where names hold a colon too, those that are arms."""
    names = pair.split(":")
    sides = [(":".join(names[:i]), ":".join(names[i:])) for i in range(1, len(names))]
    if not sides or not all(sides[0]):
        raise BadInput(f"wanted pairs as ARM:CONTROL, got {pair!r}")
    known = [both for both in sides if {*both} <= {*arms}]
    if known[1:]:
        raise BadInput(
            f"wanted pairs that read one way, {pair!r} is {known[0]} and {known[1]}; rename an arm"
        )
    return (known or sides)[0]


def _read(file: str) -> pd.DataFrame:
    require_readable(file)
    try:
        # As text: 1.10 and 1.1 are two arms.
        rows = pd.read_csv(
            sys.stdin if file == "-" else file,
            header=None,
            dtype=str,
            keep_default_na=False,
            skipinitialspace=True,
            index_col=False,
        )
        return rows[1:].set_axis(rows.iloc[0].str.strip(), axis=1).reset_index(drop=True)
    except (OSError, ValueError) as error:
        raise BadInput(
            f"wanted a CSV file with a row per run, commas between columns and points in numbers, got {file}, which "
            f"cannot be read: {error}"
        ) from error
