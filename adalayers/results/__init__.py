"""What a results folder holds; `adalayers.results(folder)` reads one."""
