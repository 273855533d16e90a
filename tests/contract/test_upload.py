"""What `ray job submit --working-dir .` sends: the code that a study needs, and little else."""

import zipfile

from ray._private.runtime_env.packaging import create_package

from tests.helpers.studying import RAYS_OWN, ROOT

pytestmark = RAYS_OWN
MOST_BYTES = 5_000_000


def test_an_upload_is_small_and_holds_what_a_study_needs_and_no_more(tmp_path):
    create_package(str(ROOT), tmp_path / "package.zip", include_gitignore=True)
    assert (tmp_path / "package.zip").stat().st_size < MOST_BYTES
    with zipfile.ZipFile(tmp_path / "package.zip") as package:
        names = set(package.namelist())
    for room in ("adalayers", "reports", "search_spaces", "studies"):
        files = (path for path in (ROOT / room).rglob("*") if path.suffix in (".py", ".parquet"))
        assert {path.relative_to(ROOT).as_posix() for path in files} <= names, f"{room} is not sent whole"
    assert not {name.split("/")[0] for name in names} & {"docs", "tests", "results", ".git", ".venv"}
