"""Records: written, read back, refused."""
