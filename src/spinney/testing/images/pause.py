"""The pause image: the program that holds a pod's namespaces, static and smaller than a megabyte."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from spinney.testing.golang import Unavailable, cache_folder
from spinney.testing.images.buildah import buildah, container, save

NAME = "localhost/pause:1"
_SOURCE = """
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void leave(int signal) { _exit(0); }

/* The first process of a pod inherits orphans of the others when they share its process namespace. */
static void reap(int signal) { while (waitpid(-1, NULL, WNOHANG) > 0); }

int main(void) {
  struct sigaction leaving = {.sa_handler = leave}, reaping = {.sa_handler = reap, .sa_flags = SA_NOCLDSTOP};
  sigaction(SIGINT, &leaving, NULL);
  sigaction(SIGTERM, &leaving, NULL);
  sigaction(SIGCHLD, &reaping, NULL);
  for (;;) pause();
}
"""


def pause_archive() -> Path:
    """The archive of the pause image, built first where it is not there yet."""
    archive = cache_folder() / "images" / "pause-1.tar"
    if archive.exists():
        return archive
    if shutil.which("gcc") is None:
        raise Unavailable("the pause image needs a C compiler: apt-get install gcc libc6-dev")
    with tempfile.TemporaryDirectory() as scratch:
        program = Path(scratch) / "pause"
        command = ["gcc", "-static", "-Os", "-s", "-x", "c", "-", "-o", str(program)]
        done = subprocess.run(command, input=_SOURCE, check=False, capture_output=True, text=True)
        if done.returncode != 0:
            raise Unavailable(f"the pause program does not compile: {done.stderr.strip()}")
        with container("scratch") as made:
            buildah("add", "--quiet", made, str(program), "/pause")
            buildah("config", "--entrypoint", '["/pause"]', "--user", "65535:65535", made)
            buildah("commit", "--quiet", made, NAME)
    save(NAME, archive, NAME)
    return archive
