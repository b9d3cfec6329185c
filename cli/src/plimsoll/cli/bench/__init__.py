"""What `plimsoll bench` measures, and how it says it.

Publishers and subscribers share one process and its clock. Delays are those of an application: from the moment at which
a publication is due, to the moment at which its subscriber has it.
"""
