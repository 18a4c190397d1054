"""`python -m transformer_lib.course.teaching.assignments`."""

from .build import main

raise SystemExit(main())
