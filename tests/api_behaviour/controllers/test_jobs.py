"""Jobs that end early, late or in part; each check on both servers."""

from __future__ import annotations

from typing import Any

from tests.api_behaviour.paths import pods
from tests.api_behaviour.wire import Answer, Api, Json
from tests.api_behaviour.workloads import condition, count, is_true, job, jobs, listed, set_phase

INDEX = "batch.kubernetes.io/job-completion-index"
FAILURES = "batch.kubernetes.io/job-index-failure-count"


async def indexed(api: Api, namespace: str, completions: int, **spec: Any) -> dict[str, str]:
    """Make an indexed job, and wait for its pods; their names by index."""
    body = job(completionMode="Indexed", completions=completions, parallelism=completions, **spec)
    (await api.post(jobs(namespace), body)).ok()
    items = await listed(api, pods(namespace), completions)
    return {item["metadata"]["labels"][INDEX]: item["metadata"]["name"] for item in items}


def why(body: Json, kind: str) -> tuple[str, str]:
    """Reason and message of a condition that holds."""
    held = condition(body, kind)
    assert held is not None
    assert held["status"] == "True"
    return held["reason"], held["message"]


async def test_success_policy(api: Api, namespace: str) -> None:
    """A job is done as soon as its success policy says so; what still runs goes, and nothing has failed."""
    names = await indexed(api, namespace, 3, successPolicy={"rules": [{"succeededIndexes": "1"}]})
    await set_phase(api, namespace, names["1"], "Succeeded")
    body = (await api.until(f"{jobs(namespace)}/j", is_true("Complete"))).ok()
    reason = ("SuccessPolicy", "Matched rules at index 0")
    assert why(body, "SuccessCriteriaMet") == why(body, "Complete") == reason
    assert (body["status"]["completedIndexes"], body["status"]["succeeded"]) == ("1", 1)
    assert not body["status"].get("failed")
    await listed(api, pods(namespace), 1)


async def test_success_by_number(api: Api, namespace: str) -> None:
    """A success policy may ask for any so many indexes."""
    names = await indexed(api, namespace, 2, successPolicy={"rules": [{"succeededCount": 1}]})
    await set_phase(api, namespace, names["0"], "Succeeded")
    body = (await api.until(f"{jobs(namespace)}/j", is_true("Complete"))).ok()
    assert why(body, "Complete") == ("SuccessPolicy", "Matched rules at index 0")


async def test_index_fails_by_itself(api: Api, namespace: str) -> None:
    """With a limit per index, one index may fail while the others go on; then the job fails in the end."""
    names = await indexed(api, namespace, 2, backoffLimitPerIndex=0)
    pod = (await api.get(f"{pods(namespace)}/{names['0']}")).ok()
    assert pod["metadata"]["annotations"][FAILURES] == "0"
    await set_phase(api, namespace, names["0"], "Failed", code=1)
    path = f"{jobs(namespace)}/j"
    body = (await api.until(path, lambda answer: answer.body["status"].get("failedIndexes") == "0")).ok()
    assert condition(body, "Failed") is None
    await set_phase(api, namespace, names["1"], "Succeeded")
    body = (await api.until(path, is_true("Failed"))).ok()
    assert why(body, "Failed") == ("FailedIndexes", "Job has failed indexes")
    assert (body["status"]["completedIndexes"], body["status"]["failedIndexes"]) == ("1", "0")


async def test_most_failed_indexes(api: Api, namespace: str) -> None:
    """A job gives up when more indexes have failed than may."""
    names = await indexed(api, namespace, 2, backoffLimitPerIndex=0, maxFailedIndexes=0)
    await set_phase(api, namespace, names["0"], "Failed", code=1)
    body = (await api.until(f"{jobs(namespace)}/j", is_true("Failed"))).ok()
    message = "Job has exceeded the specified maximal number of failed indexes"
    assert why(body, "Failed") == ("MaxFailedIndexesExceeded", message)


async def test_fewer_at_once(api: Api, namespace: str) -> None:
    """Pods that a job gives up for a lower parallelism have not failed."""
    path = f"{jobs(namespace)}/j"
    (await api.post(jobs(namespace), job(parallelism=3, completions=5))).ok()
    await listed(api, pods(namespace), 3)
    (await api.merge(path, {"spec": {"parallelism": 1}})).ok()
    await listed(api, pods(namespace), 1)

    def settled(answer: Answer) -> bool:
        status = answer.body["status"]
        return status.get("active") == 1 and not status.get("terminating")

    status = (await api.until(path, settled)).ok()["status"]
    assert not status.get("failed")
    assert status["uncountedTerminatedPods"] == {}


async def test_deadline(api: Api, namespace: str) -> None:
    """A job that lasts too long fails, and with it the pods that still ran."""
    (await api.post(jobs(namespace), job(activeDeadlineSeconds=1))).ok()
    body = (await api.until(f"{jobs(namespace)}/j", is_true("Failed"))).ok()
    assert why(body, "Failed") == ("DeadlineExceeded", "Job was active longer than specified deadline")
    assert why(body, "FailureTarget") == why(body, "Failed")
    assert body["status"]["failed"] == 1
    await api.until(pods(namespace), count(0))


async def test_suspended_again(api: Api, namespace: str) -> None:
    """A job that is suspended while it runs keeps its start, and its pods have not failed."""
    path = f"{jobs(namespace)}/j"
    (await api.post(jobs(namespace), job())).ok()
    await listed(api, pods(namespace), 1)
    (await api.until(path, lambda answer: answer.body["status"].get("active") == 1)).ok()
    (await api.merge(path, {"spec": {"suspend": True}})).ok()
    await api.until(pods(namespace), count(0))
    body = (await api.until(path, is_true("Suspended"))).ok()
    assert body["status"]["startTime"]
    assert not body["status"].get("failed")


async def test_failure_is_ignored(api: Api, namespace: str) -> None:
    """A failure that the policy ignores is replaced and does not count."""
    rule = {"action": "Ignore", "onExitCodes": {"operator": "In", "values": [7]}}
    (await api.post(jobs(namespace), job(backoffLimit=0, podFailurePolicy={"rules": [rule]}))).ok()
    (first,) = await listed(api, pods(namespace), 1)
    await set_phase(api, namespace, first["metadata"]["name"], "Failed", code=7)
    await listed(api, pods(namespace), 2)
    body = (await api.get(f"{jobs(namespace)}/j")).ok()
    assert condition(body, "Failed") is None
    assert not body["status"].get("failed")
