"""The one module that touches disk: report, claims and figures of a folder, and the cover over several."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from adalayers.errors import BadInput
from adalayers.results.files import ASIDE, CLAIMS, REPORT, STUDY
from adalayers.storage.folder import Folder
from reports import plots as style
from reports.evidence.across import Case, across
from reports.evidence.evidence import Evidence
from reports.page.cover import cover
from reports.page.details import details
from reports.page.study_page import study_page
from reports.reading.load import load
from reports.section import DETAILS, FIGURES

CONTRASTS = "contrasts.json"
DPI = 110
DECIMALS = re.compile(rb"(\d\.\d\d)\d+")
"""Of a coordinate in an SVG, in points: two decimals are more than anyone sees."""


def build(folder: Folder | str | Path) -> Evidence:
    """Rebuild the pages, claims, contrasts and figures/ of a folder from its files alone.

    The same files give the same bytes. Returns what the pages were made from.

    Args:
        folder: A results folder, or its path or URI.

    Raises:
        BadInput: The folder holds no study.
    """
    evidence = Evidence(load(folder))
    directory = evidence.loaded.folder
    page, rest = study_page(evidence), details(evidence)
    for name, figure in {**rest.figures, **page.figures}.items():
        _write_figure(directory, name, figure)
    write_claims(directory, evidence)
    # Last, so that a page never points at figures or claims that are not there.
    for name, text in {DETAILS: rest.text, REPORT: page.text}.items():
        directory.write_bytes(name, text.encode(errors="replace"))  # JSON may hold half a character
    return evidence


def write_cover(study_root: Folder | str | Path, built: Iterable[Evidence] = ()) -> str:
    """Write `<study_root>/report.md`, its figure and the claims across cases; returns the page's path (or URI).

    It is over all studies that lie in the folder, but for those that `--fresh` has set aside. One that cannot be read
    is named on the page. What is in `built` is not computed again.
    """
    root = study_root if isinstance(study_root, Folder) else Folder(study_root)
    cases, problems = _cases(root, built)
    title = cases[0].request.title or cases[0].study.study if cases else root.name
    result = across(cases)
    page = cover(title, cases, result, problems)
    for name, figure in page.figures.items():
        _write_figure(root, name, figure)
    root.write_json(CLAIMS, [claim.as_json() for claim in result.claims])
    root.write_bytes(REPORT, page.text.encode(errors="replace"))
    return f"{root.uri}/{REPORT}"


def _cases(root: Folder, built: Iterable[Evidence]) -> tuple[list[Case], list[str]]:
    """Return what a cover shows, and why folders are not on it."""
    by_uri = {evidence.loaded.folder.uri: evidence for evidence in built}
    cases: list[Case] = []
    problems = []
    for directory in map(root.child, root.names()):
        try:
            if ASIDE.search(directory.name) or not directory.exists(STUDY):
                continue
            evidence = by_uri.get(directory.uri) or Evidence(load(directory))
            kind = evidence.loaded.study.study
            if cases and kind != cases[0].study.study:
                raise BadInput(f"{directory.name} is a study of another kind, {kind}")
            cases.append(Case(directory.name, evidence))
        except (BadInput, PermissionError) as error:
            problems.append(str(error).splitlines()[0])
    return cases, problems


def write_claims(directory: Folder, evidence: Evidence) -> None:
    """Write claims.json, planned comparisons and then factors as wholes, and contrasts.json."""
    directory.write_json(CLAIMS, [claim.as_json() for claim in (*evidence.claims, *evidence.omnibus)])
    directory.write_json(CONTRASTS, [claim.as_json() for claim in evidence.contrasts])


def _write_figure(directory: Folder, name: str, figure: Figure) -> None:
    for ending, image in images(figure).items():
        directory.write_bytes(f"{FIGURES}/{name}.{ending}", image)


def images(figure: Figure) -> dict[str, bytes]:
    """Return a figure as PNG and as SVG, the same bytes each time."""
    with style.own_style():
        canvas = FigureCanvasAgg(figure)
        # Laid out once, not once per file and again before each: half of the time of a report.
        if layout := figure.get_layout_engine():
            layout.execute(figure)
        figure.set_layout_engine(None)
        drawing = io.BytesIO()
        figure.savefig(drawing, format="svg", dpi=DPI, metadata={"Date": None})
        figure.set_dpi(DPI)
        canvas.draw()
        picture = Image.fromarray(np.asarray(canvas.buffer_rgba()))
    return {"png": _png(picture), "svg": DECIMALS.sub(rb"\1", drawing.getvalue())}


def _png(picture: Image.Image) -> bytes:
    """Return a picture in 256 colours, which charts do with: a third of the size."""
    buffer = io.BytesIO()
    picture.convert("RGB").quantize(256, dither=Image.Dither.NONE).save(buffer, format="png", optimize=True)
    return buffer.getvalue()
