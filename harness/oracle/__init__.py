"""The reference answer: the Hugging Face model in float64, sharing no code with the engine."""
