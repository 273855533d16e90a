"""Reports: from the files of a results folder to tables, claims, figures and a page of Markdown.

One way, each step pure but the last:

    load        results folder -> frames and the plan of the study, with all that is missing named
    tables, history_tables, claims (on statistics)   frames -> small frames, and verdicts
    evidence    all of these, worked out once per report
    figures (on style)                               small frames -> matplotlib figures
    markdown, answer, sections, colophon, cover      small frames -> text
    write       the only one to touch disk: report.md, claims.json, contrasts.json, figures/

Nothing here imports torch, ray, transformers, mlflow, datasets or optuna, and nothing needs the network.
"""

from reports.write import write_cover, write_report

__all__ = ["write_cover", "write_report"]
