"""What a PodCliqueSet must satisfy, as far as CEL can say it: so it also holds while no webhook answers.

The texts are those of upstream's webhook. What CEL cannot see (the user's pod spec, other objects), cannot afford
(circular start-up order) or would report at the wrong place (duplicates, by index) is checked by the webhook alone.
"""

from __future__ import annotations

from spinney.api.schema import Json, rule, schema

IMMUTABLE = "field is immutable"

# The API server wants to know how much a rule may cost at worst, so what rules run over has a size.
NAME = schema(maxLength=63)
MANY = schema(maxItems=64)

_EXPLICIT = "self.cliqueStartupType != 'CliqueStartupTypeExplicit'"


def _forbidden(cel: str, message: str, path: str) -> Json:
    return rule(cel, message, fieldPath=path, reason="FieldValueForbidden")


def _same(path: str) -> str:
    """A rule that a field is unchanged, or still absent."""
    new, old = f"self{path}", f"oldSelf{path}"
    return f"has({new}) == has({old}) && (!has({new}) || {new} == {old})"


def _settled(path: str) -> str:
    """A rule that a field cannot change once set; defaulting may still add it."""
    return f"!has(oldSelf{path}) || (has(self{path}) && self{path} == oldSelf{path})"


TOPOLOGY_CONSTRAINT = (
    rule(
        "has(self.pack) || has(self.packDomain)",
        "topologyConstraint must specify pack or deprecated packDomain",
        fieldPath=".pack",
        reason="FieldValueRequired",
    ),
    rule(
        "!(has(self.packDomain) && has(self.pack) && has(self.pack.required))",
        "must not set both pack.required and deprecated packDomain",
        fieldPath=".pack.required",
    ),
    # A missing name may be added beside a legacy packDomain, and packDomain may move to pack.required.
    rule(
        "(has(self.topologyName) ? self.topologyName : '') == (has(oldSelf.topologyName) ? oldSelf.topologyName : '') "
        "|| (!has(oldSelf.topologyName) && has(oldSelf.packDomain))",
        IMMUTABLE,
        fieldPath=".topologyName",
    ),
    rule(
        "(has(self.pack) && has(self.pack.required) ? self.pack.required : "
        "has(self.packDomain) ? self.packDomain : '') == "
        "(has(oldSelf.pack) && has(oldSelf.pack.required) ? oldSelf.pack.required : "
        "has(oldSelf.packDomain) ? oldSelf.packDomain : '') && (has(oldSelf.packDomain) || !has(self.packDomain))",
        IMMUTABLE,
    ),
    rule(
        "(has(self.pack) && has(self.pack.preferred) ? self.pack.preferred : '') == "
        "(has(oldSelf.pack) && has(oldSelf.pack.preferred) ? oldSelf.pack.preferred : '')",
        IMMUTABLE,
    ),
)

_CONSTRAINT_STAYS = rule(
    "has(self.topologyConstraint) == has(oldSelf.topologyConstraint)", IMMUTABLE, fieldPath=".topologyConstraint"
)

AUTOSCALING = (
    rule(
        "!has(self.minReplicas) || self.maxReplicas >= self.minReplicas",
        "must be greater than or equal to podCliqueSpec.minReplicas",
        fieldPath=".maxReplicas",
    ),
)

CLIQUE_TEMPLATE = (
    rule("self.spec.replicas > 0", "must be greater than 0", fieldPath=".spec.replicas"),
    rule(
        "!has(self.spec.minAvailable) || self.spec.minAvailable > 0",
        "must be greater than 0",
        fieldPath=".spec.minAvailable",
    ),
    rule(
        "!has(self.spec.minAvailable) || self.spec.minAvailable <= self.spec.replicas",
        "minAvailable must not be greater than replicas",
        fieldPath=".spec.minAvailable",
    ),
    rule(
        "!has(self.spec.autoScalingConfig) || !has(self.spec.autoScalingConfig.minReplicas) || "
        "!has(self.spec.minAvailable) || self.spec.autoScalingConfig.minReplicas >= self.spec.minAvailable",
        "must be greater than or equal to podCliqueSpec.minAvailable",
        fieldPath=".spec.autoScalingConfig.minReplicas",
    ),
    rule(
        "!has(self.spec.autoScalingConfig) || self.spec.autoScalingConfig.maxReplicas >= self.spec.replicas",
        "must be greater than or equal to replicas",
        fieldPath=".spec.autoScalingConfig.maxReplicas",
    ),
    rule(_settled(".spec.roleName"), IMMUTABLE, fieldPath=".spec.roleName"),
    rule(_settled(".spec.minAvailable"), IMMUTABLE, fieldPath=".spec.minAvailable"),
    rule(_same(".spec.startsAfter"), IMMUTABLE, fieldPath=".spec.startsAfter"),
    _CONSTRAINT_STAYS,
)

