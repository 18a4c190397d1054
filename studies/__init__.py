"""Measurements that take too long for a notebook: `python -m studies.NAME` writes data/NAME.json after each step.

A step whose result is in the file is not run again.
"""
