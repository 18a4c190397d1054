"""Measurements that take too long for a notebook: `python -m studies.NAME` writes data/NAME.json."""
