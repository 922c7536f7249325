"""Stand-ins for the operators of other projects' workloads: they create the pods that the real ones would."""
