"""vLLM as a system under test, offline, in its own environment and its own processes."""
