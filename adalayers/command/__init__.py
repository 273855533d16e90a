"""The command line of the study scripts."""
