"""A page as one HTML file: figures within, HTML of others as text, links between the pages kept."""

import re

from reports.page.html import as_html

REPORT = """# A study: *minilm* on cola

> **A smoke run.**

| arm | score |
| --- | --- |
| `mix` | 0.5 |

![scores](figures/arms.png) ![gone](figures/gone.png) ![remote](https://example.org/x.png) ![up](../other.png)

<script>alert(1)</script> See [the tables](details.md#tables) and [the data](trials.csv).
"""
FIGURES = {"figures/arms.png": b"\x89PNG", "../other.png": b"\x89PNG"}


def test_a_page_needs_nothing_else():
    page = as_html({"report.md": REPORT, "details.md": "# Tables\n"}, FIGURES.get)
    assert "<title>A study: minilm on cola</title>" in page
    assert re.findall(r'<img src="([^"]*)"', page) == ["data:image/png;base64,iVBORw==", "", "", ""]
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert "default-src 'none'" in page
    assert re.findall(r'<a href="([^"]*)"', page) == ["#details.md", "trials.csv"]
    alone = as_html({"report.md": REPORT}, FIGURES.get)  # a page that is not there keeps its link
    assert '<a href="details.md#tables">' in alone
