"""Plots draw what their frames say."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from reports import plots

NAN = float("nan")


@pytest.fixture(autouse=True)
def _style():
    with plots.own_style():
        yield


def frame(**columns) -> pd.DataFrame:
    return pd.DataFrame({"series": "a", "low": NAN, "high": NAN} | columns)


def drawn(axes) -> set[tuple[float, float]]:
    """Return where single markers are."""
    lines = [line for line in axes.lines if line.get_marker() in plots.MARKERS]
    return {(float(line.get_xdata()[0]), float(line.get_ydata()[0])) for line in lines}


def test_points_stand_at_their_levels_series_apart_and_hollow_without_interval():
    _, axes = plots.single(3.0, "x (unit)", "y")
    rows = frame(x=["b", "a", "b"], mean=[1.0, 2.0, 3.0], series=["s", "s", "t"])
    plots.points(rows.assign(low=[0.5, NAN, NAN], high=[1.5, NAN, NAN]), axes)
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["b", "a"]
    assert {(round(x), y) for x, y in drawn(axes)} == {(0, 1.0), (1, 2.0), (0, 3.0)}
    assert len({x for x, _ in drawn(axes)}) == 3
    fills = {
        line.get_ydata()[0]: line.get_markerfacecolor() for line in axes.lines if line.get_marker() in "os"
    }
    assert (fills[2.0], fills[1.0]) == ("white", plots.look(0).colour)


@pytest.mark.parametrize(
    ("scale", "x", "places", "shown"),
    [
        ("log", [1.0, 8.0], [1.0, 8.0], "log"),
        ("linear", [1.0, 8.0], [1.0, 8.0], "linear"),
        ("log", [0.0, 8.0], [0.0, 1.0], "linear"),  # cannot be logarithmic: levels side by side
    ],
)
def test_numbers_lie_to_scale(scale, x, places, shown):
    _, axes = plots.single(3.0, "x", "y")
    plots.points(frame(x=x, mean=[1.0, 2.0]), axes, scale=scale)
    assert axes.get_xscale() == shown
    assert sorted(drawn(axes)) == [pytest.approx(point) for point in zip(places, [1.0, 2.0], strict=True)]


def test_an_interval_beyond_the_frame_ends_in_an_arrow():
    _, axes = plots.single(3.0, "x", "")
    rows = frame(name=["wide", "narrow"], mean=[0.0, 0.1], low=[-9.0, 0.09], high=[9.0, 0.11])
    plots.forest(rows.assign(values=[[0.0, 0.01], [0.1]]), axes, zone=0.02)
    left, right = axes.get_xlim()
    assert -9 < left < 0 < right < 9
    ends = {line.get_marker(): line.get_xdata()[0] for line in axes.lines if line.get_marker() in ("<", ">")}
    assert ends == {"<": left, ">": right}
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["wide", "narrow"]
    assert axes.get_ylim()[0] > axes.get_ylim()[1]  # the first on top


def test_no_marker_is_cut():
    figure, axes = plots.single(3.0, "x", "y")
    plots.points(frame(x=[1.0, 2.0], mean=[0.0, 1.0]), axes, scale="linear")
    FigureCanvasAgg(figure).draw()
    for x, y in drawn(axes):
        at = axes.transAxes.inverted().transform(axes.transData.transform((x, y)))
        assert ((at > 0.02) & (at < 0.98)).all()


def test_curves_are_lines_with_bands():
    _, axes = plots.single(3.0, "x", "y")
    rows = frame(step=[1, 2, 1, 2], mean=[0.1, 0.2, 0.3, 0.4], series=["a", "a", "b", "b"])
    plots.curves(rows.assign(low=rows["mean"] - 0.1, high=rows["mean"] + 0.1), axes)
    assert [list(line.get_ydata()) for line in axes.lines] == [[0.1, 0.2], [0.3, 0.4]]
    assert len(axes.collections) == 2


def test_cells_of_a_heat_map_carry_their_texts_and_dark_ones_white():
    _, axes = plots.single(3.0, "x", "y")
    grid = pd.DataFrame([[0.0, 1.0], [NAN, 0.5]], index=["r", "s"], columns=["c", "d"])
    written = grid.map(lambda value: "" if np.isnan(value) else f"{value}")
    plots.heatmap(grid, axes, texts=written, low=0.0, high=1.0)
    texts = {text.get_position(): (text.get_text(), text.get_color()) for text in axes.texts}
    assert [texts[place] for place in ((0, 0), (1, 0))] == [("0.0", "black"), ("1.0", "white")]
    assert [texts[place] for place in ((0, 1), (1, 1))] == [("", "black"), ("0.5", "black")]
    assert len(axes.patches) == 1  # hatched


def test_a_front_is_a_line_and_points_together_share_their_numbers():
    _, axes = plots.single(3.0, "x", "y")
    rows = frame(cost=[1.0, 10.0, 10.0, 100.0], mean=[0.1, 0.5, 0.5, 0.2], number=[4.0, 1.0, 2.0, NAN])
    plots.front(rows.assign(on_front=[True, True, False, False]), axes)
    assert list(axes.lines[0].get_xdata()) == [1.0, 10.0]
    assert [text.get_text() for text in axes.texts] == ["4", "1, 2"]
    assert axes.get_xscale() == "log"


def test_bars_say_their_values():
    _, axes = plots.single(3.0, "x", "y")
    plots.bars(frame(name=["lr", "k"], mean=[0.7, 0.3]), axes)
    assert [bar.get_width() for bar in axes.patches] == [0.7, 0.3]
    assert [text.get_text() for text in axes.texts] == ["0.70", "0.30"]


def test_many_series_look_different():
    assert len({plots.look(place)[:2] for place in range(112)}) == 112
    assert len({plots.look(place).colour for place in range(16)}) == 16
    assert [*plots.looks_of(["b", "a", "b"])] == ["b", "a"]


def test_panels_are_labelled_at_the_outer_edges_and_legends_below():
    figure, axes = plots.panels(["p", "q", "r", "s"], 2.0, x="step (count)", y="score")
    height = figure.get_figheight()
    plots.legend(figure, plots.looks_of(["a $b$", "c"]), "title")
    assert [panel.get_title(loc="left") for panel in axes] == ["p", "q", "r", "s"]
    assert [panel.yaxis.label.get_visible() for panel in axes] == [True, False, False, True]
    assert [panel.xaxis.label.get_visible() for panel in axes] == [False, True, True, True]
    assert {panel.get_xlabel() for panel in axes} == {"step\n(count)"}
    assert figure.get_figheight() > height
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [r"a \$b\$", "c"]
    FigureCanvasAgg(figure).draw()


def test_texts_of_data_draw_no_mathematics_and_are_cut():
    assert plots.plain_text("$x$") == r"\$x\$"
    assert len(plots.plain_text("x" * 999)) == 200


def test_a_user_s_own_settings_stay():
    theirs = {"font.family": ["No Such Font"], "figure.dpi": 7, "axes.facecolor": "red"}
    with mpl.rc_context(theirs):
        with plots.own_style():
            assert plots.new_figure(1.0).add_subplot().get_facecolor() == (1, 1, 1, 1)
        assert mpl.rcParams["figure.dpi"] == 7
