# lab: open the course · test: everything that must hold · refresh [NB=…]: re-execute notebooks · bench [BENCH=--quick]: measure
# assignments [NN="01 04"]: an nbgrader course with its student versions · grade: what was handed in
PYTHON ?= python3
WORKERS ?= 2
BIN := .venv/bin
# In a container one is often root, which JupyterLab must be told to accept.
LAB_ARGS ?= $(if $(filter 0,$(shell id -u)),--allow-root)
START := $(or $(wildcard notebooks/00_*.ipynb),notebooks)

.PHONY: lab test refresh bench assignments grade

lab: .venv/lab.stamp
	$(BIN)/jupyter lab --LabApp.default_url=/lab/tree/$(START) $(LAB_ARGS)

test: .venv/test.stamp
	$(BIN)/python -m ruff check .
	$(BIN)/python -m pytest tests -n $(WORKERS) --dist worksteal --cov
	$(BIN)/python -m pytest notebooks -n $(WORKERS) --dist loadscope

refresh: .venv/test.stamp
	$(BIN)/python tests/refresh.py $(NB)

bench: .venv/bench.stamp
	cd tests && ../$(BIN)/python -m benchmarks $(BENCH)

COURSE ?= build/course
NBGRADER = cd $(COURSE) && PATH="$(CURDIR)/$(BIN):$$PATH" nbgrader

assignments: .venv/teach.stamp
	$(BIN)/python -m transformer_lib.teaching.assignments --out $(COURSE) $(NN)
	$(NBGRADER) generate_assignment '*' --force

grade: .venv/teach.stamp
	$(NBGRADER) autograde '*'
	$(NBGRADER) generate_feedback '*'
	$(NBGRADER) export

# Installed again only when what is to be installed has changed.
.venv/lab.stamp: requirements.txt pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install -r requirements.txt -e .
	$(BIN)/jupyter labextension disable "@jupyterlab/apputils-extension:announcements"
	touch $@

.venv/test.stamp: .venv/lab.stamp
	$(BIN)/python -m pip install -q -e ".[test,teach]"
	touch $@

.venv/bench.stamp: .venv/lab.stamp
	$(BIN)/python -m pip install -q -e ".[bench]"
	touch $@

.venv/teach.stamp: .venv/lab.stamp
	$(BIN)/python -m pip install -q -e ".[teach]"
	touch $@

.venv/bin/python:
	$(PYTHON) -m venv .venv
