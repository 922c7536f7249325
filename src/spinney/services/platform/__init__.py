"""The platform operator: Config and SchedulingShards in, running services out."""
