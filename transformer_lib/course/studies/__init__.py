"""Measurements that the notebooks show: too long to run in one, or used by several."""
