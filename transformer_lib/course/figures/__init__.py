"""Pictures: `plotting` draws static ones with matplotlib, `svg` by pure functions, `widgets` adds the controls."""
