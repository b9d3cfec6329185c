# All commands for developers and build machines. Needs only Python 3.11+ and make: each target first sets up the
# environment in .venv, which takes seconds once it exists.
#
#   make PYTHON=python3.12 test     use another Python
#   make test ARGS="tests/core -k wire"

PYTHON ?= python3
PY := .venv/bin/python
ARGS ?=
DEMO_ARGS ?=
BENCH_ARGS ?=
# Many tests wait for processes: three workers keep two cores busy.
WORKERS ?= 3
E2E_WORKERS ?= 2
SEEDS ?= 160
SECONDS ?= 300
KIND_NAME ?= plimsoll
IMAGE_TAG ?= dev
IMAGES ?=

# Fleets are processes: without it each of them compiles the product anew, which doubles the time it takes to start.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup setup-spark demo demo-global demo-bundles demo-groups demo-channels demo-deadlines experiments place compare sweep test test-all lint size bench simulate soak images release commands e2e e2e-full bench-operator kind-up crds chart format lock clean

help:  ## List the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup:  ## Make the virtual environment .venv from the lock
	@$(PYTHON) scripts/setup_environment.py

demo: setup  ## A fleet here: all subscribers join its weakest edge, PADRES balances them, every delivery is audited
	@$(PY) -m plimsoll.cli.main demo $(DEMO_ARGS)

place: setup  ## The short demo: each subscriber is placed where there is room, none is moved (DEMO_ARGS="--seconds 30")
	@$(PY) -m plimsoll.cli.main demo --place $(DEMO_ARGS)

compare: setup  ## The demo with balancing off, random, least-loaded, greedy and padres, side by side (DEMO_ARGS="--policies off padres")
	@$(PY) -m plimsoll.demo.comparison $(DEMO_ARGS)

sweep: setup  ## Simulate the demo with more and more edges, and with other thresholds (ARGS="--subscribers 500")
	@$(PY) -m bench.balancing $(ARGS)

experiments: setup  ## The papers' experiments in virtual time, each claim judged, into experiments-report/ (ARGS=--quick)
	@$(PY) -m plimsoll.experiments all $(ARGS)

demo-global: setup  ## Four clusters in a chain balance with their neighbours; audit of every delivery (DEMO_ARGS="--seconds 90")
	@$(PY) -m plimsoll.demo.multi_cluster $(DEMO_ARGS)

demo-channels: setup-spark  ## Seven channels over reports for 400 people who move, judged by an oracle (DEMO_ARGS="--arm sdm")
	@$(PY) -m plimsoll.demo.emergency.command $(DEMO_ARGS)

demo-bundles: setup  ## Topics in bundles as in Pulsar: a split, shedding, unloads, a killed edge; audit of every delivery (DEMO_ARGS="--seed 7")
	@$(PY) -m plimsoll.demo.bundle_demo $(DEMO_ARGS)

demo-groups: setup  ## Consumers of a group join, burn processor time, leave and are killed; each item counted (DEMO_ARGS="--seconds 60")
	@$(PY) -m plimsoll.demo.group_demo $(DEMO_ARGS)

demo-deadlines: setup  ## A burst that endangers a deadline, with DelaySensitive, Padres and no policy; audit of every delivery (DEMO_ARGS="--seed 7")
	@$(PY) -m plimsoll.demo.deadline_demo $(DEMO_ARGS)

setup-spark:  ## Also install what the Spark jobs need, if Java is installed
	@$(PYTHON) scripts/setup_environment.py --spark

test: setup-spark  ## Run the tests (ARGS="tests/core -k wire" for some, WORKERS=0 for one process)
	@$(PY) -m pytest -n $(WORKERS) --dist worksteal --durations 15 $(ARGS)

test-all: setup-spark  ## Run the tests and the long sweeps too, as .ci/run does with PLIMSOLL_CI_SWEEPS set
	@$(PY) -m pytest -m "" -n $(WORKERS) --dist worksteal --durations 30 $(ARGS)

lint: setup-spark  ## Check style, format, types and the architecture's import contracts
	$(PY) -m ruff check
	$(PY) -m ruff format --check
	@if test -f .venv/.spark; then $(PY) -m mypy; else \
	    echo "Types of the Spark jobs are not checked: Spark is not set up."; \
	    $(PY) -m mypy --exclude '^(tests/sparkjobs|bench/telemetry)/' $(filter-out sparkjobs/src,$(wildcard */src)) tests bench; fi
	.venv/bin/lint-imports

size: setup  ## Print the lines of code by room beside those of the last tag (ARGS=REVISION)
	@$(PY) scripts/size.py $(ARGS)

bench: setup  ## Measure matching, brokers and collectors, beside baselines in the same run (BENCH_ARGS=--quick for brokers in less time)
	@$(PY) -m bench.matching
	@$(PY) -m bench.broker $(BENCH_ARGS)
	@$(PY) -m bench.groups $(BENCH_ARGS)
	@$(PY) -m bench.telemetry

