"""Experiments: workloads, benchmarks, peers. For developing acep; not part of what is installed."""
