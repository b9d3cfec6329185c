"""The queueing model: a fleet in virtual time in which publications are events and deliveries are counts.

It is much faster than a run with the machines of brokers, and so long experiments and searches through many small
worlds are possible. Below the control records everything is a model: links have a delay, brokers are servers with a
queue, a hand-over takes the time of its messages. All that decides is the product's own: load reports, detection,
profiles and estimators, the head's coordinator, placement, the session engine, policies and the plan checker.

docs/queueing-model.md says what is modelled and how far it agrees with the machines and with processes.
"""
