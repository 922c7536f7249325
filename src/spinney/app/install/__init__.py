"""The installation on a cluster: one description of its objects, printed as manifests and as a Helm chart."""
