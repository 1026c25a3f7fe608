"""The launcher: everything that runs on your desk. It never imports TensorFlow or trainer/.

__main__ lists the verbs, each with the module or room it lives in. Beside them:

spec       a job file as it is read: YAML with places, ${VARIABLES}, worker pools, the API's own types
project    project.env and the variables; remembered has what was built, packaged, rehearsed and submitted last
machines   which accelerator fits which machine (machines.json)
vertex     jobs on Vertex AI: requests, logs, trials; all of it through gcloud
retry      what `submit --retry` waits for
checks, console, errors    a check as data, the terminal, a sentence with an exit code
"""
