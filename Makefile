# `make repro` and `make test` need nothing but Python; `make help` lists all commands.

PYTHON ?= python3
VENV ?= .venv
# Another suite than that of params.yaml, and where data lie (docs/reproduce.md):
#   make repro SUITE=cifar PRECOMPUTED=/folder/with/logits
# make passes variables of its command line and of the environment to DVC and to the stages.
FUZZ_SECONDS ?= 600
# `make test-all` kills a running program this many times, at different moments.
KILLS ?= 20
# The tests must run at least this percentage of the statements of metrics/ and calibrators/, and of
# pipeline/. Below it, `make coverage` fails.
REACHED ?= 95
REACHED_STAGES ?= 90

# DVC starts the stages as `utility-calibration …`, which must be the environment's.
RUN := PATH="$(abspath $(VENV))/bin:$$PATH"
INSTALLED := $(VENV)/.installed
# Other packages are installed into an environment of their own.
PEERS ?= .venv-peers
# `make docs` writes the site into this folder.
SITE ?= site

# Suites that leave out benchmarks without logits (conf/suite: skip_absent).
PARTIAL := paper_closest

.DEFAULT_GOAL := help
.PHONY: help setup repro known-suite test coverage test-all test-paper test-processors test-gpu test-peers test-slurm test-ray test-lowest test-newest fuzz docs golden lint types lines clean

help:
	@echo "make repro   set up, then run the benchmark suite (default: digits, offline)"
	@echo "             make repro SUITE=cifar PRECOMPUTED=/folder/with/logits"
	@echo "             make repro SUITE=paper IMAGENET=/folder WORD_VECTORS=/file"
	@echo "make test    set up, then lint, type checks and the fast tests; prints the ten slowest"
	@echo "make coverage     the same, and fails if they run too few statements of metrics/ and others"
	@echo "make test-all     the same with the slow tests: kills (KILLS=20), full disks, simulations"
	@echo "make test-paper   run the suite of the whole paper on small stand-ins (part of test-all)"
	@echo "make test-processors   compare printed digits on emulated processors (part of test-all); PRECOMPUTED=/folder"
	@echo "make test-gpu     compare a GPU with the CPU and write results/speed/gpu.md"
	@echo "make test-peers   compare our numbers with other packages and run docs/recipes.md, in $(PEERS)"
	@echo "make test-slurm   test a sweep with lost jobs on a Slurm cluster of one node (root, Debian)"
	@echo "make test-ray     test a sweep with a failed job on Ray, in an environment of its own"
	@echo "make test-lowest, make test-newest   test the lowest and the newest versions that pyproject.toml allows"
	@echo "make fuzz    try the properties on fresh draws, then damaged files for FUZZ_SECONDS seconds (default: 600)"
	@echo "make golden  write the pages of tests/golden anew, after a sentence or a number changed"
	@echo "make docs    build the pages, the API reference and the tutorial's notebook as a site in site/, offline"
	@echo "make setup   create $(VENV) from requirements.lock"
	@echo "make clean   remove environments, caches, cached logits and fits; results and downloads stay"

setup: $(INSTALLED)

# pip takes no file without a hash of the lock. On Linux PyPI's torch needs CUDA's libraries, which
# have a lock of their own. It comes first, unless pip finds torch without CUDA
# (PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu), whose hash requirements.lock has.
PIP := -m pip --quiet --disable-pip-version-check
define locked
@$(1)/bin/python $(PIP) install --dry-run --no-deps --report - "$$(grep -o '^torch==[^ ]*' requirements.lock)" | \
  grep '"version": ".*+cpu"' > /dev/null || \
  $(1)/bin/python $(PIP) install --no-compile --no-deps --require-hashes -r requirements-cuda.lock
$(1)/bin/python $(PIP) install --no-compile --require-hashes -r requirements.lock
endef