SCALING_GROUP = (
    rule("self.replicas > 0", "must be greater than 0", fieldPath=".replicas"),
    rule("self.minAvailable > 0", "must be greater than 0", fieldPath=".minAvailable"),
    rule(
        "self.minAvailable <= self.replicas",
        "minAvailable must not be greater than replicas",
        fieldPath=".minAvailable",
    ),
    rule(
        "!has(self.scaleConfig) || !has(self.scaleConfig.minReplicas) || "
        "self.scaleConfig.minReplicas >= self.minAvailable",
        "scaleConfig.minReplicas must be greater than or equal to minAvailable",
        fieldPath=".scaleConfig.minReplicas",
    ),
    rule("self.minAvailable == oldSelf.minAvailable", IMMUTABLE, fieldPath=".minAvailable"),
    rule("self.cliqueNames == oldSelf.cliqueNames", IMMUTABLE, fieldPath=".cliqueNames"),
    _CONSTRAINT_STAYS,
)

TEMPLATE = (
    rule(
        "self.cliques.all(c, !has(c.spec.roleName) || "
        "self.cliques.exists_one(d, has(d.spec.roleName) && d.spec.roleName == c.spec.roleName))",
        "role names must be unique",
        fieldPath=".cliques",
    ),
    rule(
        f"{_EXPLICIT} || self.cliques.all(c, !has(c.spec.startsAfter) || c.spec.startsAfter.all(n, n != c.name))",
        "clique dependency cannot refer to itself",
        fieldPath=".cliques",
    ),
    rule(
        f"{_EXPLICIT} || self.cliques.all(c, !has(c.spec.startsAfter) || "
        "c.spec.startsAfter.all(n, self.cliques.exists(d, d.name == n)))",
        "startsAfter must name cliques of this set",
        fieldPath=".cliques",
    ),
    rule(
        "!has(self.podCliqueScalingGroups) || self.podCliqueScalingGroups.all(g, "
        "g.cliqueNames.all(n, self.cliques.exists(c, c.name == n)))",
        "unidentified PodClique names found",
        fieldPath=".podCliqueScalingGroups",
    ),
    rule(
        "!has(self.podCliqueScalingGroups) || self.cliques.all(c, "
        "self.podCliqueScalingGroups.filter(g, c.name in g.cliqueNames).size() <= 1)",
        "a clique can be in one scaling group only",
        fieldPath=".podCliqueScalingGroups",
    ),
    rule(
        "!has(self.podCliqueScalingGroups) || self.cliques.all(c, !has(c.spec.autoScalingConfig) || "
        "!self.podCliqueScalingGroups.exists(g, c.name in g.cliqueNames))",
        "AutoScalingConfig is not allowed to be defined for PodClique that is part of scaling group",
        fieldPath=".cliques",
    ),
    rule("self.cliqueStartupType == oldSelf.cliqueStartupType", IMMUTABLE, fieldPath=".cliqueStartupType"),
    _forbidden(
        "self.cliques.size() == oldSelf.cliques.size() && "
        "self.cliques.all(c, oldSelf.cliques.exists(d, d.name == c.name))",
        "not allowed to change clique composition",
        ".cliques",
    ),
    rule(
        "self.cliqueStartupType == 'CliqueStartupTypeAnyOrder' || "
        "self.cliques.map(c, c.name) == oldSelf.cliques.map(c, c.name)",
        "clique order cannot be changed when StartupType is InOrder or Explicit",
        fieldPath=".cliques",
    ),
    _forbidden(
        "has(self.podCliqueScalingGroups) == has(oldSelf.podCliqueScalingGroups) && "
        "(!has(self.podCliqueScalingGroups) || "
        "(self.podCliqueScalingGroups.size() == oldSelf.podCliqueScalingGroups.size() && "
        "self.podCliqueScalingGroups.all(g, oldSelf.podCliqueScalingGroups.exists(h, h.name == g.name))))",
        "not allowed to add or remove PodCliqueScalingGroupConfigs",
        ".podCliqueScalingGroups",
    ),
    _CONSTRAINT_STAYS,
)

TERMINATION_DELAY = rule("duration(self) > duration('0s')", "terminationDelay must be greater than 0")


def _no_new_pack_domain(path: str, cel: str) -> Json:
    """A rule that a deprecated field may stay on old objects, but not be set on new ones."""
    message = "packDomain is deprecated and cannot be used on new workloads; use pack.required"
    return rule(
        f"oldSelf.hasValue() || {cel}",
        message,
        fieldPath=path,
        optionalOldSelf=True,
        reason="FieldValueForbidden",
    )


SET = (
    _no_new_pack_domain(
        ".spec.template.topologyConstraint.packDomain",
        "!has(self.spec.template.topologyConstraint) || !has(self.spec.template.topologyConstraint.packDomain)",
    ),
    _no_new_pack_domain(
        ".spec.template.cliques",
        "!has(self.spec.template.cliques) || self.spec.template.cliques.all(c, "
        "!has(c.topologyConstraint) || !has(c.topologyConstraint.packDomain))",
    ),
    _no_new_pack_domain(
        ".spec.template.podCliqueScalingGroups",
        "!has(self.spec.template.podCliqueScalingGroups) || self.spec.template.podCliqueScalingGroups.all(g, "
        "!has(g.topologyConstraint) || !has(g.topologyConstraint.packDomain))",
    ),
)
