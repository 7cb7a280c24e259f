"""What runs inside vLLM's own environment: imports vllm, nothing of ours."""
