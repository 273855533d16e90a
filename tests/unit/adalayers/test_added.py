"""What other packages add, and how it fails: it is named, and ends nothing."""

import importlib
import sys
from importlib.metadata import EntryPoint

import pytest

from adalayers.__main__ import main
from adalayers.config import config_class, hyperparameters
from adalayers.installed import added, load_added
from adalayers.tasks import kinds
from tests.helpers.refusing import refused

FAULTS = {
    "raises": ("raise OSError('a disk')", "OSError: a disk"),
    "leaves": ("import sys; sys.exit(0)", "SystemExit: 0"),
    "lacks": ("", "AttributeError"),
    "nothing": ("X = None", "is not callable|no TaskKind"),
    "number": ("X = int", "no TaskKind"),
}


@pytest.fixture
def entries(tmp_path, monkeypatch):
    """Let another package add entry points, by (name, code); its modules are gone afterwards."""
    monkeypatch.syspath_prepend(tmp_path)

    def add(kind, **values):
        named = []
        for name, code in values.items():
            module = f"of_another_{name.replace(' ', '_')}"
            (tmp_path / f"{module}.py").write_text(code)
            named.append(EntryPoint(name, f"{module}:X", f"adalayers.{kind}"))
        found = lambda group: named if group.endswith(kind) else []  # noqa: E731
        monkeypatch.setattr("importlib.metadata.entry_points", found)
        return named

    yield add
    for name in [name for name in sys.modules if name.startswith("of_another_")]:
        del sys.modules[name]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_kind_of_task_that_cannot_be_had_is_named_and_passed_over(fault, entries, monkeypatch, capsys):
    code, said = FAULTS[fault]
    entries("tasks", **{fault: code})
    warned = []
    monkeypatch.setattr(kinds.logger, "warning", warned.append)
    before = dict(kinds.KINDS)
    try:
        importlib.reload(kinds)
        assert sorted(kinds.KINDS) == sorted(before)
    finally:
        kinds.KINDS.update(before)
    (line,) = warned
    assert f"a kind of task is passed over: wanted of_another_{fault}:X" in line
    assert any(part in line for part in said.split("|")), line


@pytest.mark.parametrize("fault", ["raises", "leaves", "lacks", "registers nothing"])
def test_a_fusion_that_is_asked_for_and_cannot_be_had_is_bad_input(fault, entries):
    code, said = FAULTS.get(fault, ("X = 1", "was imported and has no configuration of that name"))
    entries("fusions", **{fault: code})
    refused(said, config_class, fault)
    assert "alpha" in hyperparameters(), "those of other methods are had"


def test_studies_are_listed_beside_one_that_cannot_be_had(entries, capsys):
    entries("studies", leaves=FAULTS["leaves"][0], nothing="X = None")
    assert main(["study"]) == 0
    out = capsys.readouterr().out
    assert "alpha_lambda" in out
    assert "leaves" in out
    assert "cannot be run: wanted of_another_leaves:X" in out
    assert "wanted a Study by the name nothing, got NoneType" in out
    assert main(["study", "leaves"]) == 2


def test_what_is_whole_is_loaded_and_an_entry_point_that_names_nothing_is_left_out(entries, monkeypatch):
    (entry,) = entries("fusions", whole="X = 7")
    assert load_added(entry, lambda loaded: loaded + 1) == 8
    broken = EntryPoint("x", "no name: at all!", "adalayers.fusions")
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [broken])
    assert added("fusions") == {}
