"""DPSLB 2014: slices of a stream that move between consumers, in virtual time."""
