"""What the course's JupyterLab adds to the user's own settings; `transformer_lib.course.copies.lab` points to it."""

# mypy: ignore-errors

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))  # of `transformer_course_saving`, which jupyter_server_config.d names
