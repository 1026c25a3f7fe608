# The front door. `make` alone lists every target.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV_VERSION := 0.13.8
ARGS ?=

-include project.env
export

##@ Train

.PHONY: train
train: $(VENV)/cpu.stamp ## train the default model on the bundled data; ARGS="--epochs=3" passes flags
	@$(BIN)/python -m trainer.task $(ARGS)

.PHONY: predict
predict: $(VENV)/cpu.stamp ## what the trained model says of an image; IMAGE=data/digits/example.png
	@$(BIN)/python -m trainer.predict $(or $(IMAGE),data/digits/example.png) $(ARGS)

.PHONY: tensorboard
tensorboard: $(VENV)/cpu.stamp ## curves, histograms, images and profiles of every job, in the browser
	@TF_CPP_MIN_LOG_LEVEL=2 $(BIN)/python -m tensorboard.main --logdir=$(or $(LOGS),jobs) $(ARGS)

.PHONY: benchmark
benchmark: $(VENV)/benchmark.stamp ## compare with what you would use instead, as ratios; ARGS="loop start" chooses
	@$(BIN)/python -m benchmarks $(ARGS)

##@ Rehearse

.PHONY: local
local: $(VENV)/dev.stamp ## run a job file here, every replica of it; CONFIG=multi_worker ARGS="-- --epochs=2"
	@$(BIN)/python -m launch local configs/$(or $(CONFIG),multi_worker).yaml $(ARGS)

.PHONY: tune
tune: $(VENV)/dev.stamp ## run a tuning job here, trial by trial; CONFIG=tune ARGS="--trials=8"
	@$(BIN)/python -m launch tune configs/$(or $(CONFIG),tune).yaml $(ARGS)

.PHONY: preflight
preflight: $(VENV)/dev.stamp ## say what would fail in the cloud, in under 10 s; CONFIG=gpu ARGS="--offline"
	@$(BIN)/python -m launch preflight configs/$(or $(CONFIG),gpu).yaml $(ARGS)

.PHONY: benchmark-launch
benchmark-launch: $(VENV)/dev.stamp ## what the launcher costs: start, validate, local, diagnose; and what launch tune's search is worth
	@$(BIN)/python benchmarks/launcher.py $(ARGS)

##@ Images

.PHONY: build-cpu build-gpu build-tpu
build-cpu: $(VENV)/dev.stamp ## build the image for machines without accelerator; BASE_IMAGE=... takes another base
build-gpu: $(VENV)/dev.stamp ## build the image for NVIDIA GPUs
build-tpu: $(VENV)/dev.stamp ## build the image for TPUs
build-cpu build-gpu build-tpu: build-%:
	@$(BIN)/python -m launch image build $*

.PHONY: push
push: $(VENV)/dev.stamp ## push the image built last and record its digest: make build-gpu push submit
	@$(BIN)/python -m launch image push

.PHONY: push-base-cpu push-base-gpu push-base-tpu
push-base-gpu: $(VENV)/dev.stamp ## push TensorFlow with its CUDA, for other repositories to build on (or -cpu, -tpu)
push-base-cpu push-base-gpu push-base-tpu: push-base-%: $(VENV)/dev.stamp
	@$(BIN)/python -m launch image push-base $*

.PHONY: image-test-cpu image-test-gpu image-test-tpu
image-test-gpu: $(VENV)/dev.stamp ## some steps in the image: read-only, no root, no network (or -cpu, -tpu)
image-test-cpu image-test-gpu image-test-tpu: image-test-%: $(VENV)/dev.stamp
	@$(BIN)/python -m launch image test $* $(if $(ARGS),-- $(ARGS))

.PHONY: shell-cpu shell-gpu shell-tpu
shell-gpu: $(VENV)/dev.stamp ## a shell in the image (or -cpu, -tpu)
shell-cpu shell-gpu shell-tpu: shell-%: $(VENV)/dev.stamp
	@$(BIN)/python -m launch image shell $*

.PHONY: benchmark-images
benchmark-images: $(VENV)/dev.stamp ## sizes of the images, time to rebuild after a change, time to the first step
	@$(BIN)/python benchmarks/images.py $(ARGS)

.PHONY: batch-size
batch-size: $(VENV)/cpu.stamp ## the largest batch that fits one device here; ARGS="--precision=mixed_bfloat16" passes flags
	@$(BIN)/python -m trainer.batch_size $(ARGS)

##@ Check

.PHONY: test
test: $(VENV)/dev.stamp ## the tests, under 8 minutes; ARGS="tests/trainer -k resume" chooses
	@$(BIN)/python -m pytest -n 2 $(ARGS)

.PHONY: test-all
test-all: $(VENV)/dev.stamp ## the tests that `make test` leaves out: slow ones, and those that need a container engine
	@$(BIN)/python -m pytest -m "slow or engine" $(ARGS)

