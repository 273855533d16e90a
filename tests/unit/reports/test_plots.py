"""Plots draw what their frames say."""

import matplotlib as mpl
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from reports import check, plots
from tests.helpers.refusing import refused

NAN = float("nan")
LOOKS = plots.looks_of("ast")


@pytest.fixture(autouse=True)
def _style():
    with plots.own_style():
        yield


@pytest.fixture
def axes():
    return plots.single(3.0, "x", "y")[1]


def frame(**columns) -> pd.DataFrame:
    return pd.DataFrame({"series": "a", "low": NAN, "high": NAN} | columns)


def drawn(axes) -> set[tuple[float, float]]:
    """Return where single markers are."""
    lines = [line for line in axes.lines if line.get_marker() in plots.MARKERS]
    return {(float(line.get_xdata()[0]), float(line.get_ydata()[0])) for line in lines}


def texts_of(things) -> list[str]:
    return [text.get_text() for text in things]


def test_points_stand_at_their_levels_series_apart_and_hollow_without_interval(axes):
    rows = frame(x=["b", "a", "b"], mean=[1.0, 2.0, 3.0], series=["s", "s", "t"])
    plots.points(rows.assign(low=[0.5, NAN, NAN], high=[1.2, NAN, NAN]), axes, looks=LOOKS)
    assert axes.collections[0].get_segments()[0][:, 1].tolist() == pytest.approx([0.5, 1.2])
    assert texts_of(axes.get_xticklabels()) == ["b", "a"]
    assert {(round(x), y) for x, y in drawn(axes)} == {(0, 1.0), (1, 2.0), (0, 3.0)}
    assert len({x for x, _ in drawn(axes)}) == 3
    markers = [line for line in axes.lines if line.get_marker() in "os"]
    fills = {line.get_ydata()[0]: line.get_markerfacecolor() for line in markers}
    assert (fills[2.0], fills[1.0]) == ("white", LOOKS["s"].colour)


@pytest.mark.parametrize("low", [1.0, 0.0])
def test_numbers_lie_to_scale_and_no_marker_is_cut(axes, low):
    plots.points(frame(x=[low, 8.0], mean=[1.0, 2.0]), axes, scale="log", looks=LOOKS)
    # 0 cannot be logarithmic: side by side
    places = [(1.0, 1.0), (8.0, 2.0)] if low else [(0.0, 1.0), (1.0, 2.0)]
    assert axes.get_xscale() == ("log" if low else "linear")
    assert sorted(drawn(axes)) == [pytest.approx(point) for point in places]
    FigureCanvasAgg(axes.figure).draw()
    for point in drawn(axes):
        at = axes.transAxes.inverted().transform(axes.transData.transform(point))
        assert ((at > 0.02) & (at < 0.98)).all()


def test_an_interval_beyond_the_frame_ends_in_an_arrow(axes):
    rows = frame(name=["wide", "narrow"], mean=[0.0, 0.1], low=[-9.0, 0.09], high=[9.0, 0.11])
    plots.forest(rows.assign(values=[[0.0, 0.01], [0.1]]), axes, zone=0.02, looks=LOOKS)
    left, right = axes.get_xlim()
    assert -9 < left < 0 < right < 9
    ends = {line.get_marker(): line.get_xdata()[0] for line in axes.lines}
    assert (ends["<"], ends[">"]) == (left, right)
    assert axes.get_ylim()[0] > axes.get_ylim()[1]  # the first on top


def test_a_front_is_a_line_and_points_together_share_their_numbers(axes):
    rows = frame(cost=[1.0, 10.0, 10.0, 100.0], mean=[0.1, 0.5, 0.5, 0.2], number=[4.0, 1.0, 2.0, NAN])
    plots.front(rows.assign(on_front=[True, True, False, False]), axes, looks=LOOKS)
    assert list(axes.lines[0].get_xdata()) == [1.0, 10.0]
    assert texts_of(axes.texts) == ["4", "1, 2"]


def test_panels_are_labelled_at_the_outer_edges_and_legends_below():
    figure, axes = plots.panels(["p", "q", "r", "s"], 2.0, x="step (count)", y="score")
    height = figure.get_figheight()
    plots.legend(figure, plots.looks_of(["a $b$", "c"]), "title")
    assert [panel.get_title(loc="left") for panel in axes] == ["p", "q", "r", "s"]
    assert [panel.yaxis.label.get_visible() for panel in axes] == [True, False, False, True]
    assert [panel.xaxis.label.get_visible() for panel in axes] == [False, True, True, True]
    assert {panel.get_xlabel() for panel in axes} == {"step\n(count)"}
    assert figure.get_figheight() > height
    assert texts_of(figure.legends[0].get_texts()) == [r"a \$b\$", "c"]  # texts of data draw no mathematics
    assert len(plots.plain_text("x" * 999)) == 200
    assert plots.plain_text("$x \x1b[31m<img") == r"\$x ?[31m<img"
    assert len({plots.look(place)[:2] for place in range(112)}) == 112


def test_a_user_s_own_settings_stay():
    with mpl.rc_context({"font.family": ["No Such Font"], "figure.dpi": 7, "axes.facecolor": "red"}):
        with plots.own_style():
            assert plots.single(1.0, "x", "y")[1].get_facecolor() == (1, 1, 1, 1)
        assert mpl.rcParams["figure.dpi"] == 7


def test_figures_that_cannot_be_drawn_are_bad_input(monkeypatch):
    monkeypatch.setattr("reports.write.images", lambda figure: b"\xfc".decode())
    refused(r"which fails here \(UnicodeDecodeError: .*matplotlibrc", check)
