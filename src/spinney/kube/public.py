"""What `spinney.kube` exports; loaded when one of its names is used."""

from spinney.api.conditions import condition
from spinney.api.meta import Condition, Json, Key, Object, Resource, Struct
from spinney.api.owners import controller_reference
from spinney.api.untyped import untyped
from spinney.kube.admission.review import allowed, changed, refused
from spinney.kube.caches.cache import Cache, Caches, Change
from spinney.kube.client.client import Client, Patch
from spinney.kube.client.flow import Priority
from spinney.kube.client.https import connect
from spinney.kube.client.kubeconfig import find_server
from spinney.kube.clock import Clock, SystemClock
from spinney.kube.controllers.controller import After, Controller, owner_key, run_controllers
from spinney.kube.controllers.events import Recorder
from spinney.kube.controllers.host import Host
from spinney.kube.desired import Drift, Step, Wanted, plan, plan_pruning
from spinney.kube.errors import (
    AlreadyExists,
    ApiError,
    CannotStart,
    Conflict,
    ConnectionLost,
    Forbidden,
    Invalid,
    NotFound,
)
from spinney.kube.metrics import Metrics
from spinney.kube.runtime import Component, Rule, Runtime, Webhook
from spinney.kube.writer import Blocked, NameTaken, Writer

__all__ = [
    "After",
    "AlreadyExists",
    "ApiError",
    "Blocked",
    "Cache",
    "Caches",
    "CannotStart",
    "Change",
    "Client",
    "Clock",
    "Component",
    "Condition",
    "Conflict",
    "ConnectionLost",
    "Controller",
    "Drift",
    "Forbidden",
    "Host",
    "Invalid",
    "Json",
    "Key",
    "Metrics",
    "NameTaken",
    "NotFound",
    "Object",
    "Patch",
    "Priority",
    "Recorder",
    "Resource",
    "Rule",
    "Runtime",
    "Step",
    "Struct",
    "SystemClock",
    "Wanted",
    "Webhook",
    "Writer",
    "allowed",
    "changed",
    "condition",
    "connect",
    "controller_reference",
    "find_server",
    "owner_key",
    "plan",
    "plan_pruning",
    "refused",
    "run_controllers",
    "untyped",
]
