"""The kill matrix of heads whose logs outlast them: a head killed before and behind each message of a hand-over.

Its cells are runs of the simulator, which is started as a program: there a kill is exact to the message.
"""
