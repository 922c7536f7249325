"""Draw the pictures of docs/users/concepts: boxes and arrows in SVG, readable on light and dark pages."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from pathlib import Path

FOLDER = Path(__file__).parent.parent / "docs" / "users" / "pictures"
_STYLE = """
.page { fill: #ffffff } .box { fill: #eef3f8; stroke: #5b6b7c } .ours { fill: #e2f0e4; stroke: #3f7a4c }
.waits { fill: #fbeede; stroke: #b0702a } .area { fill: none; stroke: #8a97a5; stroke-dasharray: 5 4 }
.line { fill: none; stroke: #5b6b7c; stroke-width: 1.5 } .head { fill: #5b6b7c }
text { fill: #1c2530; font: 14px system-ui, sans-serif } .small { font-size: 12px; fill: #4a5865 }
@media (prefers-color-scheme: dark) {
.page { fill: #171c22 } .box { fill: #26303a; stroke: #8fa1b3 } .ours { fill: #1f3a27; stroke: #6fbf82 }
.waits { fill: #45321b; stroke: #e0a35c } .area { stroke: #697684 } .line { stroke: #a9b8c6 } .head { fill: #a9b8c6 }
text { fill: #e8eef4 } .small { fill: #aebbc7 }
}
"""


class Picture:
    """A picture that is drawn piece by piece."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self._size = (width, height)
        self._title = title
        self._pieces: list[str] = []

    def box(
        self, x: int, y: int, text: str, below: str = "", kind: str = "box", *, size: tuple[int, int] = (150, 46)
    ) -> None:
        """A box with a word in it, and a smaller line below the word."""
        width, height = size
        self._pieces.append(f'<rect class="{kind}" x="{x}" y="{y}" width="{width}" height="{height}" rx="6"/>')
        middle = x + width // 2
        self.text(middle, y + height // 2 + (5 if not below else -3), text)
        if below:
            self.text(middle, y + height // 2 + 15, below, "small")

    def area(self, x: int, y: int, width: int, height: int, text: str) -> None:
        """A dashed frame around things that belong together."""
        self._pieces.append(f'<rect class="area" x="{x}" y="{y}" width="{width}" height="{height}" rx="8"/>')
        self._pieces.append(f'<text class="small" x="{x + 10}" y="{y + 18}">{escape(text)}</text>')

    def text(self, x: int, y: int, text: str, kind: str = "") -> None:
        """A line of text around a point."""
        mark = f' class="{kind}"' if kind else ""
        self._pieces.append(f'<text{mark} x="{x}" y="{y}" text-anchor="middle">{escape(text)}</text>')

    def arrow(self, *points: tuple[int, int]) -> None:
        """An arrow through some points."""
        path = " ".join(f"{x},{y}" for x, y in points)
        self._pieces.append(f'<polyline class="line" points="{path}" marker-end="url(#head)"/>')

    def svg(self) -> str:
        """The file."""
        width, height = self._size
        head = '<marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
        return "\n".join(
            (
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" width="{width}">',
                f"<title>{escape(self._title)}</title>",
                f"<style>{_STYLE}</style>",
                f'<defs>{head}<path class="head" d="M0,0 L8,4 L0,8 z"/></marker></defs>',
                f'<rect class="page" width="{width}" height="{height}" rx="10"/>',
                *self._pieces,
                "</svg>\n",
            )
        )


def set_to_pods() -> Picture:
    """What is created for a set."""
    picture = Picture(800, 300, "From a PodCliqueSet to pods")
    picture.box(20, 120, "PodCliqueSet", "replicas: 2", "ours")
    for index, y in enumerate((40, 210)):
        picture.arrow((170, 143), (195, 143), (195, y + 23), (220, y + 23))
        picture.box(222, y, f"PodGang model-{index}", "starts together", "ours")
        for row, clique in enumerate(("leader", "worker")):
            top = y - 18 + row * 52
            picture.arrow((372, y + 23), (395, y + 23), (395, top + 20), (415, top + 20))
            picture.box(417, top, f"PodClique {clique}", size=(150, 40))
            picture.arrow((567, top + 20), (598, top + 20))
            pods = "1 pod" if row == 0 else "4 pods, 3 needed"
            picture.box(600, top, pods, size=(180, 40))
    return picture


def gang_life() -> Picture:
    """The phases of a gang."""
    picture = Picture(820, 230, "The life of a gang")
    steps = [
        ("created", "pods behind a gate", "waits"),
        ("released", "gate removed", "box"),
        ("scheduled", "minimum has nodes", "box"),
        ("running", "minimum is ready", "ours"),
    ]
    for index, (word, below, kind) in enumerate(steps):
        x = 20 + index * 200
        picture.box(x, 40, word, below, kind, size=(160, 56))
        if index:
            picture.arrow((x - 40, 68), (x - 2, 68))
    picture.text(110, 120, "all pods exist, backend ready", "small")
    picture.text(300, 120, "waits in its queue", "small")
    picture.box(420, 150, "evicted", "reclaim, preempt", "waits", size=(160, 56))
    picture.arrow((700, 98), (700, 178), (582, 178))
    picture.arrow((420, 178), (300, 178), (300, 130))
    picture.text(700, 215, "also: below its minimum for too long", "small")
    return picture


def queues() -> Picture:
    """Quota, fair share and what is borrowed."""
    picture = Picture(800, 330, "Queues and fair share")
    picture.box(310, 20, "all GPUs: 32", "", "box", size=(180, 40))
    for x, name, quota in ((90, "research", "quota 16, weight 1"), (530, "product", "quota 8, weight 3")):
        picture.arrow((400, 60), (400, 80), (x + 90, 80), (x + 90, 100))
        picture.box(x, 102, name, quota, "ours", size=(180, 52))
    picture.text(
        400, 190, "first the quotas: 16 and 8; then the other 8 by weight: 2 and 6; together the fair share: 18 and 14"
    )
    for x, share, color in ((40, 16, "ours"), (424, 8, "ours")):
        picture.box(x, 215, "quota", f"{share} GPUs", color, size=(share * 12, 46))
    picture.box(40 + 192, 215, "", "", "waits", size=(24, 46))
    picture.box(424 + 96, 215, "rest", "6 GPUs", "waits", size=(72, 46))
    picture.text(244, 280, "rest: 2", "small")
    picture.text(
        400,
        312,
        "What a queue does not need goes to the others. They give it back when it is needed: reclaim.",
        "small",
    )
    return picture


def topology() -> Picture:
    """Levels and domains."""
    picture = Picture(800, 300, "Topology: zones, blocks, racks, hosts")
    picture.area(20, 20, 760, 260, "zone-0")
    for block in range(2):
        left = 40 + block * 370
        picture.area(left, 50, 350, 215, f"block-{block}")
        for rack in range(2):
            x = left + 15 + rack * 165
            picture.area(x, 80, 155, 170, f"rack-{block * 2 + rack}")
            for host in range(2):
                here = block == 0 and rack == 1
                below = "pod of the gang" if here else "8 GPUs"
                number = (block * 2 + rack) * 2 + host
                picture.box(
                    x + 12, 110 + host * 66, f"node-0{number}", below, "ours" if here else "box", size=(131, 50)
                )
    return picture


def conversations() -> Picture:
    """Which component reads and writes what."""
    picture = Picture(820, 400, "Who talks to whom")
    picture.box(300, 170, "API server", "all state is here", "box", size=(220, 60))
    around = [
        (30, 30, "you", "kubectl, spinney", "box"),
        (320, 30, "grove", "sets → gangs, pods", "ours"),
        (610, 30, "backends", "gang → PodGroup", "ours"),
        (30, 177, "pod grouper", "Jobs … → PodGroup", "ours"),
        (610, 177, "scheduler", "→ BindRequests", "ours"),
        (30, 324, "kubelets", "run pods", "box"),
        (320, 324, "binder", "BindRequest → bound", "ours"),
        (610, 324, "queues, podgroups", "status, quotas", "ours"),
    ]
    ends = [(330, 170), (400, 170), (490, 170), (300, 200), (520, 200), (330, 230), (400, 230), (490, 230)]
    for (x, y, word, below, kind), end in zip(around, ends, strict=True):
        picture.box(x, y, word, below, kind, size=(180, 52))
        edge = (
            x + 180 if end[0] == 300 else x if end[0] == 520 else x + 90,
            y + 52 if y < 100 else y if y > 300 else y + 26,
        )
        picture.arrow(edge, end)
    return picture


PICTURES: dict[str, Callable[[], Picture]] = {
    "set-to-pods.svg": set_to_pods,
    "gang-life.svg": gang_life,
    "queues.svg": queues,
    "topology.svg": topology,
    "conversations.svg": conversations,
}


if __name__ == "__main__":
    for name, draw in PICTURES.items():
        (FOLDER / name).write_text(draw().svg())
