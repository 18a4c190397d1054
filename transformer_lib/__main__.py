"""`python -m transformer_lib`, the same as the command `transformer-lib`."""

from transformer_lib.command import main

raise SystemExit(main())
