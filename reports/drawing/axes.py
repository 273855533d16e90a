"""The levels of a factor along an axis, to scale or side by side."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, NullLocator

from adalayers.results.study_file import Factor
from reports.drawing import style
from reports.drawing.style import plain_text
from reports.reading.factors import label, level, level_name, levels, numeric


class FactorAxis:
    """Where the levels of a factor lie along x; `values` hold those that occur."""

    def __init__(self, factor: Factor, values: Iterable[Any]):
        self.factor, self.levels = factor, levels(values)
        self._numbers = numeric(self.levels) or []
        to_scale = bool(self._numbers) and factor.scale != "choice"
        log = to_scale and factor.scale == "log" and self._numbers[0] > 0
        self.scale = "log" if log else "linear" if to_scale else "choice"

    def x_of(self, value: Any, line: int = 0, lines: int = 1) -> float:
        """Return the x of a level for one of several lines: they are set apart, the middle one at its true x."""
        apart = line - (lines - 1) / 2
        parsed = level(value)
        if self.scale == "choice" or not isinstance(parsed, float):
            return self.levels.index(parsed) + 0.07 * apart if parsed is not None else float("nan")
        if self.scale == "log":
            return parsed * 1.07**apart
        return parsed + 0.012 * (self._numbers[-1] - self._numbers[0]) * apart

    def finish(self, axes: Axes) -> None:
        """Set scale, ticks and label: a tick at each level, or at powers where levels are many or drawn."""
        name = label(self.factor)
        if self.scale == "choice":
            style.name_ticks(axes, [level_name(value) for value in self.levels], axis="x")
            axes.set_xlim(-0.4, len(self.levels) - 0.6)
        elif self.scale == "log":
            axes.set_xscale("log", base=2)
            axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            axes.xaxis.set_minor_locator(NullLocator())
            axes.set_xlim(self._numbers[0] / 1.6, self._numbers[-1] * 1.6)
            name = f"{name}, log scale"
        if self.scale != "choice" and len(self.levels) <= 8:
            axes.set_xticks(self._numbers)
        axes.set_xlabel(plain_text(name))
