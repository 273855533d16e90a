"""Constraints that install the lowest release of every dependency: `make test-oldest`. Python alone, no package."""

import re
import tomllib
from pathlib import Path

PROJECT = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())["project"]

for requirement in (*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["tokenizers"]):
    name, lowest = re.fullmatch(r"([\w-]+)(?:\[\w+\])?>=([\d.]+).*", requirement).groups()
    print(f"{name}=={lowest}")
