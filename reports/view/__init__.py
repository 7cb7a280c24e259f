"""Pure folds from a loaded run to what a reader is shown; every writer draws from these."""
