"""Assignments for nbgrader, made of the exercises: `python -m transformer_lib.course.teaching.assignments`."""
