"""Best effort under a budget, measured: workloads on real streams, and what exact matching costs on them."""
