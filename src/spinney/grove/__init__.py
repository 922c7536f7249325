"""The operator: PodCliqueSets in, gangs of gated pods out."""
