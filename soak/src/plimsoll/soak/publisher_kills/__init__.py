"""The kill matrix of publishers: a process hit before and behind each step of a move of publishers between heads.

The fleet has its supervisor and its mediator, which bring back what is killed. Every delivery in three clusters is
audited, and every publisher has to be at one head in the end.
"""
