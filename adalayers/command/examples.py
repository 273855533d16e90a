"""Misclassified texts next to a report (thesis 6.5): only where the user asks, never tracked or logged."""

from __future__ import annotations

from adalayers.escaping import code, escape
from adalayers.results.files import EXAMPLES, PREDICTIONS, PREFIXES, read_rows
from adalayers.results.record import StudyRecord
from adalayers.storage.folder import Folder
from adalayers.tasks.task import Task

SHOWN_MISTAKES = 50
MAX_CHARACTERS = 10_000
"""Of a text; beyond that, it is cut."""


def write_examples(folder: Folder, task: Task) -> str:
    """Write the texts that the best confirmed trial misclassified to `examples.md`; return the file's place.

    The surest mistakes come first. Nothing is chosen on test: the trial is the best on validation.
    """
    best = StudyRecord(folder, task.metric).best(stage="confirm")
    lines = ["# Misclassified examples", ""]
    if best is None or not folder.exists(PREDICTIONS):
        lines.append("No confirmed trial has left predictions.")
    else:
        rows = task.kind.mistakes(read_rows(folder, PREDICTIONS).query("trial_id == @best"))
        lines += [
            f"Trial {code(best)}, the best confirmed one on validation: {len(rows)} mistakes, "
            f"the {task.kind.first_mistakes} {SHOWN_MISTAKES} below.",
            "",
        ]
        for split, prefix in PREFIXES.items():
            if split not in task.splits:
                continue
            inputs = dict(zip(task.splits[split].index.tolist(), task.splits[split].inputs, strict=True))
            lines += [
                f"## {split}",
                "",
                "| index | label | prediction | score | text |",
                "|---|---|---|---|---|",
            ]
            for row in rows[rows["split"] == prefix].head(SHOWN_MISTAKES).to_dict("records"):
                answer = [escape(row["index"]), _answer(row["label"]), _answer(row["prediction"])]
                answer += [f"{row['score']:.3f}", _cell(inputs[row["index"]])]
                lines.append(f"| {' | '.join(answer)} |")
            lines.append("")
    folder.write_bytes(EXAMPLES, ("\n".join(lines) + "\n").encode())
    return f"{folder.uri}/{EXAMPLES}"


def _answer(answer: str | tuple[str, ...]) -> str:
    return escape(answer if isinstance(answer, str) else " ".join(answer))


def _cell(text: str | tuple[str, str] | list[str]) -> str:
    joined = text if isinstance(text, str) else (" / " if isinstance(text, tuple) else " ").join(text)
    return escape(joined, MAX_CHARACTERS)
