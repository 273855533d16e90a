"""The results folder of a study: its files, read and written."""