# `compileall` compiles on all cores, pip on one only. It fails at files that some packages have for
# other versions of Python. Nothing here imports them, so the exit code does not matter.
$(INSTALLED): requirements.lock requirements-cuda.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed: make PYTHON=/path/to/python3.11 setup" >&2; exit 1; }
	@test -d utility_calibration/metrics || { echo \
	  "utility_calibration/metrics is no link to a folder: this file system has no symbolic links" >&2; exit 2; }
	@test ! -e $(VENV) || test -e $(VENV)/.installed || test -e $(VENV)/.by-make || { echo \
	  "VENV=$(VENV): exists, and make has not made it; move it, or choose another VENV" >&2; exit 2; }
	@echo "Setting up $(VENV) from requirements.lock (two to five minutes)"
	$(PYTHON) -m venv --clear $(VENV) && touch $(VENV)/.by-make
	$(call locked,$(VENV))
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	$(VENV)/bin/python -m pip check
	@$(VENV)/bin/python -m compileall -qq -j 0 $(VENV)/lib || true
	@echo "Compiling kernels (a quarter of a minute, once)"
	@$(VENV)/bin/python -m utility_calibration.scripts.maintain.compile_kernels
	@touch $@
	@echo "Ready: source $(VENV)/bin/activate   (then the README's utility-calibration and dvc commands work)"

repro: known-suite setup
	$(if $(filter $(PARTIAL),$(SUITE)),@$(RUN) python -m utility_calibration.scripts.maintain.available suite=$(SUITE) > .available || { cat .available; exit 1; })
	$(RUN) dvc $(if $(SUITE),exp run -S suite=$(SUITE) $(if $(filter $(PARTIAL),$(SUITE)),$$(tail -n 1 .available | sed 's/suite\./-S suite./g')),repro)

# A mistake ends the command before the set-up, which takes minutes. Where the environment is there,
# Hydra says what it finds, also of the suite's benchmarks; else a suite must have a file in conf/suite.
# The program ends with 2 at such a mistake, with 1 where packages are missing, which the set-up installs.
known-suite:
	@test -z "$(SUITE)" || if test -e $(INSTALLED); then \
	  $(RUN) python -m utility_calibration status --cfg job "suite=$(SUITE)" > /dev/null || test $$? -ne 2; else \
	  test -e "conf/suite/$(SUITE).yaml" || { echo \
	  "error: SUITE=$(SUITE): no such suite; choose one of: $(sort $(basename $(notdir $(wildcard conf/suite/[!_]*.yaml))))" >&2; exit 2; }; fi
	@test -e .git || { echo \
	  "error: this folder has no .git, which DVC needs; clone the project, or run 'git init'" >&2; exit 2; }

lint: setup
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .

types: setup
	$(VENV)/bin/mypy

TESTS := pytest --numprocesses auto --dist worksteal --durations=10
# Coverage counts statements, but not in the child processes that tests start (tests/conftest.py).
# It takes a quarter of the tests' time once more, so CI and `make test-all` measure it.
COVERED := python -m coverage run -m $(TESTS)
define reached
	@$(RUN) python -m coverage combine --quiet
	$(RUN) python -m coverage report --include='pipeline/*' --fail-under=$(REACHED_STAGES)
	$(RUN) python -m coverage report --include='metrics/*,calibrators/*' --fail-under=$(REACHED)
endef

test: lint types
	$(RUN) python -m $(TESTS) -m "not slow"

coverage: lint types
	@rm -f .coverage .coverage.*
	$(RUN) $(COVERED) -m "not slow"
	$(reached)

test-all: lint types
	@rm -f .coverage .coverage.*
	KILLS=$(KILLS) $(RUN) $(COVERED)
	$(reached)

test-paper: setup
	$(RUN) python -m pytest -q tests/paper

# With PRECOMPUTED=/folder/with/logits the 100 classes are those of CIFAR-100, else made up.
test-processors: setup
	$(RUN) python -m pytest -q tests/processors

test-gpu: setup
	$(RUN) python -m tests.devices.gpu

test-peers: $(PEERS)/.installed
	PATH="$(abspath $(PEERS))/bin:$$PATH" python -m pytest -rs \
	  tests/peers tests/metrics/test_torchmetrics.py tests/scripts/test_compare_speed.py

