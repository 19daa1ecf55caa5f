# Everything a person does with this project. `make help` says it in words.
PYTHON_ENV := .venv/bin/python

.DEFAULT_GOAL := help
.PHONY: help run demo test test-all explore format check bench hosts drill drill-honest mutants lock clean

help: ## say what there is
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' Makefile

run: ## set up everything and serve the site; PORT=8001 make run takes another port
	@bin/setup
	@exec $(PYTHON_ENV) manage.py up

demo: ## the same with a simulated judge, two weeks of history and an incident to live through, in var/demo
	@bin/setup
	@unset DATABASE_URL REDIS_URL; JUDGE_SIMULATED=yes DEMO=yes GRADINGSITE_STATE=var/demo exec $(PYTHON_ENV) manage.py up

test: ## set up everything and run the tests, on SQLite and, where it can differ, on PostgreSQL; ARGS="-k judge" runs some
	@bin/setup dev
	@$(PYTHON_ENV) -m tests.run $(ARGS)

test-all: ## every test, the slow ones too, on both databases; before an issue is called resolved
	@bin/setup dev
	@$(PYTHON_ENV) -m tests.run --all $(ARGS)

explore: ## the tests by Hypothesis with fresh examples, ten times as many; SEED=17 makes those of another run again
	@bin/setup dev
	@$(PYTHON_ENV) -m tests.explore $(ARGS)

format: ## lay out the code and the templates as `make check` wants them
	@bin/setup dev
	$(PYTHON_ENV) -m ruff format .
	.venv/bin/djhtml --tabwidth 2 templates

check: ## format, lint, types, import layers, missing migrations, Django's own checks
	@bin/setup dev
	$(PYTHON_ENV) -m ruff format --check .
	.venv/bin/djhtml --tabwidth 2 --check templates
	$(PYTHON_ENV) -m ruff check .
	$(PYTHON_ENV) -m mypy .
	.venv/bin/lint-imports
	$(PYTHON_ENV) manage.py makemigrations --check --dry-run
	HTTPS=yes SECRET_KEY=$$($(PYTHON_ENV) -c 'import secrets; print(secrets.token_hex(32))') \
		$(PYTHON_ENV) manage.py check --deploy --fail-level ERROR

bench: ## every benchmark, in its quick mode
	@bin/setup dev
	@set -e; for file in benchmarks/*.py; do echo "== $$file"; $(PYTHON_ENV) $$file --quick; done

hosts: ## several hosts on this machine live through faults and an upgrade (a quarter of an hour); ARGS="--quick" takes three minutes
	@bin/setup dev
	@$(PYTHON_ENV) benchmarks/hosts.py $(ARGS)

drill: ## break the judging in every way, and count what is lost (a dozen minutes); ARGS="--quick" takes one
	@bin/setup dev
	@$(PYTHON_ENV) -m benchmarks.drill $(ARGS)

drill-honest: ## break the code in eight ways; the drill has to notice each (a quarter of an hour); ARGS="--only fence" takes one
	@bin/setup dev
	@$(PYTHON_ENV) -m benchmarks.drill.honest $(ARGS)

mutants: ## do the cores' own tests notice when a core is changed? (up to an hour); CORE=decide takes one
	@bin/setup dev
	@nice $(PYTHON_ENV) -m tests.mutants $(CORE)

lock: ## compile requirements*.in into the pinned, hashed requirements*.txt
	@bin/setup dev
	@for name in requirements-dev requirements requirements-otel requirements-s3; do $(PYTHON_ENV) -m uv pip compile --quiet --universal \
		--generate-hashes --no-emit-index-url --no-header --python-version 3.11 $$name.in -o $$name.txt \
		$$(test $$name != requirements-dev && echo "-c requirements-dev.txt"); done

clean: ## remove the environment and, after asking, everything the site has stored
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	@printf 'Remove var/ too, with every session, grade and correction in it? Type yes: '; \
		read answer; if [ "$$answer" = yes ]; then rm -rf var; else echo "var/ is kept."; fi
