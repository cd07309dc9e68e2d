# One command each: demo, test, test-browser, test-torch, test-serving, test-asan, lint, docs, bench, zoo. Each sets up what it needs first.
PYTHON ?= python3
VENV := .venv
ZOO := .venv-zoo
TORCH := .venv-torch
SITE := .venv-docs
TRITON := .venv-triton
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
DEMO := tilescope-demo

# Compiled modules are kept, whatever the shell says: the tests start hundreds of processes.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo mutants test test-browser test-torch test-serving test-asan lint docs bench zoo documents samples clean

demo: $(VENV)/.demo
	$(BIN)/tilescope demo --out $(DEMO)

test: $(VENV)/.dev
	$(BIN)/pytest -n 3 --dist loadgroup -m 'not browser'

# The pages in a real Chromium; each of two processes serves and opens them by itself.
test-browser: $(VENV)/.dev
	@sh tools/install_chromium.sh
	$(BIN)/pytest -n 2 --dist loadfile -m browser tests/browser

# The tests that need PyTorch, in an environment of its own (2 GB), made once. On Linux a plain
# torch is a build for CUDA; this one is a build for CPUs where pip has one, and says which it is.
test-torch: $(TORCH)/.ready
	@$(TORCH)/bin/python -c 'import torch; print("torch", torch.__version__)'
	$(TORCH)/bin/pytest -n 2 --dist loadgroup tests/poptorch

$(TORCH)/.ready: pyproject.toml constraints.txt
	@test -x $(TORCH)/bin/python || $(PYTHON) -m venv $(TORCH)
	@$(TORCH)/bin/python -m pip --disable-pip-version-check --quiet install torch==2.13.0
	@$(TORCH)/bin/python -m pip --disable-pip-version-check --quiet install -c constraints.txt -e '.[dashboard,dev]' onnxscript transformers
	@touch $@

# Triton's own client against our server, in an environment of its own: its pins are not ours.
test-serving: $(VENV)/.dev $(TRITON)/.ready
	$(TRITON)/bin/pytest -q tests/triton

$(TRITON)/.ready: Makefile
	@test -x $(TRITON)/bin/python || $(PYTHON) -m venv $(TRITON)
	@$(TRITON)/bin/python -m pip --disable-pip-version-check --quiet install 'tritonclient[http,grpc]==2.73.0' 'pytest>=9,<9.2'
	@touch $@

# The tests of what is in C, on builds that AddressSanitizer watches.
test-asan: $(VENV)/.dev
	$(BIN)/python tools/sanitized.py -n 2

lint: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	@$(BIN)/python -m tools.house_report

# The site, in site/: a link that leads nowhere ends it.
docs: $(SITE)/.ready
	NO_MKDOCS_2_WARNING=1 $(SITE)/bin/mkdocs build --strict

$(SITE)/.ready: pyproject.toml constraints.txt
	@test -x $(SITE)/bin/python || $(PYTHON) -m venv $(SITE)
	@$(SITE)/bin/python -m pip --disable-pip-version-check --quiet install -c constraints.txt -e '.[docs]'
	@touch $@

# All of them; those that miss a goal are named at the end.
bench: $(VENV)/.dev
	@missed=; for script in $$(ls benchmarks/*.py | grep -v large_report.py); do \
	  name=$$(basename $$script .py); echo "== $$name"; \
	  $(BIN)/python -m benchmarks.$$name || missed="$$missed $$name"; done; \
	  test -z "$$missed" || { echo "missed:$$missed"; exit 1; }

# Change one thing at a time in twelve core modules, and print what no test notices: an hour or so
# for all of them, MODULES="pva.units simulator.runtime.timeline" takes some, AGAIN=1 runs only what
# survived the last time.
mutants: $(VENV)/.dev
	@$(PIP) install 'mutmut>=3.8'
	$(BIN)/python -m tools.mutants $(MODULES)

# Real models beside torch, in an environment of its own (2 GB with torch's build for CPUs):
# docs/models.md is written again. torchvision names another torch than it needs here.
zoo: $(ZOO)/.ready
	$(ZOO)/bin/python -m benchmarks.zoo --write

$(ZOO)/.ready: pyproject.toml constraints.txt benchmarks/zoo/packages.txt
	@$(PYTHON) -m venv $(ZOO)
	@$(ZOO)/bin/python -m pip --disable-pip-version-check --quiet install torch==2.13.0
	@$(ZOO)/bin/python -m pip --disable-pip-version-check --quiet install --no-deps -r benchmarks/zoo/packages.txt
	@$(ZOO)/bin/python -m pip --disable-pip-version-check --quiet install -c constraints.txt -e '.[popart]' onnxscript onnxruntime transformers pillow
	@touch $@

# Write again what is generated: docs/report-format.md, docs/analyses.md, docs/vertex-costs.md,
# docs/cli.md, docs/onnx-coverage.md, docs/trace-format.md, docs/popef-format.md, docs/objects.md,
# docs/laws.md, docs/api-*.md.
documents: $(VENV)/.dev
	$(BIN)/python -m pva.formats.describe > docs/report-format.md
	$(BIN)/python -c 'from pva.analysis.document import markdown; print(markdown(), end="")' > docs/analyses.md
	$(BIN)/python -c 'from simulator.codelets.document import markdown; print(markdown(), end="")' > docs/vertex-costs.md
	$(BIN)/python -m cli.document > docs/cli.md
	$(BIN)/python -m cli.document README.md
	$(BIN)/python -m tests.popart.node_cases > docs/onnx-coverage.md
	$(BIN)/python -m pvti.document > docs/trace-format.md
	$(BIN)/python -m pva.document > docs/objects.md
	$(BIN)/python -m simulator.popef.document > docs/popef-format.md
	$(BIN)/python -m pva.check.document > docs/laws.md
	$(BIN)/python -m tools.api_reference simulator > docs/api-simulator.md
	$(BIN)/python -m tools.api_reference pvti > docs/api-pvti.md
	$(BIN)/python -m tools.operator_stubs

samples: $(VENV)/.dev
	sh sample_reports/make.sh $(BIN)/tilescope

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "$(PYTHON) is $$($(PYTHON) --version); Python 3.11 or later is needed: make PYTHON=python3.11 $(MAKECMDGOALS)"; exit 2; }
	@$(PYTHON) -m venv $(VENV) \
	  || { rm -rf $(VENV); echo "no virtual environment could be made: install your system's python3-venv"; exit 2; }

$(VENV)/.demo: $(VENV)/bin/python pyproject.toml pva/version.py constraints.txt pvti/_accelerator.c simulator/graph/_kernels.c pva/_kernels.c pva/model/_rows.c
	@echo "installing into $(VENV) (a minute, once)"
	@$(PIP) install -c constraints.txt -e '.[dashboard,popart]'
	@touch $@

$(VENV)/.dev: $(VENV)/bin/python pyproject.toml pva/version.py constraints.txt pvti/_accelerator.c simulator/graph/_kernels.c pva/_kernels.c pva/model/_rows.c
	@echo "installing into $(VENV) (a minute, once)"
	@$(PIP) install -c constraints.txt -e '.[dashboard,dev]'
	@touch $@ $(VENV)/.demo

clean:
	rm -rf $(VENV) $(ZOO) $(TORCH) $(TRITON) $(SITE) $(DEMO) $(DEMO)-even site dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis
