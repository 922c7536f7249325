"""Rights follow roles and bindings, write by write."""

from __future__ import annotations

from typing import Any

import pytest

from spinney.embedded.apiserver.access import bindings
from spinney.embedded.apiserver.store.store import Item, load
from spinney.kube.client.transport import User
from tests.embedded.conftest import MAPS, MERGE, Asker

RBAC = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
LIST = {"verbs": ["list"], "apiGroups": [""], "resources": ["configmaps"]}


def binding(name: str, role: str, *subjects: dict[str, str]) -> dict[str, Any]:
    """A RoleBinding."""
    reference = {"apiGroup": bindings.GROUP, "kind": "Role", "name": role}
    return {"metadata": {"name": name}, "roleRef": reference, "subjects": list(subjects)}


async def test_rights_come_and_go_with_each_write(ask: Asker) -> None:
    """A role that comes after its binding, other subjects, other rules, and the end of a binding all count at once."""
    account = {"kind": "ServiceAccount", "name": "robot"}
    team = {"kind": "Group", "name": "team", "apiGroup": bindings.GROUP}
    robot = Asker(ask.server, User("system:serviceaccount:default:robot", ("system:authenticated",)))
    ann = Asker(ask.server, User("ann", ("team",)))

    async def listing() -> list[int]:
        return [(await each("GET", MAPS)).status for each in (robot, ann)]

    await ask("POST", f"{RBAC}/rolebindings", binding("b", "r", account))
    assert await listing() == [403, 403]
    await ask("POST", f"{RBAC}/roles", {"metadata": {"name": "r"}, "rules": [LIST]})
    assert await listing() == [200, 403]
    await ask("PATCH", f"{RBAC}/rolebindings/b", {"subjects": [team]}, kind=MERGE)
    assert await listing() == [403, 200]
    await ask("PATCH", f"{RBAC}/roles/r", {"rules": [{**LIST, "verbs": ["get"]}]}, kind=MERGE)
    assert await listing() == [403, 403]
    await ask("PATCH", f"{RBAC}/roles/r", {"rules": [LIST]}, kind=MERGE)
    await ask("POST", f"{RBAC}/rolebindings", binding("c", "r", team, account))
    await ask("DELETE", f"{RBAC}/rolebindings/b")
    assert await listing() == [200, 200]
    await ask("DELETE", f"{RBAC}/rolebindings/c")
    assert await listing() == [403, 403]


async def test_each_role_that_was_written_had_all_bindings_read_anew(
    ask: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each PodCliqueSet brings a role: with 1,500 sets, one more held up everybody for 50 ms."""
    for number in range(30):
        await ask("POST", f"{RBAC}/roles", {"metadata": {"name": f"r{number}"}, "rules": [LIST]})
        subject = {"kind": "ServiceAccount", "name": f"a{number}"}
        await ask("POST", f"{RBAC}/rolebindings", binding(f"b{number}", f"r{number}", subject))
    robot = Asker(ask.server, User("system:serviceaccount:default:a7"))
    assert (await robot("GET", MAPS)).status == 200
    read: list[str] = []

    def noted(item: Item) -> Any:
        read.append(item.name)
        return load(item)

    monkeypatch.setattr(bindings, "load", noted)
    await ask("POST", f"{RBAC}/roles", {"metadata": {"name": "new"}, "rules": [LIST]})
    await ask("POST", f"{RBAC}/rolebindings", binding("new", "new", {"kind": "ServiceAccount", "name": "new"}))
    assert (await robot("GET", MAPS)).status == 200
    assert read == ["new"]
