"""Which fleet a command goes to: by its options, the environment, the context in use, or as the only fleet."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from dataclasses import dataclass

from plimsoll.cli.contexts import CONTEXT_VARIABLE, FLEET_VARIABLE, KUBERNETES_VARIABLE
from plimsoll.cli.contexts.context_file import ContextFile, StoredContext, read_contexts
from plimsoll.cli.contexts.kubeconfig import kubeconfig_contexts
from plimsoll.cli.exit_codes import BAD_INPUT, NOT_FOUND, CommandError
from plimsoll.core.spec.problems import suggestion
from plimsoll.local.storage.fleet_folder import fleet_folders


@dataclass(frozen=True)
class LocalChoice:
    """A fleet of this machine; without a name the only one."""

    fleet: str | None = None


@dataclass(frozen=True)
class KubernetesChoice:
    """A namespace of a Kubernetes cluster; None: that of the kubeconfig."""

    context: str | None = None
    namespace: str | None = None


@dataclass(frozen=True)
class AddressChoice:
    """Heads at addresses, of which this machine has no objects."""

    name: str
    context: StoredContext


FleetChoice = LocalChoice | KubernetesChoice | AddressChoice


def choose_fleet(options: argparse.Namespace) -> FleetChoice:
    """Where a command goes. Raises `CommandError` for a name that is unknown, or stands for several fleets."""
    context, fleet = getattr(options, "context", None), getattr(options, "fleet", None)
    namespace = getattr(options, "namespace", None)
    if context and fleet:
        raise CommandError(BAD_INPUT, "--context and --fleet both name a fleet: give one of them")
    if context:
        return _named(context, namespace)
    if namespace:
        return _in_namespace(namespace)
    return LocalChoice(fleet) if fleet else _by_environment()


def prefers_kubernetes() -> bool:
    """Whether the environment selects the API server, as for `kubectl plimsoll`."""
    return os.environ.get(KUBERNETES_VARIABLE, "0") not in ("", "0")


def known_names(stored: ContextFile | None = None) -> list[str]:
    """The names of all contexts, stored and found."""
    contexts = read_contexts() if stored is None else stored
    return sorted({*contexts.contexts, *(folder.fleet for folder in fleet_folders()), *kubeconfig_contexts()})


def _by_environment() -> FleetChoice:
    if name := os.environ.get(CONTEXT_VARIABLE):
        return _named(name, None)
    if prefers_kubernetes():
        return KubernetesChoice()
    if fleet := os.environ.get(FLEET_VARIABLE):
        return LocalChoice(fleet)
    current = read_contexts().current
    return _named(current, None) if current else LocalChoice()


def _in_namespace(namespace: str) -> FleetChoice:
    """A namespace of the Kubernetes context in use, or else of the kubeconfig's current one."""
    name = os.environ.get(CONTEXT_VARIABLE) or read_contexts().current
    used = _named(name, None) if name else None
    return KubernetesChoice(used.context if isinstance(used, KubernetesChoice) else None, namespace)


def _named(name: str, namespace: str | None) -> FleetChoice:
    stored = read_contexts()
    found = stored_choice(name, stored.contexts) or _found(name, namespace)
    if found is None:
        hint = suggestion(name, known_names(stored), "context")
        raise CommandError(NOT_FOUND, f'no context "{name}". {hint}')
    if namespace is None:
        return found
    if not isinstance(found, KubernetesChoice):
        raise CommandError(BAD_INPUT, f"context {name} is not a Kubernetes cluster: leave --namespace out")
    return KubernetesChoice(found.context, namespace)


def stored_choice(name: str, contexts: Mapping[str, StoredContext]) -> FleetChoice | None:
    """What a stored context stands for."""
    context = contexts.get(name)
    if context is None:
        return None
    if context.kubernetes:
        return KubernetesChoice(context.kubernetes, context.namespace or None)
    return LocalChoice(context.fleet) if context.fleet else AddressChoice(name, context)


def _found(name: str, namespace: str | None) -> FleetChoice | None:
    """A local fleet or a context of the kubeconfig of this name."""
    is_local = any(folder.fleet == name for folder in fleet_folders())
    is_kubernetes = name in kubeconfig_contexts()
    if is_local and is_kubernetes and not (namespace or prefers_kubernetes()):
        remedy = f"write --fleet {name}, or `plimsoll context add NAME --kubernetes {name}`"
        raise CommandError(BAD_INPUT, f'"{name}" is a local fleet and a context of the kubeconfig: {remedy}')
    if is_kubernetes and (not is_local or namespace or prefers_kubernetes()):
        return KubernetesChoice(name)
    return LocalChoice(name) if is_local else None
