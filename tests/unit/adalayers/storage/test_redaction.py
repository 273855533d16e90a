"""What is left out of addresses, and of what libraries say."""

import pytest

from adalayers.storage.redaction import clean, foreign, reason, redacted


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


@pytest.mark.parametrize(
    ("uri", "shown"),
    [
        ("http://127.0.0.1:5000", "http://127.0.0.1:5000"),
        ("https://me:hunter2@host:5000/x", "https://***@host:5000/x"),
        ("https://token@host/x", "https://***@host/x"),
        ("postgresql://me:p@ss@host/db?password=hunter2", "postgresql://***@host/db?password=***"),
        ("postgresql://me:p/w@host/db", "postgresql://***@host/db"),
        ("http://host:5000/name@v1", "http://host:5000/name@v1"),
        ("s3://bucket/model@main", "s3://bucket/model@main"),
        ("sqlite:////out/mlflow.db", "sqlite:////out/mlflow.db"),
        ("none", "none"),
        ("s3://b/x?region=eu-west-1&token=hunter2", "s3://b/x?region=eu-west-1&token=***"),
    ],
)
def test_redaction(uri, shown):
    assert redacted(uri) == shown


@pytest.mark.parametrize("name", ["sig", "X-Amz-Signature", "X-Amz-Credential", "PWD", "api_key", "authuser"])
def test_a_text_shows_no_secret_of_an_address_in_it(name):
    assert clean(f"at https://host/x?{name}=swordfish, or ?a=1") == f"at https://host/x?{name}=*** or ?a=1"
