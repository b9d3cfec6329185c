"""A mediator's knowledge in one life, beside its sessions. None of it is stored: a new life queries it again."""

from __future__ import annotations

from plimsoll.core.protocol.messages import Trigger
from plimsoll.core.session.attempts import moved_since
from plimsoll.core.session.context.cluster_memories import ClusterMemories
from plimsoll.core.session.context.command_outbox import CommandOutbox
from plimsoll.core.session.context.edge_loads import EdgeLoads
from plimsoll.core.session.context.group_samples import GroupSamples
from plimsoll.core.session.context.listings import PublisherListings, SubscriberListings
from plimsoll.core.session.context.profile_queries import ProfileQueries
from plimsoll.core.session.context.reservations import SessionReservations
from plimsoll.core.session.context.settled_loads import SettledLoads
from plimsoll.core.session.context.watched_clusters import WatchedCluster
from plimsoll.core.session.inputs import EngineSettings, FleetView, SessionRequest, Timings
from plimsoll.core.session.state import Session
from plimsoll.core.session.table import SessionTable


class EngineContext:
    """What the steps of a session read: requests, the fleet, all sessions, replies; and the outbox they write to."""

    def __init__(self, epoch: int, settings: EngineSettings) -> None:
        self.settings = settings
        self.timings: Timings = settings.scaled
        self.started_at = 0.0
        self.fleet = FleetView()
        self.fleet_observed_at = float("-inf")
        """When `fleet` came. Minus infinity before the first: 0.0 would be fresh on a clock that begins near 0."""
        self.view_resumed_at = float("-inf")
        """When the fleet was observed again after a time without a view."""
        self.requests: dict[str, SessionRequest] = {}
        self.table = SessionTable()
        self.confirmed_batches: set[str] = set()
        """Batches that began in this life, or of which a head has sent an OUTCOME in it."""
        self.outbox = CommandOutbox(epoch, self.timings)
        self.listings = SubscriberListings(self.outbox)
        self.publisher_listings = PublisherListings(self.outbox)
        self.group_samples = GroupSamples(self.outbox)
        self.reservations = SessionReservations(self.outbox)
        self.profile_queries = ProfileQueries(self.outbox)
        self.last_triggers: dict[str, tuple[int, int]] = {}
        """The epoch and the number of the last trigger of each edge."""
        self.waiting_triggers: dict[str, tuple[float, Trigger]] = {}
        """The last trigger of each edge that has not become a session, and when it came."""
        self.awaited_sessions: dict[str, tuple[float, frozenset[str]]] = {}
        """By name: sessions of triggers whose objects have not come back yet, until when, and the edges meant."""
        self.settled_loads = SettledLoads()
        self.watched_clusters: dict[str, WatchedCluster] = {}
        self.following: dict[str, frozenset[tuple[str, str]]] = {}
        """Publishers of each cluster that were to follow at the last look, each with the head to go to."""
        self.overloaded_heads: dict[str, tuple[int, int]] = {}
        """Heads that were overloaded at the last look, by cluster: epoch and number of the first report of it."""
        self.awaited_relief = "", 0.0
        """The last session that was created for an overloaded head, and until when its object is awaited."""
        self.awaited_slice_moves: dict[str, tuple[str, float]] = {}
        """By cluster and group: the last session that was created for it, and until when its object is awaited."""
        self.cluster_memories = ClusterMemories()
        self.checked_views: dict[str, float] = {}
        """When the view of the fleet was observed in which overloads of a cluster were last looked for."""
        self.checked_reports: dict[str, tuple[int, int]] = {}
        """The last report of each edge in which an overload was looked for: its epoch and number."""

    @property
    def now(self) -> float:
        return self.outbox.now

    @property
    def loads(self) -> EdgeLoads:
        """The loads of edges as of now."""
        return EdgeLoads(self.fleet, self.fleet_observed_at, self.reservations.answered, self.settings, self.now)

    def observe(self, fleet: FleetView) -> None:
        """Take in the fleet as it is now."""
        if self.now - self.fleet_observed_at > self.timings.view:
            self.view_resumed_at = self.now
        self.fleet, self.fleet_observed_at = fleet, self.now
        self.cluster_memories.adopt(fleet)

    @property
    def is_fleet_known(self) -> bool:
        """Whether the fleet has been observed in this life."""
        return self.fleet_observed_at > float("-inf")

    def waiting_since(self, session: Session) -> float:
        """Since when a session waits in its phase for brokers: this life sent them nothing before it began.

        A time in which this mediator was too busy to look at the fleet does not count.
        """
        if self.now - self.fleet_observed_at > self.timings.view:
            return self.now
        return max(session.phase_at, self.started_at, self.view_resumed_at)

    def recently_moved(self, seconds: float, what: str = "subscribers") -> set[str]:
        """Subscribers that any session has moved within this time; or publishers, or slices between consumers."""
        since = self.now - seconds
        recent = (one for one in self.table.sessions.values() if one.ended_at is None or one.ended_at > since)
        some = (one for one in recent if one.member_noun == what)
        return {name for session in some for name in moved_since(session, since)}

    def forget_answers(self, uid: str) -> None:
        """Drop listings and profiles for a session, so that its next question is queried again."""
        self.listings.forget(uid)
        self.publisher_listings.forget(uid)
        self.group_samples.forget(uid)
        self.profile_queries.forget_session(uid)
