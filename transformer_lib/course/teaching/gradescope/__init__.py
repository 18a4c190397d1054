"""Autograders for Gradescope, made of the exercises: `python -m transformer_lib.course.teaching.gradescope`."""
