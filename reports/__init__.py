"""Reports: from the files of a results folder to tables, claims, figures and a page of Markdown.

One way, each step pure but the last:

    load.py -> tables.py, history_tables.py -> claims.py -> figures.py -> markdown.py -> write.py
               (with statistics.py)            (with style.py)            (the only one to touch disk)

Nothing here imports torch, ray, transformers, mlflow, datasets or optuna, and nothing needs the network.
"""

from reports.write import write_cover, write_report

__all__ = ["write_cover", "write_report"]
