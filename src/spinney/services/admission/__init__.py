"""Admission of pods for our scheduler: shared GPUs are checked and wired, queues looked up, devices kept apart."""
