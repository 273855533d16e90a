"""All kinds of task, by name. Where a dataset's columns fit several, the first is meant."""

from adalayers.tasks.kind import TaskKind
from adalayers.tasks.kinds.regression import Regression
from adalayers.tasks.kinds.sequence import SequenceClassification
from adalayers.tasks.kinds.token import TokenClassification
from adalayers.tasks.kinds.word import WordClassification

KINDS: dict[str, TaskKind] = {
    "sequence": SequenceClassification(),
    "token": TokenClassification(),
    "word": WordClassification(),
    "regression": Regression(),
}
