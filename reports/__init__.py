"""Reports: from the files of a results folder to tables, claims, figures and a page of Markdown.

One way, each step pure but the last:

    load        results folder -> frames and the plan of the study, with all that is missing named
    tables, history_tables, claims, looks, rungs, resampling (on statistics)     frames -> small frames, verdicts
    space, importances, interaction, ranges, surfaces, curves, layers, data_size, predicted (together: findings)
                frames -> small frames that no claim rests on
    evidence    all of these, worked out once per report
    figures, *_figures (on drawing, style)                  small frames -> matplotlib figures
    markdown, answer, *sections, discipline, checks, colophon, cover, index      small frames -> text
    kept        importances that take long, in the results folder
    write       puts it on disk: report.md, claims.json, contrasts.json, figures/, index.md

Nothing here imports torch, ray, transformers, mlflow or datasets, and nothing needs the network. Optuna is
imported where importances are worked out.
"""

from reports.write import write_cover, write_report

__all__ = ["write_cover", "write_report"]
