"""All kinds of task, by name. Where a dataset's columns fit several, the first is meant."""

from adalayers.installed import added, load_added
from adalayers.tasks.kind import TaskKind
from adalayers.tasks.kinds.classification import (
    SequenceClassification,
    TokenClassification,
    WordClassification,
)
from adalayers.tasks.kinds.regression import Regression

KINDS: dict[str, TaskKind] = {
    kind.name: kind
    for kind in (SequenceClassification(), TokenClassification(), WordClassification(), Regression())
}
for _entry in added("tasks").values():
    _kind = load_added(_entry)()
    KINDS.setdefault(_kind.name, _kind)
