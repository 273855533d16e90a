"""Files and folders, local or remote: reading, writing, locks, redaction, the hub."""
