"""All kinds of task, by name. Where a dataset's columns fit several, the first is meant."""

import logging
from typing import Any

from adalayers.errors import BadInput
from adalayers.installed import added, load_added
from adalayers.tasks.kind import TaskKind
from adalayers.tasks.kinds.classification import (
    SequenceClassification,
    TokenClassification,
    WordClassification,
)
from adalayers.tasks.kinds.regression import Regression

logger = logging.getLogger(__name__)

KINDS: dict[str, TaskKind] = {
    kind.name: kind
    for kind in (SequenceClassification(), TokenClassification(), WordClassification(), Regression())
}


def _kind(loaded: Any) -> TaskKind:
    """Return the kind of task that a class is. Raises `TypeError` for what is none."""
    kind = loaded()
    if not isinstance(kind, TaskKind) or not isinstance(getattr(kind, "name", None), str):
        raise TypeError(f"{loaded!r} is no TaskKind with a name")
    return kind


for _entry in added("tasks").values():
    try:
        _added = load_added(_entry, _kind)
    except BadInput as error:  # nobody has asked for it: a study of another kind goes on
        logger.warning(f"a kind of task is passed over: {error}")
    else:
        KINDS.setdefault(_added.name, _added)
