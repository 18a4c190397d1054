"""Tools for those who teach with the notebooks."""
