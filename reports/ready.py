"""Whether pages can be made here: asked before a study whose end they are."""

from __future__ import annotations

from adalayers.errors import BadInput


def require_figures() -> None:
    """Draw a figure of a word and keep nothing.

    Raises:
        BadInput: It cannot be drawn.
    """
    try:
        from reports import plots as style
        from reports.write import images

        with style.own_style():
            figure = style.new_figure(1.0)
            figure.add_subplot().set_title("word")
        images(figure)
    except Exception as error:  # of many kinds: matplotlib reads files and fonts of the user's
        why = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
        raise BadInput(
            f"wanted to draw figures, which fails here ({why}); mend Matplotlib's installation, or the matplotlibrc "
            "of the current folder or of yours"
        ) from error
