"""Kubernetes objects as pure functions of resources: pods, services, collectors and Spark applications.

The same input gives the same manifest, so that a difference from what is observed means a change.
"""
