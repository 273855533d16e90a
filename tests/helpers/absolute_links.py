"""A page whose links to files of this repository lead there from anywhere, pictures included.

python -m tests.helpers.absolute_links README.md https://host/owner/name v0.1.0
"""

import re
import sys
from pathlib import Path

LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!\w+:|#)([^)]+)\)")


def absolute(text: str, repository: str, tag: str) -> str:
    """Return Markdown with each relative link below `repository` at `tag`."""

    def link(match: re.Match[str]) -> str:
        picture, words, target = match.groups()
        return f"{picture}[{words}]({repository}/{'raw' if picture else 'blob'}/{tag}/{target})"

    return LINK.sub(link, text)


if __name__ == "__main__":
    page, repository, tag = sys.argv[1:]
    Path(page).write_text(absolute(Path(page).read_text(), repository, tag))
