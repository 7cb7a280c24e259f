"""The engine on a CUDA device; left out, aloud, where there is none. Run by `make test-gpu`."""
