"""Play a copy of the cluster forward: what-ifs, trials of what would help, and when waiting gangs start."""
