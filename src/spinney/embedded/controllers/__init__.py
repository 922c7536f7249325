"""The controllers that users expect of a cluster, as API clients: kube-controller-manager's work, one module each."""
