"""One test per defect that was found once and must stay found."""
