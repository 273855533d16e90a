"""What data and files hold is shown as it is: no markup, no control codes."""

import logging
from types import SimpleNamespace

import numpy as np
import pytest

from adalayers.command.examples import write_examples
from adalayers.console.progress import log_to_stderr, show
from adalayers.escaping import code, escape, fenced, link, plain, prose
from adalayers.tasks.kinds import KINDS
from tests.helpers.made_up import MadeUp

HOSTILE = "\x1b[31m<img src=x>`|\n# H\u202e\ud800"


@pytest.mark.parametrize(
    ("function", "wanted"),
    [
        (plain, "?[31m<img src=x>`|\n# H??"),
        (escape, r"?\[31m&lt;img src=x&gt;\`\| \# H??"),
        (prose, r"?\[31m&lt;img src=x&gt;\`\| \# H??"),
        (code, r"`?[31m<img src=x>'\| # H??`"),
        (fenced, "```\n?[31m<img src=x>`|\n# H??\n```"),
    ],
)
def test_markup_and_control_codes_are_text(function, wanted):
    assert function(HOSTILE) == wanted


def test_struck_out_text_and_mathematics_are_text_long_ones_are_cut_and_links_lead_to_odd_names():
    assert escape("~~no~~ $5 or $6") == r"\~\~no\~\~ \$5 or \$6"
    assert len(code("x" * 5000)) == 302
    assert escape("x" * 5000).endswith("x…")
    assert link("a]b", "a (b)/<c>\n.md") == r"[a\]b](<a%20%28b%29/%3Cc%3E%0A.md>)"
    assert fenced("```\n<b>") == "```\n~~~\n<b>\n```"


def test_the_terminal_gets_text_alone(capsys, monkeypatch):
    package = logging.getLogger("adalayers")
    for name in ("handlers", "propagate", "level"):
        monkeypatch.setattr(package, name, getattr(package, name))
    log_to_stderr()
    logging.getLogger("adalayers.x").info(f"a label {HOSTILE}")
    show(HOSTILE)
    printed = capsys.readouterr()
    assert printed.err == f"a label {plain(HOSTILE)}\n"
    assert printed.out == f"{plain(HOSTILE)}\n"


def test_misclassified_texts_are_no_markup(tmp_path):
    hostile = HOSTILE[:-1]
    made = MadeUp(seeds=1, search=0, evaluations=2, examples=9)
    for row in [*made.trials, *made.history, *made.predictions]:
        row["trial_id"] = f"t{row['trial_id']:0>12}"
    for row in made.predictions:
        row |= {"label": f"yes{hostile}", "prediction": f"no{hostile}"}
    split = SimpleNamespace(index=np.arange(9), inputs=[f"a text {hostile}"] * 9)
    task = SimpleNamespace(metric=made.metric, kind=KINDS["sequence"], splits={"test": split})
    write_examples(made.write(tmp_path), task)
    rows = (tmp_path / "examples.md").read_text().split("|---|---|---|---|---|\n")[1]
    assert rows.count("\n") == rows.count(f"a text {escape(hostile)} |") + 1 > 1
    assert f"| yes{escape(hostile)} | no{escape(hostile)} |" in rows
