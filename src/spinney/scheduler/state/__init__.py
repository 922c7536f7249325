"""The cluster in arrays: nodes, GPUs, queues, gangs and tasks, and the log that undoes moves."""
