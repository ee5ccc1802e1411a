# Two commands matter: `make demo` shows the product on a real cluster, `make test` checks everything.
# Both work on a bare checkout with Python >= 3.11, Java >= 17 and one of Go, toxiproxy-server and Docker.

MINIMUM := import sys; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c '$(MINIMUM)' 2>/dev/null && echo $$p && break; done || echo python3)
BIN := .venv/bin
# The number of processes for `make test`. A run mostly waits, so three share two cores; it needs 3 GB. 0: all tests in
# one process.
MEMORY := os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
WORKERS ?= $(shell $(PYTHON) -c 'import os; count = min(os.cpu_count() * 3 // 2, $(MEMORY) // 3_000_000_000); print(count if count > 1 else 0)')
INSTALLED := .venv/installed
TREE := build/typecheck
MUTATION := build/mutation

.PHONY: demo demonstrations claims faults mutation test lint format nightly bench doctor constraints clean

demo: $(INSTALLED)
	$(BIN)/fencepost run demo

# Ten histories that Jepsen's checker accepts, as run folders with reports: build/demonstrations/index.html.
demonstrations: $(INSTALLED)
	@PYTHONPATH=tests $(BIN)/python -m history.beyond_jepsen build/demonstrations

# The table of claims, as Markdown: kind of finding x rule, history, near miss, planted bug.
claims: $(INSTALLED)
	@PYTHONPATH=tests $(BIN)/python -m claims

# The table of faults, as Markdown: fault x target x back-end, with the observations of witnesses in tests that ran here.
faults: $(INSTALLED)
	@PYTHONPATH=tests $(BIN)/python -m fault_table

# Mutation tests of the checkers: each mutant must fail a test. A new call continues where the last one stopped. For a selection:
# make mutation PATTERN='*.oracle.*', or SAMPLE=600 for a random sample. AGAIN=1 tries surviving mutants again.
mutation: $(INSTALLED) $(MUTATION)
	@cd $(MUTATION) && PYTHONPATH=$(CURDIR)/tests $(CURDIR)/$(BIN)/python -m mutation $(if $(PATTERN),--pattern '$(PATTERN)') \
		$(if $(SAMPLE),--sample $(SAMPLE)) $(if $(AGAIN),--again) $(if $(LIMIT_S),--limit-s $(LIMIT_S)) $(if $(JOBS),--jobs $(JOBS))

# The same tests with the same seeds each time.
test: lint
	$(BIN)/pytest --chaos -m "not slow" -n $(WORKERS)

# All other tests with other seeds each time, and many more examples of Hypothesis. A part of them: make nightly SHARD=3/8.
# What it prints first repeats it: make nightly SHARD=3/8 SEED=12345.
nightly: SEED := $(or $(SEED),$(shell $(PYTHON) -c 'import secrets; print(secrets.randbelow(2**31))'))
nightly: SHARD := $(or $(SHARD),1/1)
nightly: lint
	@echo "make nightly SHARD=$(SHARD) SEED=$(SEED)"
	$(BIN)/pytest --chaos --chaos-seed $(SEED) --hypothesis-profile many --hypothesis-seed $(SEED) -m "slow or hypothesis" \
		--shard $(SHARD) -n $(WORKERS)

# All benchmarks, one after the other, with their default arguments; synthetic.py only writes the input of others.
bench: $(INSTALLED)
	@for script in $$(grep -l __main__ tests/benchmarks/*.py | grep -v synthetic); do echo "== $$script" && $(BIN)/python $$script || exit 1; done

doctor: $(INSTALLED)
	$(BIN)/fencepost doctor

lint: $(INSTALLED) $(TREE)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	MYPYPATH=$(TREE) $(BIN)/mypy -p fencepost -p fencepost_member

format: $(INSTALLED)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# mypy cannot follow an editable install whose folders and packages have different names, so it reads a tree of links.
.PHONY: $(TREE)
$(TREE):
	@rm -rf $(TREE) && mkdir -p $(TREE)/fencepost
	@ln -s $(CURDIR)/harness/* $(CURDIR)/faults $(CURDIR)/workloads $(CURDIR)/checkers $(TREE)/fencepost/
	@ln -s $(CURDIR)/docker/images $(TREE)/fencepost/images
	@mv $(TREE)/fencepost/member $(TREE)/fencepost_member

# mutmut reads only the checkers; it writes them, with all mutants inside, next to links to everything else.
.PHONY: $(MUTATION)
$(MUTATION):
	@mkdir -p $(MUTATION)/fencepost $(MUTATION)/mutants/fencepost
	@ln -sfn $(CURDIR)/pyproject.toml $(MUTATION)/pyproject.toml
	@ln -sfn $(CURDIR)/checkers $(MUTATION)/fencepost/checkers
	@ln -sfn $(CURDIR)/harness/member $(MUTATION)/mutants/fencepost_member
	@ln -sfn $(CURDIR)/tests $(MUTATION)/mutants/tests
	@ln -sfn $(CURDIR)/harness/* $(CURDIR)/faults $(CURDIR)/workloads $(MUTATION)/mutants/fencepost/

$(INSTALLED): constraints.txt pyproject.toml setup.py
	@$(PYTHON) -c '$(MINIMUM)' 2>/dev/null || { echo "Fencepost needs Python 3.11 or later, but $(PYTHON) is" \
		"$$($(PYTHON) --version 2>&1 || true). Name another one: make PYTHON=/path/to/python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv || { echo "No virtual environment could be made:" \
		"on Debian and Ubuntu, install the package python3-venv." >&2; rm -rf .venv; exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

# Pin all dependencies again, with hashes and without addresses.
constraints:
	test -x build/pip-tools/bin/pip-compile || { $(PYTHON) -m venv build/pip-tools && build/pip-tools/bin/pip install --quiet pip-tools; }
	build/pip-tools/bin/pip-compile --quiet --upgrade --extra dev --extra connect --extra clients --extra postgresql --allow-unsafe --strip-extras --generate-hashes \
		--no-annotate --no-header --no-emit-index-url --no-emit-find-links --no-emit-trusted-host \
		--output-file constraints.txt pyproject.toml

clean:
	rm -rf build .venv