$(PEERS)/.installed: requirements.lock requirements-peers.txt
	@echo "Setting up $(PEERS) from requirements.lock and requirements-peers.txt"
	@test ! -e $(PEERS) || test -e $(PEERS)/.installed || test -e $(PEERS)/.by-make || { echo \
	  "PEERS=$(PEERS): exists, and make has not made it; move it, or choose another one" >&2; exit 2; }
	$(PYTHON) -m venv --clear $(PEERS) && touch $(PEERS)/.by-make
	$(call locked,$(PEERS))
	$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-peers.txt
	$(PEERS)/bin/python -m pip check
	@touch $@

# The cluster is stopped even when a test fails.
test-slurm: setup
	@set -e; folder=$$(mktemp -d); trap 'scripts/clusters/one_node_slurm.sh down "$$folder"; rm -rf "$$folder"' EXIT; \
	  scripts/clusters/one_node_slurm.sh up "$$folder"; \
	  SLURM_CONF="$$folder/slurm.conf" $(VENV)/bin/python -m pytest tests/clusters -k 'not ray'

# The environment has Ray and sees the packages of $(VENV). Ray listens on all network interfaces;
# therefore it runs in a network of its own that has only the loopback interface.
test-ray: setup
	@test -x .venv-ray/bin/python || { $(VENV)/bin/python -m venv .venv-ray && \
	  $(VENV)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))' > \
	    "$$(.venv-ray/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/over.pth"; }
	.venv-ray/bin/python -m pip install --quiet --disable-pip-version-check \
	  'hydra-ray-launcher>=1.2.2' 'ray>=2.60'
	unshare --map-root-user --net sh -c 'ip link set lo up && \
	  exec .venv-ray/bin/python -m pytest tests/clusters -k ray'

# The ends of the ranges in pyproject.toml, each in an environment of its own. uv can resolve to the
# lowest versions, pip cannot.
test-lowest: RESOLUTION := lowest-direct
test-newest: RESOLUTION := highest
test-lowest test-newest:
	$(PYTHON) -m venv --clear .venv-$@
	.venv-$@/bin/python -m pip install --quiet --disable-pip-version-check uv
	.venv-$@/bin/uv pip install --quiet --python .venv-$@ --resolution $(RESOLUTION) \
	  --editable '.[torch,parquet]' 'pytest>=9' 'hypothesis>=6.100'
	.venv-$@/bin/python -m pytest -m "not slow" tests/metrics tests/calibrators tests/scripts/test_score.py

# Every run has another seed. A finding is kept in tests/fuzz/corpus, and `make test` tries it from then on.
fuzz: setup
	$(RUN) python -m pytest -q --numprocesses auto -m "hypothesis and not slow" --hypothesis-profile fresh
	$(RUN) python -m tests.fuzz --seconds $(FUZZ_SECONDS) --seed $$(date +%s)00000

# `git diff tests/golden` then shows what people will read.
golden: setup
	$(RUN) python -m pytest -q tests/golden --record

# A warning is an error, such as a link that leads nowhere. Without -E a second run would not see those
# of pages that stayed as they were. `python docs/studies/notebook.py` runs the tutorial and writes its notebook.
docs: setup
	$(RUN) sphinx-build -E -W --keep-going --quiet -c docs . $(SITE)
	cp docs/tutorial.ipynb $(SITE)/docs/
	@echo "Wrote $(SITE)/index.html"

lines:
	@for folder in metrics calibrators pipeline scripts utility_calibration tests; do \
	  printf '%-20s %6d\n' $$folder $$(git ls-files $$folder | grep '\.py$$' | xargs cat | wc -l); done

# Downloads, such as data/imagenet, stay. So does an environment that make has not made.
MADE := site .venv-ray .venv-test-lowest .venv-test-newest .mypy_cache .ruff_cache .pytest_cache .hypothesis \
  $(addprefix data/,logits fits scores dynamics users locks log) \
  $(patsubst %/,%,$(dir $(wildcard $(addsuffix /.installed,$(VENV) $(PEERS)))))

clean:
	@echo "Removing what make, DVC and the stages made: $(wildcard $(MADE))"
	@echo "Staying: results/, downloads and other files in data/, files of your own"
	@rm -rf $(MADE)
