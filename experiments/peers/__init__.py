"""Other engines on the same workloads, on one core, in the same run as acep."""
