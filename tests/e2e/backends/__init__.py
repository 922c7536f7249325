"""Every backend on an API server, from PodGangs and PodCliqueSets to what a scheduler reads."""
