"""Pictures: `plotting` draws static ones with matplotlib, `svg` by pure functions, `widgets` adds the controls."""

from ..matplotlib_folder import ensure

ensure()  # before `plotting` imports matplotlib
