"""Creates the key pairs of a fleet's brokers, clients and mediator, and replaces them step by step on request.

A Secret that cannot be written stops none of the others: it becomes a fault and is retried. Which step of a replacement
is due is decided by `rotation`, a pure function; here the steps are taken.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import monotonic, time

from plimsoll.core.spec import Resources
from plimsoll.mediator import authorized_keys
from plimsoll.operator import names
from plimsoll.operator.api import Api, ApiConflictError, ApiError, ApiNotFoundError
from plimsoll.operator.names import Object
from plimsoll.operator.objects.manifest import Ref, annotation, is_ours
from plimsoll.operator.objects.manifest import owner as owning
from plimsoll.operator.reconcile.desired import key_identities, key_owner
from plimsoll.operator.reconcile.observed import ObservedObjects, label, rfc3339
from plimsoll.operator.reconcile.retries import TAKEN, Fault, RetryKey, StepRetries, is_api_unavailable
from plimsoll.operator.security import keys, rotation


class KeyManager:
    """The keys of one fleet.

    `note_write` is called with each object as the API server stored it. `key_in_use_by` returns the public key that a
    broker, or the mediator, uses now; empty if unknown.
    """

    def __init__(
        self,
        namespace: str,
        api: Api,
        retries: StepRetries,
        note_write: Callable[[Object], Object],
        key_in_use_by: Callable[[str], str],
    ) -> None:
        self._namespace, self._api, self._retries = namespace, api, retries
        self._note_write, self._key_in_use_by = note_write, key_in_use_by
        self.faults: dict[Ref, Fault] = {}
        """By Secret, why its keys could not be created or replaced."""
        self.remembered: dict[str, tuple[str, ...]] = {}
        """The public keys that brokers accept now, by the name of the Secret that they came from."""
        self.replaced: list[tuple[Object, str, str]] = []
        """Secrets that got new keys in the last look: their owners, the reason, and what happened."""

        self.created: list[tuple[Object, str]] = []
        """Secrets that were created in the last look: whose they are, and what was done."""

    @property
    def retry_keys(self) -> set[RetryKey]:
        """The keys of the retries in use."""
        return {("keys", name) for _, name in self.faults}

    async def keys(self, resources: Resources, observed: ObservedObjects) -> dict[str, keys.StoredKeys]:
        """All keys by the name of their Secret. Raises an `ApiError` if the API server does not answer."""
        found: dict[str, keys.StoredKeys] = {}
        before, self.faults, self.replaced, self.created = self.faults, {}, [], []
        identities = list(key_identities(resources, observed.objects))
        accepted = _accepted_keys(observed)
        self.remembered = {name: accepted.get(_holder(name, labels), ()) for name, _, labels in identities}
        for name, owner, labels in identities:
            key, retry_key, secret = ("Secret", name), ("keys", name), observed.get("Secret", name)
            if self._retries.is_due(retry_key, monotonic()):
                try:
                    secret = await self._ensure_secret(name, owner, labels, observed)
                    self._retries.succeeded(retry_key)
                except (ApiError, ApiConflictError, ApiNotFoundError) as error:
                    self.faults[key] = self._retries.failed_by(error, retry_key, monotonic())
                    if is_api_unavailable(error):
                        raise
            elif key in before:
                self.faults[key] = before[key]
            if secret is not None and (held := keys.read_keys(secret)) is not None:
                found[name] = held
            elif key not in self.faults:
                self.faults[key] = Fault(TAKEN, f"Secret/{name} is not the operator's, or holds no keys")
        return {**keys.broker_keys(observed), **found}

    async def _ensure_secret(
        self, name: str, owner: Object, labels: Mapping[str, str], observed: ObservedObjects
    ) -> Object | None:
        """The Secret of an identity, created if there is none, after the due step of a key replacement."""
        secret = observed.get("Secret", name)
        if secret is None:
            secret = await self._make(name, owner, labels, observed)
        elif keys.read_keys(secret) is None:
            secret = await self._mend(secret, owner)
        if secret is None or keys.read_keys(secret) is None:
            return secret
        return await self._rotate(secret, owner, observed)

    async def _make(
        self, name: str, owner: Object, labels: Mapping[str, str], observed: ObservedObjects
    ) -> Object | None:
        old, now = next(iter(self.remembered[name]), ""), rfc3339(time())
        annotations = {names.DELETED_AT: now, rotation.STEP_AT: now} if old else {}
        belongs_to = owning(key_owner(owner, observed.objects))
        wanted = keys.new_secret(name, labels, belongs_to, self._namespace, annotations, old)
        try:
            made = self._note_write(await self._api.create(wanted))
            if not old:
                self.created.append((owner, f"Secret/{name} was created with a new pair of keys"))
            else:
                self.replaced.append((owner, "SecretDeleted", replaced_message(name)))
            return made
        except ApiConflictError:  # it exists, and the watch has not shown it yet
            found = await self._api.get("Secret", self._namespace, name)
            if not is_ours(found, wanted):
                return None
            if not labels.items() <= (found["metadata"].get("labels") or {}).items():  # no watch shows it without them
                patch = {"metadata": {"labels": dict(labels)}}
                found = await self._api.patch("Secret", self._namespace, name, patch)
            return self._note_write(found)

    async def _mend(self, secret: Object, owner: Object) -> Object:
        """Give a Secret without a usable pair a new one, as if it had been deleted."""
        name, now = secret["metadata"]["name"], rfc3339(time())
        old = next(iter(self.remembered[name]), "")
        made = keys.new_secret(name, {}, owning(owner), self._namespace, old=old)
        annotations = {names.DELETED_AT: now, rotation.STEP_AT: now} if old else {}
        patch = {"metadata": {"annotations": annotations}, "data": made["data"]}
        mended = self._note_write(await self._api.patch("Secret", self._namespace, name, patch))
        self.replaced.append((owner, "SecretInvalid", f"Secret/{name} held no pair of keys; {_NEW_KEYS}"))
        return mended

    async def _rotate(self, secret: Object, owner: Object, observed: ObservedObjects) -> Object:
        """Take the due step of a key replacement, if one is requested."""
        fleets = [annotation(item, names.ROTATE) for item in observed.kind("BrokerFleet")]
        wanted = " ".join(text for text in (*fleets, annotation(owner, names.ROTATE)) if text)
        in_use, overlap = self._in_use(secret, observed), rotation.OVERLAP_SECONDS
        if label(secret, "app.kubernetes.io/component") == "head":
            overlap = rotation.HEAD_OVERLAP_SECONDS
        now = rfc3339(time())
        patch = rotation.rotation_patch(
            secret, wanted, in_use=in_use, make=keys.make_key_pair, time=now, overlap=overlap
        )
        if patch is None:
            return secret
        return self._note_write(await self._api.patch("Secret", self._namespace, secret["metadata"]["name"], patch))

    def _in_use(self, secret: Object, observed: ObservedObjects) -> str | None:
        """The public key that the holder of a Secret uses now; None if that cannot be known, as of clients."""
        broker = label(secret, names.BROKER)
        if secret["metadata"]["name"] == names.MEDIATOR_KEYS:
            return self._key_in_use_by(names.MEDIATOR) or None
        if not broker:
            return None
        if label(secret, "app.kubernetes.io/component") == "head":
            return self._key_in_use_by(broker)
        pod = observed.pod(broker)
        return "" if pod is None else annotation(pod, names.KEY)


_NEW_KEYS = (
    "it has new keys; the old key stays accepted until its holder uses the new one, "
    f"that of an application for {rotation.CLIENT_OVERLAP_SECONDS / 60:.0f} min"
)


def replaced_message(name: str) -> str:
    """What to say of a Secret that was made in place of a deleted one."""
    return f"Secret/{name} was deleted; {_NEW_KEYS}"


def _accepted_keys(observed: ObservedObjects) -> Mapping[tuple[str, str], tuple[str, ...]]:
    """The authorized keys as brokers have them now."""
    stored = observed.get("ConfigMap", names.AUTHORIZED_KEYS)
    return authorized_keys.authorized_keys_of((stored or {}).get("data", {}).get(names.AUTHORIZED_FILE, ""))


def _holder(name: str, labels: Mapping[str, str]) -> tuple[str, str]:
    """The role and the name on the wire of the identity of a Secret."""
    if name == names.MEDIATOR_KEYS:
        return "mediator", names.MEDIATOR
    if name == names.COLLECTOR_KEYS:
        return "collector", names.COLLECTOR
    if name == names.PARAMETER_KEYS:
        return "collector", names.PARAMETERS
    if names.CLIENT in labels:
        return "client", labels[names.CLIENT]
    return labels["app.kubernetes.io/component"], labels[names.BROKER]
