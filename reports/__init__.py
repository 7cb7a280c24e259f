"""Reports: readers and writers of recorded runs; knows `harness.record` and nothing else."""