simulate: setup  ## Run SEEDS=160 fleets in virtual time under faults and check the laws (ARGS="--scenario storm")
	@$(PY) -m plimsoll.simulator --seeds $(SEEDS) --jobs $(WORKERS) $(ARGS)

soak: setup  ## Disturb a fleet under load for SECONDS=300, or move its subscribers SESSIONS=10000 times; audit every delivery
	@$(PY) -m plimsoll.soak $(if $(SESSIONS),--sessions $(SESSIONS),--seconds $(SECONDS)) $(ARGS)

images:  ## Build the container images with docker, podman or buildah (IMAGE_TAG=dev IMAGES="broker operator")
	@scripts/build_images.sh $(IMAGE_TAG) $(IMAGES)

release: setup  ## Make the wheel, the packaged chart, the list of images and checksums in dist/, the same bytes every time
	@$(PY) scripts/make_release.py

commands: setup  ## Generate the table of commands in docs/cli.md from the parser
	@$(PY) scripts/make_command_table.py

e2e: setup  ## Install the chart in the cluster that KUBECONFIG names, and test all of it there (IMAGE_TAG=dev, images loaded)
	@PLIMSOLL_IMAGE_TAG=$(IMAGE_TAG) $(PY) -m pytest -m e2e -n $(E2E_WORKERS) --dist loadfile tests/e2e $(ARGS)

e2e-full: setup  ## Kill operator, source and target in every state of a session, in pods, under load (PLIMSOLL_KILL_SEED for `make e2e`)
	@PLIMSOLL_KILLS=all PLIMSOLL_IMAGE_TAG=$(IMAGE_TAG) $(PY) -m pytest -m e2e tests/e2e/test_kills.py -rP $(ARGS)
	@PLIMSOLL_FAIL_POINTS=all PLIMSOLL_OUTAGE_SECONDS=300 $(PY) -m pytest tests/operator/mediator/test_runner.py -rP $(ARGS)

bench-operator: setup  ## Measure what the operator needs for 10, 50 and 200 simulated brokers, at the API server of KUBECONFIG
	@$(PY) -m bench.operator $(BENCH_ARGS)

kind-up:  ## Create a kind cluster and load the images; needs Docker and kind (KIND_NAME=plimsoll)
	@scripts/kind_up.sh $(KIND_NAME) $(IMAGE_TAG)

crds: setup  ## Generate crds/ and the tables of docs/ from the code
	@$(PY) scripts/make_crds.py

chart: crds  ## Generate the chart's copy of the definitions, its dashboards and its README
	@cp crds/*.yaml helm/plimsoll/files/crds/
	@$(PY) scripts/make_dashboards.py
	@$(PY) scripts/make_chart_readme.py

format: setup  ## Format the sources, order imports, and apply the linter's safe fixes
	$(PY) -m ruff check --fix
	$(PY) -m ruff format

# The resolver is needed here only, so it has an environment of its own. The lock names no index and no host.
lock:  ## Resolve the dependencies of pyproject.toml and write the locks
	@$(PYTHON) -m venv .lock-venv
	@.lock-venv/bin/python -m pip install --quiet --disable-pip-version-check "uv>=0.8"
	@.lock-venv/bin/uv pip compile pyproject.toml $(RESOLVE) $(LOCKED) $(ARGS) -o requirements-dev.lock
	@.lock-venv/bin/uv pip compile pyproject.toml $(RESOLVE) --extra spark --extra feeds -c requirements-dev.lock $(ARGS) -o requirements-spark.lock
	@.lock-venv/bin/uv pip compile pyproject.toml $(RESOLVE) --extra broker --extra kernel -c requirements-dev.lock $(ARGS) -o requirements-broker.lock
	@.lock-venv/bin/uv pip compile pyproject.toml $(RESOLVE) --extra operator -c requirements-dev.lock $(ARGS) -o requirements-operator.lock
	@.lock-venv/bin/uv pip compile pyproject.toml $(RESOLVE) --extra telemetry --extra feeds -c requirements-dev.lock $(ARGS) -o requirements-telemetry.lock
	@rm -rf .lock-venv

RESOLVE := --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --no-emit-index-url \
    --no-emit-find-links
# All dependencies of developers except Spark: half a gigabyte that only its jobs need has a lock of its own. The locks of
# images hold what their role needs, in the same versions.
LOCKED := --extra broker --extra kernel --extra operator --extra cluster --extra telemetry --extra feeds --group demo --group experiments --group dev --group build

clean:  ## Remove the environment, caches and reports
	rm -rf .venv .venv.lock .lock-venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache \
	    .coverage htmlcov demo-report global-report bundles-report groups-report deadlines-report bench-report soak-report
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
