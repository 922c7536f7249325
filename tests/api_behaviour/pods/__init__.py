"""Parts of pods that have rules of their own: gates, ephemeral containers, resizes, logs."""
