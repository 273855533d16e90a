"""What a study needs of the package `reports`, which the library does not import."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from adalayers.storage.folder import Folder


class Reports(Protocol):
    """The functions of `reports` that write pages and tell what is undecided."""

    def write_report(self, folder: Folder, /) -> str: ...
    def write_cover(self, study_root: Folder, folders: list[Folder], /) -> str: ...
    def undecided_arms(self, folder: Folder, /) -> Collection[str]: ...
    def undecided_across(self, folders: Sequence[Folder], /) -> Mapping[str, Collection[str]]: ...
