"""How fast the library is beside others: `make bench`, or `python -m benchmarks` in the folder tests.

All candidates do the same work, in one process, in interleaved rounds; nothing here decides a test.
"""
