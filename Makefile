# The two commands of the README are `make demo` and `make test`; everything else serves them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
ARGS ?=

.PHONY: setup demo test faults lint format bench chart controlplane schedulers cluster image lock clean
setup: $(STAMP)

$(STAMP): requirements.lock pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements.lock
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps -e .
	@touch $@

demo: setup
	@$(BIN)/spinney demo $(ARGS)

# Builds the real control plane and what a real cluster needs first, once; where that is impossible the tests say so.
test: setup
	@$(BIN)/python -m spinney.testing.build >/dev/null || true
	@$(BIN)/python -m spinney.testing.cluster --build || true
	@$(BIN)/python -m pytest $(ARGS)

# A fault at every write of every scenario, and several faults from seeds (about 10 minutes on 2 cores).
faults: setup
	@$(BIN)/spinney faults --seeds 12 $(ARGS)

lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# Each writes its numbers and a chart to benchmarks/out or prints them; `make bench BENCH=api` runs one of them.
BENCH ?= api podcliquesets end_to_end scheduler backends kube
bench: setup
	@for name in $(BENCH); do echo "== $$name"; $(BIN)/python benchmarks/$$name.py $(ARGS) || exit 1; done

# The Helm chart, from the description of the installation in src/spinney/app/install.
chart: setup
	@$(BIN)/python scripts/chart.py

# etcd, the Kubernetes control plane and kubectl, built once per version into the user's cache folder.
controlplane: setup
	@$(BIN)/python -m spinney.testing.build $(VERSION)

# Volcano, Koordinator and YuniKorn, built once per version into the same folder; `make schedulers NAMES=volcano` builds one.
schedulers: setup
	@$(BIN)/python -m spinney.testing.schedulers.build $(NAMES)

# A real cluster on this machine, until Ctrl-C: make cluster ARGS="--nodes 2 --kubeconfig FILE". ARGS=--down stops it.
cluster: setup
	@$(BIN)/python -m spinney.testing.cluster $(ARGS)

# The container image and its parts list, into dist/, without a registry; as root, on Debian with buildah and mmdebstrap.
image: setup
	@$(BIN)/python -m spinney.testing.images

# Locks with hashes and for every platform: for development, for the image, and for building the image.
LOCK = $(BIN)/uv pip compile --quiet --universal --generate-hashes --no-header --no-emit-index-url
lock: setup
	$(LOCK) --group dev --all-extras pyproject.toml -o requirements.lock
	$(LOCK) --extra image pyproject.toml --constraint requirements.lock -o deploy/requirements.lock
	$(LOCK) --group build -o deploy/build.lock

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache
