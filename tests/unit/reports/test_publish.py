"""A published folder holds the page with its figures, the claims, and what both are rebuilt from."""

from reports.publish import publish

PAGE = """# A study

[![Scores](figures/scores.png)](figures/scores.svg)

Bars are intervals. All numbers: [details](details.md#comparisons). Lists: [details](details.md).
"""


def test_what_the_page_does_not_show_goes_with_the_links_to_it(tmp_path):
    (tmp_path / "figures").mkdir()
    (tmp_path / "best").mkdir()
    stays = ("claims.json", "study.json", "trials.csv", "history.parquet", "figures/scores.png")
    for name in (*stays, "details.md", "contrasts.json", "figures/scores.svg", "figures/other.png"):
        (tmp_path / name).touch()
    (tmp_path / "report.md").write_text(PAGE)
    publish(tmp_path)
    once = (tmp_path / "report.md").read_text()
    assert "![Scores](figures/scores.png)\n" in once
    assert "Bars are intervals. Lists: `details.md`." in once
    assert not any(ending in once for ending in (".svg", "](details"))
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert left == {*stays, "report.md"}
    publish(tmp_path)
    assert (tmp_path / "report.md").read_text() == once
