"""One fleet, looked at again whenever something may have changed: an asyncio task per namespace.

A look reads what the watches know, says what should be, and takes the steps from one to the other; it knows nothing
about what has just happened, so a change that was missed is found by the next look. The fleet's mediator runs beside
it, and is told what there is. Who waits for the API server here makes no other fleet wait.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from time import monotonic, time
from typing import Any

from plimsoll.core.config import Peer, Role
from plimsoll.core.spec import InvalidResourcesError, Resources, head_name
from plimsoll.core.spec.kinds import BrokerFleetSpec
from plimsoll.mediator import aggregates
from plimsoll.mediator import desired as asked
from plimsoll.mediator.control import Curve, Members
from plimsoll.operator import keys, leaving, names, rolling, status
from plimsoll.operator.api import Api, ApiError, ConflictError, MissingError
from plimsoll.operator.attempts import CONFLICT_SECONDS, RETRY_SECONDS, Attempts, is_away
from plimsoll.operator.cache import Cache
from plimsoll.operator.change import Apply, Change, Delete, Evacuate, Patch, Restart, Taken, Wait, subject
from plimsoll.operator.changes import changes, lost
from plimsoll.operator.collectors import Telling
from plimsoll.operator.desired import Desired, Known, desire
from plimsoll.operator.emptying import Moment, Serves
from plimsoll.operator.health import Health
from plimsoll.operator.keeping import Keeping
from plimsoll.operator.mediating import Mediating
from plimsoll.operator.metrics import Metrics
from plimsoll.operator.names import Object
from plimsoll.operator.objects import Ref, annotation, digest, is_leaving, is_ours, ref, uid
from plimsoll.operator.observed import Observed, label, rfc3339, seconds
from plimsoll.operator.reach import reachable
from plimsoll.operator.retries import Retries
from plimsoll.operator.settings import Settings
from plimsoll.operator.sparking import Sparking

log = logging.getLogger(__name__)

ROUND_SECONDS = 1.0
"""Status is looked at so often."""
QUIET_SECONDS = 0.05
"""What is heard within so long of each other is looked at together."""
LOAD_WRITE_SECONDS = 1.0
"""In a large fleet load figures are older: of all its edges together no more are written than one in so long."""
HEARING_SECONDS = 45.0
"""So long after a mediator has begun, what was said before stands, until all that serve have been heard."""
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS, LASTING_SECONDS = 1.0, 60.0, 60.0
"""A mediator that cannot go on begins anew after a pause that doubles, until one has lasted."""
LATE_SECONDS = 3.0
"""A namespace with clusters and no fleet is said to want one after so long: an apply writes files one by one."""
NO_FLEET = "there is no BrokerFleet in this namespace: create one, with an empty spec if nothing is to be said"


class Fleet:
    """The fleet of one namespace. `nodes` gives the nodes by name, or None where nobody may look at them."""

    def __init__(
        self,
        namespace: str,
        api: Api,
        cache: Cache,
        settings: Settings,
        metrics: Metrics,
        health: Health,
        nodes: Callable[[], Mapping[str, Object] | None],
    ) -> None:
        self.namespace = namespace
        self._api, self._cache, self._settings = api, cache, settings
        self._metrics, self._health, self._nodes = metrics, health, nodes
        self._woken = asyncio.Event()
        self._telling, self._sparking = Telling(namespace), Sparking(api, namespace, settings)
        self._mediating: Mediating | None = None
        self._serving: asyncio.Task[None] | None = None
        self._served_as: object = None
        self._desired: Desired | None = None
        self._faults: dict[Ref, tuple[str, str]] = {}
        self._attempts, self._statuses = Attempts(namespace), Retries(random.SystemRandom())
        self._keeping = Keeping(namespace, api, self._attempts, self._stored, self._said_key)
        self._waits: dict[Ref, str] = {}
        self._invalid = self._why = ""
        self._astray: dict[Ref, tuple[str, str]] = {}
        self._unmediated: dict[Ref, tuple[str, str]] = {}
        self._loads_at: dict[Ref, float] = {}
        self._said: dict[Ref, str] = {}
        self._begun_at = monotonic()
        self._pause, self._mediates_at = FIRST_PAUSE_SECONDS, 0.0
        self.idle = False

    @property
    def is_woken(self) -> bool:
        """Whether something was heard of it that nobody has looked at."""
        return self._woken.is_set()

    def wake(self) -> None:
        """Something of it has changed."""
        self._woken.set()

    def session(self, type_: str, item: Object) -> None:
        """A session was made, changed, or has gone."""
        if self._mediating is not None:
            self._mediating.session(type_, item)

    async def run(self) -> None:
        """Serve the fleet until it has gone.

        Raises:
            DeposedError: somebody else mediates it.

        """
        look_at = 0.0
        try:
            while not self.idle:
                self._health.beat(self.namespace)
                if self._woken.is_set() or monotonic() >= look_at:
                    self._woken.clear()
                    look_at = monotonic() + await self._look_safely()
                await self._check_mediator()
                begun = monotonic()
                await self._write_status()
                self._metrics.reconcile_seconds.labels("status").observe(monotonic() - begun)
                await self._rest(min(ROUND_SECONDS, max(0.0, look_at - monotonic())))
        finally:
            self._health.gone(self.namespace)
            self._cache.leave(self.namespace)
            self._telling.stop()
            await self._stop_mediating()

    async def _rest(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):  # `wait_for` of Python 3.11 may lose a cancellation
                await self._woken.wait()
            await asyncio.sleep(QUIET_SECONDS)
        except TimeoutError:
            return

    # -- looking

    async def _look_safely(self) -> float:
        """Look, and say how long until the next look at the latest."""
        if self._mediating is not None and self._mediating.may_be_deposed:
            return RETRY_SECONDS  # what it knows is older than its lease
        begun = monotonic()
        result, again = "success", self._settings.resync_seconds
        try:
            await self._look()
        except (ApiError, ConflictError, MissingError) as error:
            log.warning("%s: %s; looked at again after %g s", self.namespace, error, RETRY_SECONDS)
            result, again = "error", RETRY_SECONDS
        if self._faults or self._waits:
            again = min(again, RETRY_SECONDS)
        if result == "success" and (self._faults or self._why):
            result = "refused"
        again = max(QUIET_SECONDS, min(again, self._attempts.next(monotonic())))
        self._metrics.reconciles.labels("fleet", result).inc()
        self._metrics.reconcile_seconds.labels("fleet").observe(monotonic() - begun)
        return again

    async def _look(self) -> None:
        observed = self._observe()
        custom = [item for kind in asked.KINDS for item in observed.kind(kind)]
        if not custom:
            self.idle = True
            return
        if not any(item["kind"] == "BrokerFleet" for item in custom):
            await self._say_fleetless(custom)
            await self._let_go(observed, Desired(self.namespace, asked.resources([])))
            return
        resources = self._resources(custom)
        if resources is None:
            await self._say_invalid(custom)
            if self._desired is not None:
                await self._let_go(observed, self._desired)
            return
        held = await self._keeping.keys(resources, observed)
        observed = self._observe()
        known = Known(namespace=self.namespace, live=observed.objects, keys=held, still=observed.brokers())
        moment = self._moment(resources.fleet.spec.time_scale_percent / 100)
        # Beside the event loop: with hundreds of brokers this is a good part of a second.
        desired = await asyncio.to_thread(desire, resources, known, self._settings)
        self._desired = desired
        await self._carry_out(await asyncio.to_thread(changes, desired, observed, moment))
        await self._mediate(desired, held)
        collecting = resources.fleet.spec.telemetry.collectors.replicas
        sessions = observed.kind("LoadBalancingSession")
        self._telling.look(desired.fleet, collecting, held.get(names.COLLECTOR_KEYS), sessions)
        anew = await self._sparking.look(resources, self._observe(), self._telling.known)
        if anew is not None:
            await self._do(anew, {})
            fleet = observed.get("BrokerFleet", desired.fleet)
            await self._say(fleet, "Warning", "SparkRestarting", anew.reason)

    async def _let_go(self, observed: Observed, desired: Desired) -> None:
        """Who was to leave leaves, and lost nodes are given up, also where nobody knows what else should be."""
        moment = self._moment(1.0)
        await self._carry_out([*leaving.changes(desired, observed, moment), *lost(observed, moment)])

    def _moment(self, factor: float) -> Moment:
        mediating, now = self._mediating, time()
        if mediating is None or not mediating.lives:
            return Moment(now, factor, 0.0, {})
        serves = {
            name: Serves(int(heard.report["subscribers"]), now - heard.report_age)
            for name, heard in mediating.heard.items()
            if heard.report_age is not None and "subscribers" in heard.report
        }
        return Moment(now, factor, monotonic() - self._begun_at, serves)

    def _observe(self) -> Observed:
        return Observed(self._cache.objects(self.namespace, monotonic()), self._nodes())

    def _resources(self, custom: Sequence[Object]) -> Resources | None:
        self._astray.clear()
        there = {
            each["metadata"]["name"] for each in custom if each["kind"] == "BrokerCluster" and not is_leaving(each)
        }
        try:
            found = asked.resources(item for item in custom if not self._is_astray(item, there))
        except InvalidResourcesError as error:
            self._invalid, self._why = str(error).replace("<store>: ", ""), "InvalidSpec"
            return None
        self._invalid = self._why = ""
        return found

    def _is_astray(self, item: Object, there: Collection[str]) -> bool:
        """Whether an edge that somebody has made names a cluster that is not there: no reason to stop the others."""
        if item["kind"] != "EdgeBroker" or is_leaving(item):
            return False
        cluster = item["spec"]["clusterRef"]["name"]
        if cluster in there:
            return False
        self._astray[ref(item)] = ("NoCluster", f"there is no BrokerCluster {cluster}")
        return True

    async def _say_invalid(self, custom: Sequence[Object]) -> None:
        """Everything stays as it is until somebody has mended what is asked for."""
        fleet = next(item for item in custom if item["kind"] == "BrokerFleet")
        await self._say(fleet, "Warning", "InvalidSpec", f"everything stays as it is: {self._invalid}")

    async def _say_fleetless(self, custom: Sequence[Object]) -> None:
        """Clusters need a fleet: it has the keys, and its status has the epoch of the mediator."""
        clusters = [item for item in custom if item["kind"] == "BrokerCluster" and not is_leaving(item)]
        made = [seconds(item["metadata"]["creationTimestamp"]) for item in clusters]
        if clusters and time() - max(made) >= LATE_SECONDS:
            self._invalid, self._why = NO_FLEET, "NoFleet"
            for cluster in clusters:
                await self._say(cluster, "Warning", "NoFleet", NO_FLEET)

    def _said_key(self, broker: str) -> str:
        """The key under which a broker says that it answers, or the mediator's own; empty while nothing is said."""
        if broker == names.MEDIATOR:
            return self._curve_in_use
        heard = self._mediating.heard.get(broker) if self._mediating is not None else None
        process = heard.answer.get("process") if heard is not None else None
        return str(process.get("public_key", "")) if isinstance(process, Mapping) else ""

    # -- changes

    async def _carry_out(self, steps: Sequence[Change]) -> None:
        """Take the steps; one that is refused stops no other, and is taken again after a pause that grows."""
        self._waits = {step.subject: step.reason for step in steps if isinstance(step, Wait)}
        faults = {**self._astray, **self._unmediated, **self._keeping.keyless}
        for step in steps:
            if isinstance(step, Taken):
                faults[step.subject] = ("NameTaken", step.reason)
            elif isinstance(step, Wait):
                continue
            elif self._attempts.is_due(_attempt(step), monotonic(), _wanted(step)):
                await self._try(step, faults)
            elif subject(step) in self._faults:
                faults[subject(step)] = self._faults[subject(step)]
        self._attempts.keep({_attempt(step) for step in steps} | self._keeping.attempts)
        self._faults = faults
        for key, (reason, message) in faults.items():
            await self._say_once(key, reason, message)

    async def _try(self, step: Change, faults: dict[Ref, tuple[str, str]]) -> None:
        """Take a step, and note why it cannot be taken; raises if the API server would not answer the next one."""
        attempt, wanted = _attempt(step), _wanted(step)
        try:
            await self._do(step, faults)
            self._attempts.succeeded(attempt)
        except ConflictError as error:
            self._attempts.failed_by(error, attempt, monotonic(), wanted)
            self._cache.forget(self.namespace, subject(step))
        except ApiError as error:
            faults[subject(step)] = self._attempts.failed_by(error, attempt, monotonic(), wanted)
            if is_away(error):
                raise

    async def _do(self, step: Change, faults: dict[Ref, tuple[str, str]]) -> None:
        log.info("%s: %s %s: %s", self.namespace, type(step).__name__, "/".join(subject(step)), _reason(step))
        match step:
            case Apply(item):
                await self._apply(item, faults)
            case Patch(item, patch):
                await self._patch(item, patch)
            case Delete(item, _, grace):
                await self._delete(item, grace)
            case Restart(broker, pod, reason):
                await self._delete(pod, None)
                await self._say(self._about(broker), "Normal", "Restarting", f"pod {pod['metadata']['name']}: {reason}")
            case Evacuate(edge, session, reason):
                wanted = {**session, "metadata": {**session["metadata"], "namespace": self.namespace}}
                self._stored(await self._api.create(wanted))
                message = f"session {session['metadata']['name']} moves its subscribers: {reason}"
                await self._say(edge, "Normal", "Evacuating", message)
        self._metrics.changes.labels(type(step).__name__, subject(step)[0]).inc()

    async def _apply(self, item: Object, faults: dict[Ref, tuple[str, str]]) -> None:
        """Write an object; one that the watches do not show may still be there, and somebody else's."""
        kind, name = ref(item)
        if (kind, name) not in self._cache.objects(self.namespace, monotonic()):
            try:
                there = await self._api.get(kind, self.namespace, name)
            except MissingError:
                there = None
            if there is not None and not is_ours(there, item):
                if label(there, "app.kubernetes.io/managed-by") == names.MANAGER:
                    self._stored(there)  # of an earlier life: it is waited for
                else:
                    faults[kind, name] = ("NameTaken", f"somebody else has made {kind}/{name}")
                return
        self._stored(await self._api.apply(item))

    async def _patch(self, item: Object, patch: Mapping[str, Any]) -> None:
        kind, name = ref(item)
        try:
            changed = await self._api.patch(kind, self.namespace, name, patch)
        except MissingError:
            self._cache.deleted(item, monotonic())
            return
        if is_leaving(changed) and not changed["metadata"].get("finalizers"):
            self._cache.deleted(changed, monotonic())
        else:
            self._stored(changed)

    async def _delete(self, item: Object, grace_seconds: int | None) -> None:
        kind, name = ref(item)
        try:
            await self._api.delete(kind, self.namespace, name, uid=uid(item), grace_seconds=grace_seconds)
        except MissingError:
            self._woken.set()
            if kind not in asked.KINDS:  # a definition that is not there is answered alike
                self._cache.gone(item)
                return
        self._cache.deleted(item, monotonic())

    def _stored(self, item: Object) -> Object:
        self._cache.stored(item, monotonic())
        return item

    # -- the mediator

    async def _mediate(self, desired: Desired, held: Mapping[str, keys.Keys]) -> None:
        """Keep a mediator for the fleet, and tell it what there is."""
        plain = desired.resources.fleet.spec.security.plain
        own = held.get(names.MEDIATOR_KEYS)
        if not plain and own is None:
            return
        curve = None if plain or own is None else Curve(own.public, own.secret)
        spec = desired.resources.fleet.spec
        serve_as = (desired.fleet, curve, spec.time_scale_percent, spec.telemetry.report_interval)
        if self._serving is None and monotonic() < self._mediates_at:
            return
        if self._serving is None or serve_as != self._served_as:
            await self._stop_mediating()
            self._begin_mediating(desired.fleet, spec, curve)
            self._served_as, self._curve_in_use = serve_as, own.public if own is not None else ""
        observed = self._observe()
        mediating = self._mediating
        if mediating is None:
            return
        closed = rolling.cordoned(desired, observed)  # those are no targets of any session, too
        mediating.show([_shut(item, closed) for kind in asked.KINDS for item in observed.kind(kind)])
        mediating.dial(*self._lines(desired, observed))

    _curve_in_use = ""

    def _begin_mediating(self, fleet: str, spec: BrokerFleetSpec, curve: Curve | None) -> None:
        self._begun_at = monotonic()
        self._mediating = Mediating(
            self._api, self.namespace, fleet, curve, spec, metrics=self._metrics.session.of_one_fleet()
        )
        self._mediating.aggregate(lambda: aggregates.loads(self._telling.known, time()))
        self._serving = asyncio.create_task(self._mediating.run(), name=f"mediator of {self.namespace}")

    async def _check_mediator(self) -> None:
        """Notice its end; it is begun anew at the next look, but for one that was deposed.

        What it could not write is a fault of the fleet until one has lasted: meanwhile sessions do not go on.
        """
        if self._serving is None or not self._serving.done():
            if self._serving is not None and monotonic() - self._begun_at >= LASTING_SECONDS:
                self._unmediated.clear()
            return
        serving, self._serving, self._mediating = self._serving, None, None
        lasted, self._begun_at = monotonic() - self._begun_at, monotonic()
        error = serving.exception()
        if error is None:
            return
        if isinstance(error, ApiError | ConflictError | MissingError):
            self._pause = (
                min(2 * self._pause, LONGEST_PAUSE_SECONDS) if lasted < LASTING_SECONDS else FIRST_PAUSE_SECONDS
            )
            self._mediates_at = monotonic() + self._pause
            log.error("%s: the mediator has ended, begun anew after %g s: %s", self.namespace, self._pause, error)
            self._woken.set()
            fleet = next(self._observe().kind("BrokerFleet"), None)
            await self._say(fleet, "Warning", "MediatorExited", f"begun anew after {self._pause:g} s: {error}")
            if fleet is not None:
                self._unmediated[ref(fleet)] = ("Refused", f"the mediator cannot go on: {error}")
            return
        raise error

    async def _stop_mediating(self) -> None:
        serving, self._serving, self._mediating = self._serving, None, None
        if serving is not None:
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)

    def _lines(self, desired: Desired, observed: Observed) -> tuple[dict[str, tuple[Peer, Role]], dict[str, Members]]:
        """Whom the mediator speaks to, and what heads are told of their edges."""
        draining = self._mediating.draining if self._mediating is not None else frozenset()
        closed = rolling.cordoned(desired, observed) | draining
        running: dict[str, str] = {}
        for kind in ("StatefulSet", "Pod"):
            for item in observed.kind(kind):
                if label(item, "app.kubernetes.io/component") == "edge":
                    running[label(item, names.BROKER)] = label(item, names.CLUSTER)
        wanted = {broker.name: broker.cluster for broker in desired.brokers.values() if broker.role == "edge"}
        members: dict[str, Members] = {}
        for cluster in desired.resources.clusters:
            edges = sorted(name for name, of in {**running, **wanted}.items() if of == cluster)
            leaving = {name for name in edges if name not in wanted}
            shut = tuple(name for name in edges if name in closed | leaving)
            members[head_name(cluster)] = Members(tuple(edges), shut)
        brokers = {**observed.brokers(), **{name: broker.role for name, broker in desired.brokers.items()}}
        return reachable(observed, brokers), members

    # -- what is said

    async def _write_status(self) -> None:
        """The status of all objects, as far as it is due; one that has been changed meanwhile is due again later."""
        now = rfc3339(time())
        if self._desired is None or self._why == "NoFleet":
            if self._invalid:
                await self._write_due(status.unserved(self._observe(), self._why, self._invalid, now))
            return
        facts = status.Facts(
            desired=self._desired,
            observed=self._observe(),
            heard=self._mediating.heard if self._mediating is not None else {},
            faults=self._faults,
            waits=self._waits,
            invalid=self._invalid,
            mediator={"pod": self._settings.pod_name} if self._settings.pod_name else {},
            telemetry=self._telling.status,
            spark=self._sparking.judged(self._desired.resources, self._observe(), self._telling.known),
            time=now,
        )
        if self._mediating is not None and (not self._mediating.lives or self._mediating.may_be_deposed):
            return  # another operator mediates, hears the brokers, and says how they are
        if monotonic() - self._begun_at > HEARING_SECONDS or not status.is_unheard(facts):
            await self._write_due(status.statuses(facts))

    async def _write_due(self, statuses: Iterable[tuple[Object, Mapping[str, Any]]]) -> None:
        observed = self._observe()
        brokers = sum(1 for _ in observed.kind("EdgeBroker"))
        rest = max(self._settings.load_seconds, brokers * LOAD_WRITE_SECONDS)
        self._loads_at = {key: at for key, at in self._loads_at.items() if key in observed.objects}
        self._statuses.keep(observed.objects)
        for item, wanted in statuses:
            now, key = monotonic(), ref(item)
            age = now - self._loads_at.get(key, -rest)
            if not status.is_due(item, wanted, age, rest) or not self._statuses.is_due(key, now):
                continue
            self._loads_at[key] = now
            try:
                self._stored(await self._api.replace_status({**item, "status": wanted}))
                self._statuses.succeeded(key)
            except (ConflictError, MissingError):
                self._statuses.failed(key, now, CONFLICT_SECONDS, longest=rest)
                self._cache.forget(self.namespace, key)
            except ApiError as error:
                after = self._statuses.failed(key, now, RETRY_SECONDS, longest=rest)
                log.warning("%s: status of %s: %s; again after %.1f s", self.namespace, "/".join(key), error, after)
                if is_away(error):
                    return  # nor would it answer the others, and each of them would be waited for

    async def _say_once(self, key: Ref, reason: str, message: str) -> None:
        if self._said.get(key) != message:
            self._said[key] = message
            about = self._observe().objects.get(key)
            await self._say(about or self._about(status.broker_of(key)), "Warning", reason, message)

    async def _say(self, about: Object | None, type_: str, reason: str, message: str) -> None:
        """An event for people; one that cannot be written is no reason to stop."""
        if about is None:
            return
        try:
            await self._api.event(about, type_, reason, message)
        except (ApiError, ConflictError, MissingError) as error:
            log.info("%s: no event was written: %s", self.namespace, error)

    def _about(self, broker: str) -> Object | None:
        """The object that stands for a broker, or else the fleet."""
        observed = self._observe()
        found = observed.get("EdgeBroker", broker)
        if found is None and self._desired is not None and broker in self._desired.brokers:
            found = observed.get("BrokerCluster", self._desired.brokers[broker].cluster)
        return found or next(observed.kind("BrokerFleet"), None)


def _reason(step: Change) -> str:
    return step.reason


def _attempt(step: Change) -> tuple[str, str]:
    """What fails and is tried again by itself: a sort of step, with what it is about."""
    kind, name = subject(step)
    return f"{type(step).__name__} {kind}", name


def _wanted(step: Change) -> str:
    """What a step would have stored; one that would store something else need not wait."""
    return annotation(step.item, names.DESIRED_HASH) or digest(step.item) if isinstance(step, Apply) else ""


def _shut(item: Object, closed: Collection[str]) -> Object:
    """An object as the mediator is shown it: an edge that is about to be replaced is as good as cordoned."""
    if item["kind"] != "EdgeBroker" or item["metadata"]["name"] not in closed:
        return item
    return {**item, "spec": {**item["spec"], "cordoned": True}}
