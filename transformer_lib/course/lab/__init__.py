"""What notebooks call beside the library: experiments to run again, and what the studies have measured."""
