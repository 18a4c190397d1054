"""What notebooks call beside the library: experiments to run again, and what the studies have measured.

`load_results()` of a module returns what the study of the same name has stored: `python -m studies.NAME` measures it.
"""
