"""Admission of pods for our scheduler: GPU sharing, queues and device isolation."""
