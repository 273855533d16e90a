"""What is imported is this library's own, wherever Python is started."""

import os
import subprocess
import sys

from adalayers import installed
from tests.conftest import ROOT


def program(folder, *argv):
    """Run Python in a folder, as a user would; return the process as it ended."""
    how = {"cwd": folder, "capture_output": True, "text": True, "timeout": 120}
    return subprocess.run([sys.executable, *map(str, argv)], **how)


def package(folder, name, text="raise RuntimeError('another one')"):
    (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / name / "__init__.py").write_text(text)


STUDY = """
import sys
from adalayers.command.main import main
from adalayers.study import Design, Study

sys.exit(main(Study(name="mine", question="?", design=Design(arms=lambda setting: ([], [])))))
"""


def test_the_command_line_takes_nothing_from_the_current_folder(tmp_path):
    for name in ("reports", "studies", "search_spaces", "torch", "ray", "pandas", "yaml", "random"):
        package(tmp_path, name)
    done = program(tmp_path, "-m", "adalayers", "report", tmp_path / "nothing")
    assert done.returncode == 2, done.stderr
    assert "wanted" in done.stderr
    assert "Traceback" not in done.stderr


OWN = "from adalayers.installed import own_module; print(own_module('reports.words').__file__)"


def test_own_modules_are_found_where_the_library_is(tmp_path):
    package(tmp_path, "reports", "")
    found = program(tmp_path, "-c", OWN)
    assert found.stdout == f"{ROOT / 'reports/words.py'}\n", found.stderr
    before = program(tmp_path, "-c", f"import reports; {OWN}")
    assert "another module of that name was imported before" in before.stderr


def test_a_clones_study_with_another_clones_library_is_bad_input(tmp_path):
    """As PYTHONPATH, or an environment in which another clone is installed, has it."""
    (tmp_path / "adalayers" / "command").mkdir(parents=True)
    (tmp_path / "adalayers" / "command" / "main.py").touch()
    (tmp_path / "studies").mkdir()
    (tmp_path / "studies" / "mine.py").write_text(STUDY)
    done = program(tmp_path, "studies/mine.py", "--dry-run")
    assert done.returncode == 2
    assert f"with the library next to it, Python imports the one in {ROOT}" in done.stderr.splitlines()[0]


def test_workers_look_where_the_driver_does(tmp_path, monkeypatch):
    other, library = tmp_path / "a", os.path.dirname(os.__file__)
    packages = f"{library}/site-packages"
    monkeypatch.setattr(sys, "path", [str(other), "", library, packages, str(tmp_path / "late"), str(ROOT)])
    monkeypatch.chdir(tmp_path)
    assert installed.worker_path() == [str(ROOT), str(other), str(tmp_path)]
    monkeypatch.setattr(installed, "PACKAGE", tmp_path / "site-packages" / "adalayers")
    monkeypatch.setattr(sys, "path", ["/opt/bin", library, packages])
    assert installed.worker_path() == ["/opt/bin"], "Python's own library goes before site-packages"


def test_the_hash_of_the_code_is_of_what_trials_run(tmp_path, monkeypatch):
    def hashed(folder):
        monkeypatch.setattr(installed, "PACKAGE", tmp_path / folder / "adalayers")
        return installed.code_hash.__wrapped__()

    one, two = (tmp_path / name / "adalayers" for name in ("one", "two"))
    for folder in (one, two):
        package(folder.parent, "adalayers", "")
        (folder / "mix.py").write_text("alpha = 1")
    same = hashed("one")
    package(two, "reports", "# as in a wheel")
    (two / "notes.txt").touch()
    assert hashed("two") == same, "neither the place nor what trials do not run counts"
    (two / "mix.py").write_text("alpha = 2")
    assert hashed("two") != same
    (one / "mix.py").rename(one / "mixed.py")
    assert hashed("one") != same
