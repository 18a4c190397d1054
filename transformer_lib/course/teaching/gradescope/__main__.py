"""`python -m transformer_lib.course.teaching.gradescope`."""

from ...._streams import run_command
from .build import main

run_command(main)
