# Two commands: `make run` and `make test`. Each sets up what it needs. `make help` lists the others.
# make turns every failure into exit status 2; scripts and CI that need gapless's own call .venv/bin/gapless.

VENV := .venv
BIN := $(VENV)/bin
# Passed on: make run ARGS="--seed 7 --faults kill-leader"
ARGS ?=
# An interpreter of your choice: make setup PYTHON=/opt/python3.12/bin/python3
PYTHON ?=
export PYTHON

# Processes that run tests side by side, one more than the cores of the smallest machine, since real processes are often
# waited for; ARGS="-n 0" runs tests in one, as a debugger wants.
WORKERS ?= 3
# Where it is told to keep no bytecode, each of them would compile again every test that has changed since the set-up.
PYTEST = env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m pytest $(TESTS) -n $(WORKERS) --no-loadscope-reorder --durations=20

# Real processes last: with one process, what is quick fails first; with two, one begins at the end (tests/conftest.py).
SLOW_TESTS := tests/integration
TESTS := $(filter-out $(SLOW_TESTS)/,$(sort $(filter-out tests/__pycache__/,$(wildcard tests/*/)))) $(SLOW_TESTS)

.DEFAULT_GOAL := help
.PHONY: help setup run sweep nightly test test-full corpus lint simulate fuzz-evidence agreement hostile bench bench-client demo-red chaos soak endurance clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## build .venv (says first what it fetches; does nothing when it is up to date)
	@scripts/setup

run: setup ## one experiment: cluster, load, faults, verdict; ARGS="..." is passed to gapless run
	@$(BIN)/gapless run $(ARGS)

sweep: setup ## many experiments side by side; ARGS="delivery", ARGS="seeds --seeds 10": see gapless list sweeps
	@$(BIN)/gapless sweep $(ARGS)

# Minutes for shrinking what was red, beyond those of the night itself.
SHRINK ?= 20

nightly: setup ## every fault set with every workload, seeds of the date, red runs shrunk; ARGS="--minutes 20" ends it in time
	@$(BIN)/gapless sweep nightly --shrink $(SHRINK) $(ARGS)

test: setup ## every test but the long ones: unit, simulation, then real processes; ARGS="..." goes to pytest
	@$(PYTEST) -m "not full" $(ARGS)

test-full: setup ## every test, with many more random cases; half an hour
	@GAPLESS_HYPOTHESIS=full $(PYTEST) $(ARGS)

corpus: setup ## the runs that failed once (tests/integration/corpus.yaml), each of which has to be valid
	@$(BIN)/python -m pytest tests/integration/test_corpus.py $(ARGS)

lint: setup ## ruff and mypy
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

simulate: setup ## 10,000 simulated clusters, seed by seed, on all cores; ARGS="--first 20000 --count 500"
	@$(BIN)/python -m tests.simulation.run --count 10000 --corpus $(ARGS)

fuzz-evidence: setup ## 5,000 valid runs with one piece of evidence tampered with; ARGS="--run DIR", ARGS="--resealed"
	@$(BIN)/python -m tests.evidence.run --count 5000 $(ARGS)

agreement: setup ## 5,000 mutated runs, each judged by Spark and by its slow, obvious twin: no difference
	@$(BIN)/python -m tests.verifier.agreement --count 5000 $(ARGS)

hostile: setup ## 1,000,000 hostile frames against one broker, as many good ones against another, 5,700 useless connections; failovers
	@$(BIN)/python -m tests.hostile.run --count 1000000 --crowd $(ARGS)
	@$(BIN)/python -m tests.hostile.failovers

bench: setup ## the cost of the broker, measured; ARGS="NAME ..." for one of them, ARGS=--help lists all
	@$(BIN)/python -m bench $(ARGS)

bench-client: setup ## our producer beside its peers, then what idempotence and requests in flight cost and bring
	@$(BIN)/python -m bench client $(ARGS)
	@$(BIN)/python -m bench pipelining

demo-red: setup ## an experiment with a planted defect: it succeeds when the verifier finds the lost records
	@$(BIN)/gapless run --name demo-red --defect lose-acked:0.01 $(ARGS); status=$$?; \
	if [ $$status -eq 1 ]; then echo "The defect was found. The report named above shows the log around each example."; \
	else echo "The defect was not found (exit status $$status)."; exit 1; fi

# Every fault, composed; tiny segments and little batching, so that rolls, indexes and recovery have much to do.
# Retention is off by the profile. Three replicas, two of them in sync, acks=all are the defaults of a run.
CHAOS := --faults all --overlap --topic-config segment.bytes=1048576 --producer-config linger.ms=50

chaos: setup ## five minutes of every fault, composed, on 1 MB segments, then the verdict; ARGS="..." is passed on
	@$(BIN)/gapless run --name chaos --time-limit 300 --rate 2000 $(CHAOS) $(ARGS)

soak: setup ## the same for an hour, 7 million records: needs 10 GB of disk; ARGS="--rate 500" asks for less
	@$(BIN)/gapless run --name soak --time-limit 3600 --rate 2000 $(CHAOS) $(ARGS)

endurance: setup ## ten million records of 100 B with faults: memory of the load and bytes of its history; 25 minutes, 8 GB
	@$(BIN)/python -m bench endurance $(ARGS)

clean: ## remove .venv, build products and caches; results/ stays
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
