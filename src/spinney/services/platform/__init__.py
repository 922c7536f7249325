"""The platform operator: runs the services that Config and SchedulingShards describe."""
