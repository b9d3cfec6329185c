"""The reasons of topics with deadlines, with cause and remedy."""

from __future__ import annotations

from plimsoll.core.spec.status.reasons import ReasonSection, StatusReason

TOPICS = ReasonSection(
    "Topics with deadlines",
    "topic",
    "Reasons in `status.topics` of a BrokerCluster, and in `plimsoll get topics`. A topic whose deadline can be kept"
    " has none.",
    (
        StatusReason(
            "PathTooLong",
            "a deadline that no balancing keeps",
            "links and brokers take longer than is required, with every queue empty",
            "Require less of the topic, or bring publishers, heads and subscribers nearer to one another.",
        ),
        StatusReason(
            "NoSubscribers",
            "a topic that the policy names",
            "no subscriber of the cluster asks for it",
            "Compare its name, and `topicAttribute`, with what applications write.",
        ),
        StatusReason(
            "NotMeasured",
            "a topic that the policy names",
            "it has subscribers, which have just come or are between two edges: no edge has reported it yet",
            "Wait for the next load report.",
        ),
        StatusReason(
            "NoPublications",
            "a topic with subscribers",
            "nothing was published to it in the last report interval",
            "If something should be, compare its name with what publishers write.",
        ),
        StatusReason(
            "NoOtherEdge",
            "a topic whose queue is deeper than its deadline allows",
            "its cluster has one edge, and topics do not go to other clusters",
            "Add an edge, or set `globalBalancing.enabled` and join a neighbour with the same `topicAttribute`.",
        ),
    ),
)
