"""Rows for scale on a page. It imports nothing: `--help` names them."""

REFERENCES = {
    "majority": "one answer to all",
    "tf-idf": "linear, TF-IDF",
    "frequent-tag": "most frequent tag",
    "linear-probe": "linear, last layer",
}
"""Rows for scale by name, and what pages call them."""
