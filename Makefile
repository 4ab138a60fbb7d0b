# Everything a developer, a newcomer and CI run. `make help` lists it.
#
# On a fresh machine (Debian or Ubuntu with python3 >= 3.10 and venv, git, make and a C compiler) each target does its
# own set-up first: the environment .venv from requirements.lock, and the Pulumi CLI in ~/.cache/kiln.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
BIN := .venv/bin
PYTHON ?= python3
SOURCE := bench examples images kiln plugins profiles sandbox stacks tests tools validation
WORKERS ?= 2

.PHONY: help setup fmt lint types docs test smi unit demo bench check clean

help:  ## list the targets
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 10

setup:  ## create .venv and find, install or build the Pulumi CLI (every other target does it first)
	@$(PYTHON) tools/setup.py > /dev/null

fmt: setup  ## format the code
	$(BIN)/ruff check --fix-only --quiet $(wildcard $(SOURCE))
	$(BIN)/ruff format $(wildcard $(SOURCE))

lint: setup types  ## style, types, Python 3.6 syntax of the probe, generated pages
	$(BIN)/ruff check $(wildcard $(SOURCE))
	$(BIN)/ruff format --check $(wildcard $(SOURCE))
	$(BIN)/vermin --no-tips --violations --eval-annotations --target=3.6- validation/probe
	$(BIN)/python -m tools.docs --check

types: setup  ## mypy, strict
	$(BIN)/mypy

docs: setup  ## write the generated pages: docs/checks.md, docs/faults.md, the tables in README.md
	$(BIN)/python -m tools.docs

test: setup  ## unit and system tests, with coverage
	@tools/packages.sh
	$(BIN)/pytest -n $(WORKERS) --dist loadgroup --cov --cov-report=term -m "not realsmi"
	@echo "The tests of the real nvidia-smi are not among these: make smi"

smi: setup  ## the real nvidia-smi over the stub NVML; tools/nvidia_smi.sh fetches it where apt may
	@tools/nvidia_smi.sh > /dev/null
	$(BIN)/pytest -n $(WORKERS) -m realsmi tests/system/test_real_nvidia_smi.py

unit: setup  ## unit tests only: offline, seconds
	$(BIN)/pytest -n $(WORKERS) tests/unit

demo: setup  ## the whole path on simulated hosts: healthy, then one broken NVLink, then gone
	$(BIN)/python -m kiln.demo

bench: setup  ## how fast hosts are validated, as ratios to OpenSSH in the same run
	$(BIN)/python -m bench

check: lint test smi  ## what CI runs

clean:  ## remove what was built here; the Pulumi CLI in ~/.cache/kiln stays
	rm -rf .venv .cache build reports .coverage .mypy_cache .pytest_cache .ruff_cache *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
