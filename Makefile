# Needs make and Python 3.10 or newer. All else is installed into .venv, beside this file.
PYTHON ?= python3
BIN := .venv/bin
RAY_BIN := $(CURDIR)/.venv-ray/bin

.NOTPARALLEL:
.DEFAULT_GOAL := help

.PHONY: help
help: ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 12

.venv/.installed: setup.cfg pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --editable '.[test,dev]'
	touch $@

.venv-ray/.installed: requirements-ray.txt
	$(PYTHON) -m venv .venv-ray
	$(RAY_BIN)/pip install --quiet --requirement requirements-ray.txt
	touch $@

.PHONY: install
install: .venv/.installed ## Make .venv, with the package in it

.PHONY: format
format: .venv/.installed ## Rewrite the code as the linter wants it
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

.PHONY: lint
lint: .venv/.installed ## Check style and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

.PHONY: types
types: .venv/.installed ## Check the types
	$(BIN)/mypy

.PHONY: imports
imports: .venv/.installed ## Check that no lower layer imports a higher one
	$(BIN)/lint-imports

.PHONY: test
test: .venv/.installed ## Run the tests (no network, no Ray)
	$(BIN)/pytest -n 2 --dist worksteal

.PHONY: test-ray
test-ray: .venv/.installed .venv-ray/.installed .venv-examples/.installed ## Run the tests that need a real Ray head
	RAY_BIN=$(RAY_BIN) EXAMPLES_PYTHON=$(CURDIR)/.venv-examples/bin/python $(BIN)/pytest -m ray --timeout 300 tests/ray

.PHONY: test-net
test-net: .venv/.installed ## Run the tests that need nginx and HAProxy
	tools/get-middle-boxes
	$(BIN)/pytest -m net tests/net

.PHONY: test-apps
test-apps: .venv/.installed ## Run the tests that need Prometheus, Chromium and tmux
	tools/get-apps
	$(BIN)/pytest -m apps tests/apps

.PHONY: soak
soak: .venv/.installed ## Go through every fault for MINUTES (2) minutes, and leave nothing behind
	$(BIN)/python -m tests.soak --minutes $(or $(MINUTES),2)

.PHONY: smoke
smoke: .venv/.installed ## Run a controller loop over simulated dashboards
	$(BIN)/python -m jobinfo_cache smoke

.PHONY: smoke-ray
smoke-ray: .venv/.installed .venv-ray/.installed ## Run the same loop over a real Ray head
	RAY_BIN=$(RAY_BIN) $(BIN)/python -m tests.ray.head -- \
	    $(BIN)/python -m jobinfo_cache smoke --url {url} --jobs 8 --timeout 120

.PHONY: bench
bench: .venv/.installed ## Measure beside other designs, 15 minutes (FULL=1: all works, an hour)
	$(BIN)/python -m tests.bench.run

.PHONY: stress
stress: .venv/.installed ## Run state machine and thread tests 20 times, and 10 million ids, half an hour
	for run in $$(seq 20); do HYPOTHESIS_PROFILE=random $(BIN)/pytest -q -n 2 tests/stateful tests/threads || exit 1; done
	HYPOTHESIS_PROFILE=thorough $(BIN)/pytest -q tests/stateful
	$(BIN)/pytest -q -m stress tests/threads

.PHONY: mutants
mutants: .venv/.installed ## Break the library on purpose, and see that the tests notice
	$(BIN)/python -m tests.mutants

.venv-examples/.installed: docs/examples/requirements.txt setup.cfg
	$(PYTHON) -m venv .venv-examples
	.venv-examples/bin/pip install --quiet --no-compile --editable . --requirement $<
	touch $@

.venv-examples-dagster/.installed: docs/examples/dagster_sensor/requirements.txt setup.cfg
	$(PYTHON) -m venv .venv-examples-dagster
	.venv-examples-dagster/bin/pip install --quiet --no-compile --editable . --requirement $<
	touch $@

.PHONY: examples
examples: .venv-examples/.installed .venv-examples-dagster/.installed ## Run the examples of docs/examples (Python 3.11 or newer)
	cd docs/examples && ../../.venv-examples/bin/python -m pytest --ignore dagster_sensor
	cd docs/examples/dagster_sensor && ../../../.venv-examples-dagster/bin/python -m pytest -c pytest.ini .

.PHONY: docs
docs: .venv/.installed ## Build the documentation, warnings are errors
	$(BIN)/pip install --quiet --editable '.[docs]'
	$(BIN)/python -m sphinx -n -W --keep-going -q docs build/docs

.PHONY: pictures
pictures: .venv/.installed ## Draw the pictures of the documentation anew
	$(BIN)/python -m tools.draw_watch docs/pictures
	tools/get-apps
	$(BIN)/python -m tools.draw_statuspage docs/pictures

.PHONY: build
build: .venv/.installed ## Build sdist and wheel, and try the wheel in an empty venv
	$(BIN)/python -m build --outdir dist
	PYTHON=$(PYTHON) tools/try-wheel dist

.PHONY: check
check: lint types imports test smoke build ## All that must pass before a commit

.PHONY: matrix
matrix: ## Run the tests on every CPython 3.10 to 3.13 found here
	tools/matrix 3.10 3.11 3.12 3.13

.PHONY: clean
clean: ## Remove what builds and tests left behind (not the venvs)
	rm -rf build dist *.egg-info .hypothesis .*_cache .coverage
	find jobinfo_cache tests -name __pycache__ -prune -exec rm -rf {} +