.PHONY: validate
validate: $(VENV)/dev.stamp ## everything wrong with the job files, offline; CONFIG=gpu for one of them
	@$(BIN)/python -m launch validate $(if $(CONFIG),configs/$(CONFIG).yaml,configs/*.yaml) $(ARGS)

.PHONY: chaos
chaos: $(VENV)/dev.stamp ## kill jobs at random moments and compare what they end with; ROUNDS=60
	@$(BIN)/python tests/chaos.py --rounds=$(or $(ROUNDS),60) $(ARGS)

.PHONY: parity
parity: $(VENV)/dev.stamp ## does every strategy train the same? The table of docs/strategies.md, from real runs
	@$(BIN)/python -m tests.parity

.PHONY: test-forks
test-forks: $(VENV)/dev.stamp ## the tests in three forks with models of other kinds, some 8 minutes each
	@$(BIN)/python -m tests.fork $(if $(ARGS),-- $(ARGS))

.PHONY: lint
lint: $(VENV)/dev.stamp ## ruff over every Python file, hadolint over the Dockerfiles
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/hadolint Dockerfile.*

.PHONY: doctor
doctor: $(VENV)/cpu.stamp ## is this environment right for its hardware? ARGS=--for=gpu asks for another
	@$(BIN)/python -m trainer.doctor $(ARGS)

##@ Cloud

.PHONY: bootstrap
bootstrap: $(VENV)/dev.stamp ## make what a Google Cloud project needs; changes nothing the second time; ARGS=--dry_run
	@$(BIN)/python -m launch bootstrap $(ARGS)

.PHONY: cloud-build
cloud-build: $(VENV)/dev.stamp ## test, build, try and push the images on Cloud Build, from the working tree
	@$(BIN)/python -m launch cloud_build $(ARGS)

.PHONY: package
package: $(VENV)/dev.stamp ## the trainer as a Python package on Cloud Storage; submit CONFIG=python_package runs it
	@$(BIN)/python -m launch package $(ARGS)

.PHONY: submit
submit: $(VENV)/dev.stamp ## send a job file to Vertex AI; CONFIG defaults to the image built last; ARGS=--dry_run RETRY=1
	@$(BIN)/python -m launch submit $(if $(CONFIG),configs/$(CONFIG).yaml) $(if $(RETRY),--retry) $(ARGS)

.PHONY: watch
watch: $(VENV)/dev.stamp ## states, log and trials of a job until its end; JOB defaults to the last submitted
	@$(BIN)/python -m launch watch $(JOB) $(ARGS)

.PHONY: cancel
cancel: $(VENV)/dev.stamp ## ask for a job's end; JOB defaults to the last submitted
	@$(BIN)/python -m launch cancel $(JOB) $(ARGS)

.PHONY: list
list: $(VENV)/dev.stamp ## the newest jobs and studies
	@$(BIN)/python -m launch list $(ARGS)

##@ Trouble

.PHONY: diagnose
diagnose: $(VENV)/dev.stamp ## what made a job fail; JOB=ID or FILE=job.log, or a log on standard input
	@$(BIN)/python -m launch diagnose $(or $(FILE),$(JOB),-) $(ARGS)

.PHONY: demo-failure
demo-failure: $(VENV)/dev.stamp ## provoke one of the seven failures here, N=1 to 7, and see what is said about it
	@$(BIN)/python -m launch demo $(or $(N),6)

.PHONY: troubleshooting
troubleshooting: $(VENV)/dev.stamp ## write docs/troubleshooting.md from launch/causes.yaml
	@$(BIN)/python -m launch.diagnose.pages

##@ Keep up

.PHONY: audit
audit: $(VENV)/dev.stamp ## known vulnerabilities in what the locks name; needs the network
	@$(BIN)/python scripts/audit.py $(ARGS)

.PHONY: lock
lock: $(VENV)/uv.stamp ## write requirements/*.lock and docs/versions.md; UPGRADE=1 moves forward and says what changed
	@$(BIN)/python scripts/lock.py $(UV) $(if $(UPGRADE),--upgrade)

.PHONY: clean
clean: ## remove what was built and trained here, the environment included
	@rm -rf $(VENV) jobs build dist *.egg-info .pytest_cache .ruff_cache

.PHONY: help
help: ## this list
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} \
	  /^[a-z0-9-]+:.*## / {printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# The environment: made once from a lock with hashes. The dev lock holds all that the cpu lock holds.
UV = $(if $(shell command -v uv),uv,$(BIN)/uv)

$(VENV)/uv.stamp:
	@command -v $(PYTHON) >/dev/null || \
	  { echo "there is no $(PYTHON) here; trainyard needs Python 3.11 to 3.13: make PYTHON=python3.12 train" >&2; exit 2; }
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' || \
	  { echo "trainyard needs Python 3.11 to 3.13; $$($(PYTHON) --version) came. Name one: make PYTHON=python3.12 train" >&2; exit 2; }
	@$(PYTHON) -m venv $(VENV)
	@command -v uv >/dev/null || $(BIN)/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	@touch $@

$(VENV)/dev.stamp: requirements/dev.lock $(VENV)/uv.stamp
	@echo "Installing requirements/dev.lock into $(VENV)"
	@$(UV) pip install --quiet --compile-bytecode --python $(BIN)/python --require-hashes -r $<
	@touch $(VENV)/cpu.stamp $@

# Rivals, beside the environment rather than in it: without their dependencies, which are ours already.
$(VENV)/benchmark.stamp: requirements/benchmark.lock $(VENV)/dev.stamp
	@$(UV) pip install --quiet --python $(BIN)/python --require-hashes --no-deps --target $(VENV)/rivals -r $<
	@touch $@

$(VENV)/cpu.stamp: requirements/cpu.lock $(VENV)/uv.stamp
	@echo "Installing requirements/cpu.lock into $(VENV)"
	@$(UV) pip install --quiet --compile-bytecode --python $(BIN)/python --require-hashes -r $<
	@touch $@
