"""What every shell around the mediator needs, whether it runs on one machine or on Kubernetes.

Pure functions take objects to the core's values and back: what should run, what sessions ask for and say, how the fleet
looks, what status tells. `control` speaks to brokers. Nothing here decides, stores, or knows where objects are kept.
"""
