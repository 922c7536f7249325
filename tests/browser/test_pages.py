"""Each page of the dashboard shows what the API says, and follows it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
import pytest_asyncio
import yaml
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, expect

from spinney.api.batch import Job
from spinney.api.core import Node, Pod
from spinney.api.grove import PodCliqueSet
from spinney.api.storage import StorageClass
from spinney.app.laptop import Laptop, Options, laptop
from spinney.cli.demo import apply_file
from spinney.embedded.nodes.profile import Profile
from spinney.sim.expansion import expand
from spinney.web.settings import DashboardSettings, Limits
from tests import make
from tests.browser.browser import launched, visiting
from tests.waiting import cache_until

pytestmark = pytest.mark.asyncio(loop_scope="module")

expect.set_options(timeout=60_000)

PAGES = ("/", "/map", "/workloads", "/queues", "/waiting", "/evictions", "/what-if", "/history")
INFERENCE = "/workloads/default/podcliqueset.grove.io/inference"
STEPS = ["created", "gated", "released", "decided", "bound", "ready"]
TOO_LARGE = "/workloads/default/podcliqueset.grove.io/too-large"


# The map once everything that changed is drawn: a few frames later.
PICTURE = """() => new Promise((done) => {
  const picture = () => done(document.querySelector("canvas").toDataURL());
  const wait = (frames) => requestAnimationFrame(() => frames ? wait(frames - 1) : picture());
  wait(10);
})"""


@dataclass
class Stage:
    """A cluster with the workloads of the demo, and a browser beside it."""

    running: Laptop
    browser: Browser

    @property
    def link(self) -> str:
        """Where the dashboard is."""
        return self.running.dashboard


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stage() -> AsyncIterator[Stage]:
    """Three workloads that run and one that cannot, on 32 nodes in 4 racks."""
    options = Options(
        nodes=Profile(count=32, racks=4),
        dashboard=DashboardSettings(port=0, limits=Limits(requests_per_second=1000.0, burst=10000)),
        expand=expand,
    )
    async with launched() as browser, laptop(options) as running:
        for name in ("1-inference", "2-evaluation", "3-training", "4-too-large"):
            await apply_file(running.client, name)
        pods = running.cluster.caches.of(Pod)
        await cache_until(lambda: sum(pod.status.phase == "Running" for pod in pods) == 19, pods)
        yield Stage(running, browser)


async def test_the_overview_counts_what_there_is(stage: Stage) -> None:
    """GPUs in use and asked for, queues, and why the rest is idle."""
    async with visiting(stage.browser, stage.link) as visit:
        page = await visit.to("/")
        await expect(page.locator(".figure", has_text="GPUs in use")).to_contain_text("52")
        await expect(page.locator(".figure", has_text="GPUs asked for")).to_contain_text("96")
        await expect(page.locator("main")).to_contain_text("1 waiting, 3 running")
        await expect(page.get_by_role("link", name="default-queue")).to_be_visible()
        await expect(page.locator("main")).to_contain_text("Unschedulable")


async def test_workloads_of_every_kind_are_listed_sorted_and_found(stage: Stage) -> None:
    """The search and the order are in the address, so that they can be sent to somebody."""
    async with visiting(stage.browser, stage.link) as visit:
        page = await visit.to("/workloads")
        rows = page.locator("tbody tr")
        await expect(rows).to_have_count(4)
        await page.get_by_role("button", name="GPUs").click()
        await page.get_by_role("button", name="GPUs").click()
        await expect(rows.first).to_contain_text("too-large")
        assert "sort=-gpus" in page.url
        await page.get_by_role("searchbox").fill("train")
        await expect(rows).to_have_count(1)
        await expect(rows.first).to_contain_text("job/training")
        await page.reload()
        await expect(rows).to_have_count(1)


async def test_a_list_follows_the_cluster(stage: Stage) -> None:
    """What is created appears by itself, and goes again."""
    async with visiting(stage.browser, stage.link) as visit:
        page = await visit.to("/workloads")
        await expect(page.locator("tbody tr")).to_have_count(4)
        await stage.running.client.create(Job, _job("newcomer"), "default")
        await expect(page.get_by_role("link", name="job/newcomer")).to_be_visible()
        await expect(page.locator("tbody tr", has_text="newcomer")).to_contain_text("Running")
        await stage.running.client.delete(Job, ("default", "newcomer"), propagation="Background")
        await expect(page.locator("tbody tr", has_text="newcomer")).to_have_count(0)


async def test_the_map_shows_nodes_and_who_uses_a_gpu(stage: Stage) -> None:
    """By keyboard: arrows choose a GPU, Enter opens its workload."""
    async with visiting(stage.browser, stage.link) as visit:
        page = await visit.to("/map")
        await expect(page.locator("main")).to_contain_text("32 nodes · 52 of 256 GPUs in use")
        await page.locator("canvas").focus()
        await page.keyboard.press("ArrowDown")
        await expect(page.locator(".inspect h2")).to_have_text("node-00")
        assert "node=node-00" in page.url
        sharer = page.locator(".inspect a").first
        name = await sharer.inner_text()
        await page.locator("canvas").focus()
        await page.keyboard.press("Enter")
        await expect(page.locator("h1")).to_have_text(name.partition("/")[2])


async def test_a_selected_gpu_is_zoomed_to_and_left_by_escape(stage: Stage) -> None:
    """From the map and from its panel; the focus returns to the map."""
    async with visiting(stage.browser, stage.link) as visit:
        page = await visit.to("/map?node=node-00&gpu=0")
        await expect(page.locator(".inspect h2")).to_have_text("node-00")
        before = await page.evaluate(PICTURE)
        await page.locator("canvas").focus()
        await page.keyboard.press("+")
        assert before != await page.evaluate(PICTURE)
        await page.locator(".inspect button").focus()
        await page.keyboard.press("Escape")
        await expect(page.locator(".inspect")).to_have_count(0)
        await expect(page.locator("canvas")).to_be_focused()
        await page.keyboard.press("ArrowDown")
        await expect(page.locator(".inspect")).to_be_visible()
        await page.keyboard.press("Escape")
        await expect(page.locator(".inspect")).to_have_count(0)


@pytest.mark.parametrize(
    ("path", "selector", "text"),
    [
        ("/map?colour=priority&q=train&node=node-01&gpu=3", ".inspect h2", "node-01"),
        ("/workloads?phase=Waiting&sort=-gpus", "tbody tr", "too-large"),
        ("/queues?queue=default-queue&resource=cpu&course=share", "section h2", "GPUs of default-queue"),
        ("/waiting", "tbody tr", "too-large"),
        ("/evictions", "h1", "Evictions"),
        ('/what-if?changes=[{"type":"addNodes","count":1,"gpus":8}]', ".verdict", "would"),
        (INFERENCE, "h1", "inference"),
    ],
)
async def test_every_view_can_be_sent_and_returned_to(stage: Stage, path: str, selector: str, text: str) -> None:
    """Its address shows it again after a reload, and with the back button."""
    async with visiting(stage.browser, stage.link) as visit:
        page = await visit.to(path)
        address = page.url
        for act in (page.reload, None):
            if act is not None:
                await act()
            else:
                await page.get_by_role("link", name="Overview", exact=True).click()
                await expect(page.locator("h1")).to_have_text("Overview")
                await page.go_back()
            await expect(page.locator(selector).first).to_contain_text(text)
            assert page.url == address


async def test_a_node_that_is_cordoned_is_told(stage: Stage) -> None:
    """And that it is no longer."""
    async with visiting(stage.browser, stage.link) as visit:
        page = await visit.to("/map?node=node-31")
        await expect(page.locator(".inspect")).to_contain_text("ready")
        await stage.running.client.patch(Node, "node-31", {"spec": {"unschedulable": True}})
        await expect(page.locator(".sub")).to_contain_text("1 cordoned")
        await stage.running.client.patch(Node, "node-31", {"spec": {"unschedulable": False}})
        await expect(page.locator(".sub")).not_to_contain_text("cordoned")


async def test_a_map_that_follows_shows_what_one_drawn_anew_does(stage: Stage) -> None:
    """Only nodes that changed are drawn; not a pixel differs from drawing everything."""
    async with visiting(stage.browser, stage.link) as visit:
        page = await visit.to("/map")
        await expect(page.locator(".sub")).to_contain_text("32 nodes")
        empty = await page.evaluate(PICTURE)
        for name in ("node-00", "node-17"):
            await stage.running.client.patch(Node, name, {"spec": {"unschedulable": True}})
        await expect(page.locator(".sub")).to_contain_text("2 cordoned")
        followed = await page.evaluate(PICTURE)
        await page.get_by_role("button", name="Show everything").click()
        assert followed == await page.evaluate(PICTURE)
        assert followed != empty
        for name in ("node-00", "node-17"):
            await stage.running.client.patch(Node, name, {"spec": {"unschedulable": False}})
        await expect(page.locator(".sub")).not_to_contain_text("cordoned")
        assert empty == await page.evaluate(PICTURE)


async def test_queues_show_their_amounts(stage: Stage) -> None:
    """As a tree: the parent holds what its child uses."""
    async with visiting(stage.browser, stage.link) as visit:
        page = await visit.to("/queues")
        for name in ("default-parent-queue", "default-queue"):
            row = page.locator("tbody tr", has=page.get_by_role("link", name=name, exact=True))
            await expect(row).to_contain_text("unlimited")
            await expect(row).to_contain_text("96")


async def test_what_waits_says_why_and_what_helps(stage: Stage) -> None:
    """In the words of `spinney explain`."""
    async with visiting(stage.browser, stage.link) as visit:
        page = await visit.to("/waiting")
        row = page.locator("tbody tr", has_text="too-large")
        await expect(row).to_contain_text("12 pods must share one kubernetes.io/rack")
        await expect(row.locator(".advice").first).to_be_visible()


async def test_a_workload_shows_its_parts_and_how_far_they_got(stage: Stage) -> None:
    """Its cliques with their minimums, where each pod is, and the steps."""
    async with visiting(stage.browser, stage.link) as visit:
        page = await visit.to(INFERENCE)
        await expect(page.locator(".figure", has_text="Pods ready")).to_contain_text("13/13")
        await expect(page.locator(".tree")).to_contain_text("inference-0-decode")
        await expect(page.locator(".tree")).to_contain_text("8/8 ready, at least 4")
        await expect(page.locator(".tree a").first).to_contain_text("node-")
        steps = page.locator(".timeline li")
        await expect(page.locator(".timeline .step")).to_have_text(STEPS)
        for step in range(len(STEPS)):
            await expect(steps.nth(step)).to_contain_text("13 of 13 pods")
        await expect(page.locator(".feed")).to_contain_text("BackendChosen")


async def test_a_workload_that_waits_says_what_would_help(stage: Stage) -> None:
    """Its place in line, why, and advice."""
    async with visiting(stage.browser, stage.link) as visit:
        page = await visit.to(TOO_LARGE)
        await expect(page.locator(".figure", has_text="Place in line")).to_contain_text("1")
        await expect(page.locator(".why-box")).to_contain_text("12 pods must share one kubernetes.io/rack")
        await expect(page.locator(".why-box")).to_contain_text("What would help")


async def test_the_time_machine_shows_an_earlier_moment(stage: Stage) -> None:
    """A Job that is gone is there again at the moment when it was."""
    client = stage.running.client
    async with visiting(stage.browser, stage.link) as visit:
        page = await visit.to("/workloads")
        await client.create(Job, _job("short-lived"), "default")
        await expect(page.get_by_role("link", name="job/short-lived")).to_be_visible()
        # The record of it: at most one in two seconds is kept.
        await expect(page.locator("tbody tr", has_text="short-lived")).to_contain_text("Running")
        history = stage.link + "api/v1/history/range"
        await page.wait_for_function(
            """async ([url, created]) => (await (await fetch(url)).json()).to > created""",
            arg=[
                history,
                await page.locator("tbody tr", has_text="short-lived").locator("time").get_attribute("datetime"),
            ],
            polling=500,
        )
        moment = await page.evaluate("async (url) => (await (await fetch(url)).json()).to", history)
        await client.delete(Job, ("default", "short-lived"), propagation="Background")
        await expect(page.locator("tbody tr", has_text="short-lived")).to_have_count(0)
        await visit.to(f"/workloads?at={moment}")
        await expect(page.get_by_role("link", name="job/short-lived")).to_be_visible()
        await expect(page.locator(".live")).to_contain_text("At ")
        await visit.to(f"/history?at={moment}")
        await expect(page.get_by_role("slider")).to_be_visible()
        await expect(page.locator(".map canvas")).to_be_visible()


@pytest.mark.parametrize("dark", [False, True])
async def test_nothing_keeps_anybody_out(stage: Stage, dark: bool) -> None:
    """axe-core finds nothing serious on any page, in either theme."""
    async with visiting(stage.browser, stage.link, dark=dark) as visit:
        for path in (*PAGES, INFERENCE, TOO_LARGE):
            page = await visit.to(path)
            await expect(page.locator("[aria-busy]")).to_have_count(0)
            # What does not depend on colours is the same in both.
            results = await Axe().run(page, options={"runOnly": ["color-contrast"]} if dark else None)
            serious = [each for each in results.response["violations"] if each["impact"] in ("serious", "critical")]
            assert [(path, each["id"], each["nodes"][0]["html"]) for each in serious] == []


async def test_a_phone_shows_every_page_without_scrolling_sideways(stage: Stage) -> None:
    """Wide tables scroll inside their own box."""
    async with visiting(stage.browser, stage.link, width=390) as visit:
        for path in (*PAGES, INFERENCE):
            page = await visit.to(path)
            await expect(page.locator("[aria-busy]")).to_have_count(0)
            assert await page.evaluate("document.documentElement.scrollWidth") <= 390, path


async def test_a_what_if_is_asked_by_form_and_by_address(stage: Stage) -> None:
    """The difference is told, and the question can be sent to somebody."""
    async with visiting(stage.browser, stage.link) as visit:
        page = await visit.to("/what-if")
        await page.get_by_label("How many, change 1").fill("12")
        await page.get_by_role("button", name="Ask").click()
        await expect(page.locator("main")).to_contain_text("If you add 12 nodes with 8 GPUs:")
        await expect(page.locator(".verdict")).to_contain_text("would")
        await page.reload()
        await expect(page.get_by_label("How many, change 1")).to_have_value("12")
        await expect(page.locator(".verdict")).to_contain_text("would")
        await page.get_by_label("Kind of change 1").select_option("drainNode")
        await page.get_by_label("Node, change 1").fill("node-99")
        await page.get_by_role("button", name="Ask").click()
        await expect(page.get_by_role("alert")).to_contain_text("there is no node node-99")
        # The refusal is a status that the browser itself reports.
        visit.errors = [error for error in visit.errors if "400" not in error]


async def test_a_manifest_is_tried_before_it_is_applied(stage: Stage) -> None:
    """A pasted workload starts in the copy only; one that is no YAML is told with its line."""
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "pasted", "labels": {"kai.scheduler/queue": "default-queue"}},
        "spec": {
            "parallelism": 2,
            "template": {
                "spec": {
                    "schedulerName": "kai-scheduler",
                    "restartPolicy": "Never",
                    "containers": [{"name": "c", "image": "i", "resources": {"limits": {"nvidia.com/gpu": 4}}}],
                }
            },
        },
    }
    async with visiting(stage.browser, stage.link) as visit:
        page = await visit.to("/what-if")
        await page.get_by_label("Kind of change 1").select_option("create")
        await page.get_by_label("Manifest, change 1").fill(yaml.safe_dump(job))
        await page.get_by_role("button", name="Ask").click()
        await expect(page.locator("main")).to_contain_text("If you create job/pasted:")
        await expect(page.get_by_role("region", name="What would be different")).to_contain_text("2 pods, 8 GPUs on")
        await page.get_by_label("Manifest, change 1").fill("kind: Job\n  name: {")
        await page.get_by_role("button", name="Ask").click()
        await expect(page.get_by_role("alert")).to_contain_text("the manifest is not YAML: line 2")
        visit.errors = [error for error in visit.errors if "400" not in error]
    assert not [job for job in (await stage.running.client.list(Job)).items if job.name == "pasted"]


async def test_what_a_what_if_assumes_is_on_the_page(stage: Stage) -> None:
    """`spinney whatif` said where a volume is taken to be provisioned, and the page did not."""
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data"},
        "spec": {
            "storageClassName": "fast",
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    at_once = {"metadata": {"name": "fast"}, "provisioner": "csi.example.com", "volumeBindingMode": "Immediate"}
    await stage.running.client.create(StorageClass, at_once)
    pod = make.pod("reader").scheduler("kai-scheduler").build()
    pod["metadata"]["labels"] = {"kai.scheduler/queue": "default-queue"}
    pod["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    pod = {"apiVersion": "v1", "kind": "Pod", **pod}
    async with visiting(stage.browser, stage.link) as visit:
        page = await visit.to("/what-if")
        await page.get_by_label("Kind of change 1").select_option("create")
        await page.get_by_label("Manifest, change 1").fill(yaml.safe_dump_all([claim, pod]))
        await page.get_by_role("button", name="Ask").click()
        await expect(page.locator(".assumed")).to_contain_text("Assumed: The volume that is provisioned for claim data")


async def test_tables_and_pictures_can_be_taken_along(stage: Stage) -> None:
    """As CSV and PNG."""
    async with visiting(stage.browser, stage.link) as visit:
        page = await visit.to("/workloads")
        async with page.expect_download() as saved:
            await page.get_by_role("button", name="Save as CSV").click()
        lines = (await (await saved.value).path()).read_text().splitlines()
        assert lines[0].startswith("Workload,Namespace,Phase")
        assert len(lines) == 5
        page = await visit.to("/map")
        await page.locator("canvas").focus()
        async with page.expect_download() as saved:
            await page.get_by_role("button", name="Save as PNG").click()
        assert (await (await saved.value).path()).read_bytes().startswith(b"\x89PNG")


async def test_every_page_is_reached_by_keyboard(stage: Stage) -> None:
    """Tab goes through the links, Enter follows one, and the focus is in the page afterwards."""
    async with visiting(stage.browser, stage.link) as visit:
        page = await visit.to("/workloads")
        await page.keyboard.press("/")
        await expect(page.get_by_role("searchbox")).to_be_focused()
        page = await visit.to("/")
        for _ in range(4):
            await page.keyboard.press("Tab")
        await expect(page.locator(":focus")).to_have_text("Cluster map")
        await page.keyboard.press("Enter")
        await expect(page.locator("h1")).to_have_text("Cluster map")
        await expect(page.locator("main")).to_be_focused()


async def test_a_set_that_is_deleted_leaves_the_map(stage: Stage) -> None:
    """Last, since others look at it."""
    async with visiting(stage.browser, stage.link) as visit:
        page = await visit.to("/map")
        await stage.running.client.delete(PodCliqueSet, ("default", "inference"))
        await expect(page.locator(".sub")).to_contain_text("20 of 256 GPUs in use")


def _job(name: str) -> dict[str, object]:
    container = {"name": "main", "image": "x"}
    return {
        "metadata": {"name": name},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}},
    }
