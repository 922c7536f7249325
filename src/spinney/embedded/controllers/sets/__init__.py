"""ReplicaSets, Deployments, StatefulSets and DaemonSets."""
