"""Tests of properties that hold for one configuration: same plan, same bits; batch invariance."""
