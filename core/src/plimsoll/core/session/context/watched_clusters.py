"""The detector state of a cluster, kept for one life of a mediator."""

from __future__ import annotations

from dataclasses import dataclass, field

from plimsoll.core.policies.detection import DetectionResult, DetectorState


@dataclass(slots=True)
class WatchedCluster:
    """One cluster. `session`: the uid of the session between clusters that it took part in, as last seen.

    `looks`: consecutive detections at which it wanted balance.
    """

    memory: DetectorState = field(default_factory=DetectorState)
    finding: DetectionResult = DetectionResult("OK", (), "no detection yet")  # noqa: RUF009  # a frozen value
    session: str = ""
    looks: int = 0
