"""The keys of everybody in a fleet who needs some: made where there are none, and replaced step by step when asked.

Who cannot have any now stops nobody else: it is said why, and tried again after a while. What the steps are is decided
by `rotation`, a pure function; here they are taken.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import monotonic, time

from plimsoll.core.spec import Resources
from plimsoll.operator import keys, names, rotation
from plimsoll.operator.api import Api, ApiError, ConflictError, MissingError
from plimsoll.operator.attempts import Attempt, Attempts, Fault, is_away
from plimsoll.operator.desired import identities
from plimsoll.operator.names import Object
from plimsoll.operator.objects import Ref, annotation, is_ours
from plimsoll.operator.objects import owner as owning
from plimsoll.operator.observed import Observed, label, rfc3339


class Keeping:
    """The keys of one fleet.

    `stored` takes notice of an object that was written. `said`: the key under which a broker, or the mediator, says
    that it is known now; empty while it says nothing.
    """

    def __init__(
        self,
        namespace: str,
        api: Api,
        attempts: Attempts,
        stored: Callable[[Object], Object],
        said: Callable[[str], str],
    ) -> None:
        self._namespace, self._api, self._attempts, self._stored, self._said = namespace, api, attempts, stored, said
        self.keyless: dict[Ref, Fault] = {}
        """Who has no keys, or cannot have new ones: why, by Secret."""

    @property
    def attempts(self) -> set[Attempt]:
        """What has failed here."""
        return {("keys", name) for _, name in self.keyless}

    async def keys(self, resources: Resources, observed: Observed) -> dict[str, keys.Keys]:
        """The keys of all, by the name of their Secret; raises if the API server would not answer anything else."""
        found: dict[str, keys.Keys] = {}
        before, self.keyless = self.keyless, {}
        for name, owner, labels in identities(resources, observed.objects):
            key, attempt, secret = ("Secret", name), ("keys", name), observed.get("Secret", name)
            if self._attempts.is_due(attempt, monotonic()):
                try:
                    secret = await self._held(name, owner, labels, observed)
                    self._attempts.succeeded(attempt)
                except (ApiError, ConflictError, MissingError) as error:
                    self.keyless[key] = self._attempts.failed_by(error, attempt, monotonic())
                    if is_away(error):
                        raise
            elif key in before:
                self.keyless[key] = before[key]
            if secret is not None and (held := keys.read(secret)) is not None:
                found[name] = held
            elif key not in self.keyless:
                self.keyless[key] = ("NameTaken", f"Secret/{name} is not the operator's, or holds no keys")
        return {**keys.of_brokers(observed), **found}

    async def _held(self, name: str, owner: Object, labels: Mapping[str, str], observed: Observed) -> Object | None:
        """The Secret of an identity, made if there is none, after the step to new keys that is due."""
        secret = observed.get("Secret", name)
        if secret is None:
            secret = await self._make(name, owner, labels)
        if secret is None or keys.read(secret) is None:
            return secret
        return await self._rotate(secret, owner, observed)

    async def _make(self, name: str, owner: Object, labels: Mapping[str, str]) -> Object | None:
        wanted = keys.new_secret(name, labels, owning(owner), self._namespace)
        try:
            return self._stored(await self._api.create(wanted))
        except ConflictError:
            found = await self._api.get("Secret", self._namespace, name)
            return self._stored(found) if is_ours(found, wanted) else None

    async def _rotate(self, secret: Object, owner: Object, observed: Observed) -> Object:
        """Take the step to new keys that is due, if somebody has asked for them."""
        fleets = [annotation(item, names.ROTATE) for item in observed.kind("BrokerFleet")]
        wanted = " ".join(text for text in (*fleets, annotation(owner, names.ROTATE)) if text)
        in_use, overlap = self._in_use(secret, observed), rotation.OVERLAP_SECONDS
        if label(secret, "app.kubernetes.io/component") == "head":
            overlap = rotation.HEAD_OVERLAP_SECONDS
        now = rfc3339(time())
        patch = rotation.step(secret, wanted, in_use=in_use, make=keys.make, time=now, overlap=overlap)
        if patch is None:
            return secret
        return self._stored(await self._api.patch("Secret", self._namespace, secret["metadata"]["name"], patch))

    def _in_use(self, secret: Object, observed: Observed) -> str | None:
        """The key under which the holder of a Secret comes now; None where nobody knows, as of clients."""
        broker = label(secret, names.BROKER)
        if secret["metadata"]["name"] == names.MEDIATOR_KEYS:
            return self._said(names.MEDIATOR) or None
        if not broker:
            return None
        if label(secret, "app.kubernetes.io/component") == "head":
            return self._said(broker)
        pod = observed.pod(broker)
        return "" if pod is None else annotation(pod, names.KEY)
