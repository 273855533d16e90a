"""What a report makes of a made-up study, without drawing its figures."""

from pathlib import Path

from adalayers.storage.folder import Folder
from reports.evidence.evidence import Evidence
from reports.page import details as of_details
from reports.page.study_page import study_page
from reports.reading.load import load
from reports.write import write_claims
from tests.helpers.made_up import MadeUp


def evidence_of(made: MadeUp, folder: Path) -> Evidence:
    """Write a made-up study to a folder and return what is known of it."""
    return Evidence(load(made.write(folder)))


def rebuild_claims(folder: Folder | Path | str) -> None:
    """Write the claims of a study's folder, no page and no figures."""
    directory = folder if isinstance(folder, Folder) else Folder(folder)
    write_claims(directory, Evidence(load(directory)))


def page(evidence: Evidence) -> str:
    """Return report.md."""
    return study_page(evidence).text


def details(evidence: Evidence) -> str:
    """Return details.md."""
    return of_details.details(evidence).text


def both_pages(evidence: Evidence) -> str:
    """Return report.md and details.md, one after the other."""
    return "\n".join([page(evidence), details(evidence)])
