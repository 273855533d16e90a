"""What is left out of what libraries say."""

import pytest

from adalayers.storage.redaction import foreign, reason


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("Max retries exceeded with url: /?token=swordfish/api/2.0", "Max retries exceeded with url: /?…"),
        ("GET /api/2.0/runs?key=swordfish HTTP/1.1 failed", "GET /api/2.0/runs?… HTTP/1.1 failed"),
        ("at https://me:swordfish@host/x?a=swordfish&b (again)", "at https://***@host/x?… (again)"),
        ("host:5000?swordfish", "host:5000?…"),
        ("is it a file? perhaps", "is it a file? perhaps"),
    ],
)
def test_addresses_are_cut_where_their_query_begins(said, shown):
    assert foreign(said) == shown
    assert reason(ValueError(said), "http://elsewhere") == f"ValueError: {shown}"
