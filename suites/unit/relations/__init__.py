"""Unit tests of the metamorphic relations."""
