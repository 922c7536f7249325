# The two commands of the README are `make demo` and `make test`; everything else serves them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
ARGS ?=

.PHONY: setup demo test faults faults-real lint format fuzz audit bench chart screenshots reference docs controlplane schedulers cluster image lock clean
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
# Files run on two workers; tests/conftest.py says in which order. With ARGS, only what they name.
test: setup
	@$(BIN)/python -m spinney.testing.build >/dev/null || true
	@$(BIN)/python -m spinney.testing.cluster --build || true
ifeq ($(ARGS),)
	@$(BIN)/python -m pytest -n 2
else
	@$(BIN)/python -m pytest $(ARGS)
endif

# Mistakes in every component, which must be noticed; then a fault at every write of every scenario, and several from seeds.
faults: setup
	@$(BIN)/python -m tests.faults.mutations
	@$(BIN)/spinney faults --seeds 12 $(ARGS)

# Ten minutes of load on the real API server, while every process is killed in turn, and disks are slow and full.
# ARGS=--kubelets: on a real cluster, where kubelets start the containers again.
faults-real: setup
	@$(BIN)/python -m tests.real_faults $(ARGS)

lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# 50,000 hostile inputs, guided by coverage, for everything that reads what others wrote; ARGS="--first 50000" goes on.
fuzz: setup
	@$(BIN)/python -m tests.fuzz $(ARGS)

# Known vulnerabilities of the locked dependencies; needs the network, and says so without it.
audit: setup
	@$(BIN)/python scripts/audit.py $(BIN)

# Each writes its numbers and a chart to benchmarks/out or prints them; `make bench BENCH=api` runs one of them.
BENCH ?= api podcliquesets end_to_end scheduler backends kube dashboard
bench: setup
	@for name in $(BENCH); do echo "== $$name"; $(BIN)/python benchmarks/$$name.py $(ARGS) || exit 1; done

# The Helm chart, from the description of the installation in src/spinney/app/install.
chart: setup
	@$(BIN)/python scripts/chart.py

# docs/users/reference from the code, and the pictures of the concepts.
reference: setup
	@$(BIN)/python -m scripts.reference
	@$(BIN)/python -m scripts.pictures

# The site, into dist/site, with every link checked. MkDocs has an environment of its own, so that `make setup` stays quick.
SITE := $(VENV)/site
PAGES := README.md CHANGELOG.md CONTRIBUTING.md LICENSE docs examples deploy/chart/README.md
docs: reference $(SITE)/.installed
	@rm -rf dist/pages && for page in $(PAGES); do \
	  mkdir -p dist/pages/$$(dirname $$page) && ln -s $(CURDIR)/$$page dist/pages/$$page; done
	@NO_MKDOCS_2_WARNING=true $(SITE)/bin/mkdocs build --strict --quiet --site-dir dist/site
	@echo "see it, with search: $(PYTHON) -m http.server --bind 127.0.0.1 --directory dist/site"

$(SITE)/.installed: deploy/site.lock | $(STAMP)
	@$(BIN)/uv venv --quiet --clear $(SITE)
	@$(BIN)/uv pip install --quiet --python $(SITE)/bin/python --require-hashes -r deploy/site.lock
	@touch $@

# Pictures of every page (light, dark, phone; an empty, a busy and a large cluster) into build/screenshots, and those of the
# documentation into docs/users/pictures. They need Debian's packages chromium and fonts-inter.
screenshots: setup
	@PYTHONPATH=benchmarks $(BIN)/python scripts/screenshots.py $(ARGS)

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

# Locks with hashes and for every platform: for development, the image, building the image, and the site.
LOCK = $(BIN)/uv pip compile --quiet --universal --generate-hashes --no-header --no-emit-index-url
lock: setup
	$(LOCK) --group dev --all-extras pyproject.toml -o requirements.lock
	$(LOCK) --extra image pyproject.toml --constraint requirements.lock -o deploy/requirements.lock
	$(LOCK) --group build -o deploy/build.lock
	$(LOCK) --group site -o deploy/site.lock

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache
