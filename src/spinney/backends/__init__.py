"""PodGang → the resources of one scheduler; one module per scheduler."""
