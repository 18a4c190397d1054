"""Decks for lectures, made of tagged cells: `python -m transformer_lib.course.teaching.slides`."""
