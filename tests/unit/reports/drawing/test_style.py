"""Figures look the same whatever Matplotlib is set to, and what keeps them from being drawn is said first."""

import matplotlib as mpl
import pytest

import reports
from adalayers.errors import BadInput
from reports.drawing.style import new_figure, own_style
from reports.write import images


def drawn():
    with own_style():
        figure = new_figure(1.0)
        figure.add_subplot().set_title("a word")
    return images(figure)


def test_a_user_s_own_settings_change_no_byte_and_stay():
    own = drawn()
    theirs = {"text.usetex": True, "font.family": ["No Such Font"], "figure.dpi": 7, "axes.facecolor": "red"}
    with mpl.rc_context(theirs):
        assert drawn() == own
        reports.check()
        assert mpl.rcParams["text.usetex"]
        assert mpl.rcParams["figure.dpi"] == 7


def test_what_keeps_figures_from_being_drawn_is_bad_input(monkeypatch):
    def fails(figure):
        raise RuntimeError("no font\nanywhere")

    monkeypatch.setattr("reports.write.images", fails)
    with pytest.raises(
        BadInput, match=r"wanted to draw figures, which fails here \(RuntimeError: no font anywhere\)"
    ):
        reports.check()
