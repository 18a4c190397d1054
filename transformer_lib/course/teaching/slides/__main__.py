"""`python -m transformer_lib.course.teaching.slides`."""

from .build import main

raise SystemExit(main())
