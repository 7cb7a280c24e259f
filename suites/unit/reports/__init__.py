"""Reports: loading, folding and drawing recorded runs."""
