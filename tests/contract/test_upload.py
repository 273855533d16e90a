"""What `ray job submit --working-dir .` sends: the code that a study needs, and little else."""

import zipfile

import pytest
from ray._private.runtime_env.packaging import create_package

from tests.helpers.studying import RAYS_OWN, ROOT

pytestmark = RAYS_OWN
MOST_BYTES = 5_000_000


@pytest.fixture(scope="module")
def sent(tmp_path_factory):
    path = tmp_path_factory.mktemp("upload") / "package.zip"
    create_package(str(ROOT), path, include_gitignore=True)
    return path


def test_an_upload_is_small(sent):
    assert sent.stat().st_size < MOST_BYTES


def test_an_upload_holds_what_a_study_needs_and_no_more(sent):
    with zipfile.ZipFile(sent) as package:
        names = set(package.namelist())
    for room in ("adalayers", "reports", "search_spaces", "studies"):
        files = (path for path in (ROOT / room).rglob("*") if path.suffix in (".py", ".parquet"))
        wanted = {path.relative_to(ROOT).as_posix() for path in files}
        assert wanted <= names, f"{room} is not sent whole"
    tops = {name.split("/")[0] for name in names}
    assert not tops & {"docs", "tests", "results", ".git", ".venv"}
