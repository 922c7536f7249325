"""The runner of KAI's test cases reads everything that a case says."""

from __future__ import annotations

from typing import Any

import pytest

from spinney.testing.kai_cases import run_case

Json = dict[str, Any]


def case(expected: dict[str, str], tasks: list[list[Json]], job: Json | None = None, **fields: Any) -> Json:
    """A case with one node of four GPUs and one queue: jobs by their tasks, and the status expected of each job."""
    jobs = [
        {"Name": name, "Namespace": "test", "Priority": 50, "QueueName": "queue", "Tasks": own, **(job or {})}
        for name, own in zip(expected, tasks, strict=True)
    ]
    gpus = (job or {}).get("RequiredGPUsPerTask", 0)
    return {
        "runner": "rounds:allocate,consolidation,reclaim,preempt,stalegangeviction",
        "meta": {"RoundsUntilMatch": 1, "RoundsAfterMatch": 1},
        "case": {
            "Name": "case",
            "Jobs": jobs,
            "Nodes": {"node": {"GPUs": 4, "CPUMillis": 5000}},
            "Queues": [{"Name": "queue", "DeservedGPUs": 2, "MaxAllowedGPUs": 2}],
            "JobExpectedResults": {name: {"Status": status, "GPUsRequired": gpus} for name, status in expected.items()},
            "Mocks": {"CacheRequirements": {"NumberOfCacheBinds": 9}},
            **fields,
        },
    }


def devices(device_class: str, count: int, **claim: Any) -> Json:
    """A node with devices of a class, and a claim for all of them."""
    return {
        "DeviceClasses": [device_class],
        "ResourceSlices": [{"Name": "s", "DeviceClassName": device_class, "NodeName": "node", "Count": count}],
        "ResourceClaims": [
            {"Name": "claim", "Namespace": "test", "DeviceClassName": device_class, "Count": count, **claim}
        ],
    }


PENDING: Json = {"State": "Pending"}
CLAIMING: Json = {"State": "Pending", "ResourceClaimNames": ["claim"]}
OURS = {"kai.scheduler/queue": "queue"}


def consumers(count: int) -> Json:
    """The status of a claim that others use."""
    return {"ReservedFor": [{"Resource": "pods", "Name": f"pod-{number}"} for number in range(count)]}


@pytest.mark.parametrize(
    "entry",
    [
        pytest.param(
            case(
                {"first": "Running", "second": "Pending"},
                [[PENDING], [PENDING]],
                {"RequiredGPUsPerTask": 1, "RequiredCPUsPerTask": 2000},
                Departments=[{"Name": "department", "DeservedGPUs": 2, "MaxAllowedCPUs": 2500 * 1000}],
                Queues=[{"Name": "queue", "ParentQueue": "department", "DeservedGPUs": 2}],
            ),
            id="a department's CPU limit",
        ),
        pytest.param(
            case(
                {"first": "Running", "second": "Pending"},
                [[PENDING], [PENDING]],
                {"RequiredGPUsPerTask": 1, "RequiredMemoryPerTask": 2e9},
                Departments=[{"Name": "department", "DeservedGPUs": 2, "MaxAllowedMemory": 2500}],
                Queues=[{"Name": "queue", "ParentQueue": "department", "DeservedGPUs": 2}],
            ),
            id="a department's memory limit",
        ),
        pytest.param(
            case({"job": "Running"}, [[CLAIMING]], TestDRAObjects=devices("other-class", 3)),
            id="a claim that is not for GPUs needs no queue label and counts against no GPU limit",
        ),
        pytest.param(
            case({"job": "Pending"}, [[CLAIMING]], TestDRAObjects=devices("gpu.example.com", 1)),
            id="a GPU claim without a queue label",
        ),
        pytest.param(
            case(
                {"job": "Running"},
                [[CLAIMING] * 2],
                TestDRAObjects=devices("gpu.example.com", 1, Labels=OURS, ClaimStatus=consumers(254)),
            ),
            id="the last two consumers of a claim",
        ),
        pytest.param(
            case(
                {"job": "Pending"},
                [[CLAIMING] * 3],
                TestDRAObjects=devices("gpu.example.com", 1, Labels=OURS, ClaimStatus=consumers(254)),
            ),
            id="a gang with one consumer too many",
        ),
        pytest.param(
            case({"job": "Pending"}, [[{**PENDING, "PersistentVolumeClaimNames": ["data"]}]]),
            id="a volume claim that does not exist",
        ),
    ],
)
def test_what_a_case_says_counts(entry: Json) -> None:
    """The decisions are those that KAI's own test expects."""
    assert run_case(entry).differences == []
