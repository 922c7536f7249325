"""Start-up order: which cliques a clique waits for, inside its own gang."""

from __future__ import annotations

from spinney.grove.model.layout import Clique, Layout

ANY_ORDER = "CliqueStartupTypeAnyOrder"
IN_ORDER = "CliqueStartupTypeInOrder"
EXPLICIT = "CliqueStartupTypeExplicit"


def parents(layout: Layout, child: Clique) -> tuple[Clique, ...]:
    """The cliques whose minAvailable must be ready before the child's pods start.

    In the base gang a parent inside a scaling group means all of its base replicas. In a scaled gang only parents of
    the same scaling-group replica count: order is never enforced across gangs.
    """
    wanted = _parent_names(layout, child)
    if not wanted:
        return ()
    siblings = [clique for clique in layout.cliques if clique.gang == child.gang and clique.name != child.name]
    return tuple(
        clique for name in wanted for clique in siblings if clique.template.name == name and _waits(child, clique)
    )


def _waits(child: Clique, parent: Clique) -> bool:
    if not child.base_gang:
        return True
    return (parent.group, parent.group_index) == (child.group, child.group_index)


def _parent_names(layout: Layout, child: Clique) -> tuple[str, ...]:
    template = layout.pcs.spec.template
    if template.clique_startup_type == EXPLICIT:
        return child.template.spec.starts_after
    if template.clique_startup_type != IN_ORDER:
        return ()
    order = [clique.name for clique in template.cliques]
    at = order.index(child.template.name)
    return (order[at - 1],) if at else ()
