"""Figures of consumer groups as `external.metrics.k8s.io`, which HorizontalPodAutoscalers read (docs/groups.md).

`group_figures` takes them from what heads report, `label_selector` reads what is asked for, `routes` answers.
"""
