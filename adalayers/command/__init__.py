"""The command line of the study scripts."""

from adalayers.installed import settle_imports

settle_imports()  # before anything is imported that could be taken from a wrong place
