"""What may be shown: URIs without their credentials, errors and texts without such URIs."""

from __future__ import annotations

import re

HIDDEN = "***"

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s'\"<>]+")
# The last "@" ends the user's part; a password may hold "@", and "/" after a colon that starts no port.
_CREDENTIALS = re.compile(r"://(?:[^/?#]*|[^/@]*:(?!\d+(?:/|$)).*)@")
_FOREIGN_QUERY = re.compile(r"(?<=[\w/.:\]-])\?[^\s'\"<>()]+")
_QUERY_VALUE = re.compile(
    r"([?&;](?!(?:region|scheme|endpoint_override|retry_limit_seconds)=)[^=&;#]*)=[^&;#]*"
)
_SECRET_QUERY = re.compile(
    r"[?&;][^=&;#]*(?:pass|pwd|secret|token|key|sig|cred|auth)[^=&;#]*=", re.IGNORECASE
)
SECRET_NAME = re.compile(
    r"(^|[_\-/.])(password|passwd|secret|token|api_?key|access_?key|credentials?)$", re.IGNORECASE
)


def redacted(uri: str) -> str:
    """Return `uri` fit to be shown: without user and password, and without what its query may keep secret."""
    return _QUERY_VALUE.sub(rf"\1={HIDDEN}", _CREDENTIALS.sub(f"://{HIDDEN}@", uri))


def clean(text: str) -> str:
    """Return `text` with every URI in it redacted that carries credentials."""

    def cleaned(uri: re.Match[str]) -> str:
        return redacted(uri[0]) if _CREDENTIALS.search(uri[0]) or _SECRET_QUERY.search(uri[0]) else uri[0]

    return _URI.sub(cleaned, text)


def foreign(text: str) -> str:
    """Return what a library says, without credentials, and without what stands behind "?" in an address or its end.

    Libraries take addresses apart: `?token=...` then stands behind a path, where nothing else tells that it is secret.
    """
    return _FOREIGN_QUERY.sub("?…", clean(text))


def reason(error: BaseException, uri: str) -> str:
    """Return one line that says what went wrong, without the credentials of `uri`."""
    root = error
    while (deeper := root.__cause__ or root.__context__) is not None:
        root = deeper
    # "Connection refused" is the news, not the layers of libraries that pass it on.
    error = root if isinstance(root, OSError) else error
    text = str(error).replace(uri, redacted(uri))
    for secret in re.findall(r"://[^/]*?:([^@]+)@", uri):
        text = text.replace(secret, HIDDEN)
    line = foreign(_URI.sub(lambda match: redacted(match[0]), text)).strip().partition("\n")[0].strip()
    return f"{type(error).__name__}: {line[:200]}{'…' if len(line) > 200 else ''}"
