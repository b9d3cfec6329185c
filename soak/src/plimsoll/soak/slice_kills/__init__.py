"""The kill matrix of slices: a process killed before and behind each message of a move between two consumers.

Its cells are runs of the simulator, which is started as a program: there a kill is exact to the message.
"""
