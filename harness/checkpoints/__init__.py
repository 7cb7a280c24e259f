"""Where the models come from: generated, fetched or converted, and kept outside the repository."""
