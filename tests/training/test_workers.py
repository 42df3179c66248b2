"""Several worker processes: deaths on the way, and what SLURM and Kubernetes are given."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
RECIPES = ROOT / "recipes"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("workers", "deaths"),
    [
        # The chief, worker 0, writes the checkpoints, and is the others' coordinator.
        pytest.param(2, ["1:4"], id="a worker of two"),
        pytest.param(3, ["2:4", "0:8"], id="a worker of three, then the chief"),
    ],
)
def test_a_run_with_deaths_ends_at_the_bits_of_an_unbroken_one(tmp_path, workers, deaths):
    command = [sys.executable, str(Path(__file__).with_name("train_workers.py")), str(tmp_path)]
    command += ["--workers", str(workers), "--deaths", *deaths]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment.pop("TF_CONFIG", None)
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=3600)
    assert run.returncode == 0, run.stdout[-1000:] + run.stderr[-4000:]
    assert run.stdout.count("ended: -9") == len(deaths)
    # A death ends all workers.
    restarts = json.loads(run.stdout.partition("RESTARTS")[2])
    assert len(restarts) == workers and min(restarts) >= len(deaths)
    found = {path.name: dict(np.load(path)) for path in tmp_path.glob("*.npz")}
    assert len(found) == 2 * workers
    whole = found["whole-0.npz"]
    assert whole["updates"] == 12 and len(whole) > 20
    for name, arrays in found.items():
        for key in whole.keys() - {"losses"}:
            np.testing.assert_array_equal(arrays[key], whole[key], err_msg=f"{name} {key}")
        # The history of a resumed `fit` begins with the epoch that it resumes. The sum of an
        # interrupted epoch is one number then, no longer one of each worker.
        losses = arrays["losses"]
        np.testing.assert_allclose(losses, whole["losses"][-len(losses) :], rtol=1e-6, err_msg=name)


@pytest.fixture(scope="module")
def manifest():
    yaml = pytest.importorskip("yaml")
    return list(yaml.safe_load_all((RECIPES / "kubernetes" / "train.yaml").read_text("utf-8")))


def test_the_manifest_is_one_of_kubernetes(manifest):
    validate = pytest.importorskip("kubernetes_validate")
    for document in manifest:
        validate.validate(document, "1.34", strict=True)
    wrong = json.loads(json.dumps(manifest[1]))
    wrong["spec"]["completionMod"] = wrong["spec"].pop("completionMode")
    with pytest.raises(validate.ValidationError):
        validate.validate(wrong, "1.34", strict=True)


def test_the_pods_of_the_job_are_the_workers(manifest):
    """As the Job's controller names the pods, and the kubelet expands the variables."""
    service, job = manifest
    spec = job["spec"]
    pod = spec["template"]["spec"]
    assert spec["completionMode"] == "Indexed"
    assert spec["completions"] == spec["parallelism"]  # workers wait for each other
    # The API server accepts a limit per index only with "Never", and then addresses change.
    assert pod["restartPolicy"] == "OnFailure" and "backoffLimitPerIndex" not in spec
    assert spec["backoffLimit"] >= 100 * spec["completions"]
    assert service["spec"]["clusterIP"] == "None" and service["spec"]["publishNotReadyAddresses"]
    assert pod["subdomain"] == service["metadata"]["name"]
    assert service["spec"]["selector"].items() <= spec["template"]["metadata"]["labels"].items()
    (container,) = pod["containers"]
    for index in range(spec["completions"]):
        values = {}
        for variable in container["env"]:
            if "valueFrom" in variable:
                assert "job-completion-index" in variable["valueFrom"]["fieldRef"]["fieldPath"]
                values[variable["name"]] = str(index)
            else:  # only variables above can be used
                known = lambda match: values[match[1]]  # noqa: B023, E731
                values[variable["name"]] = re.sub(r"\$\((\w+)\)", known, variable["value"])
        config = json.loads(values["TF_CONFIG"])
        assert config["task"] == {"type": "worker", "index": index}
        host, port = config["cluster"]["worker"][index].split(":")
        assert host == f"{job['metadata']['name']}-{index}.{pod['subdomain']}"
        assert int(port) == container["ports"][0]["containerPort"]
    assert len(config["cluster"]["worker"]) == spec["completions"]


def test_the_script_for_slurm_starts_one_worker_per_machine():
    path = RECIPES / "slurm.sh"
    assert subprocess.run(["bash", "-n", path], check=False).returncode == 0
    script = path.read_text("utf-8")
    options = dict(re.findall(r"^#SBATCH --([\w-]+)=(\S+)", script, re.M))
    # SlurmClusterResolver counts the tasks of a host together.
    assert options["ntasks-per-node"] == "1" and options["distribution"] == "block"
    assert "srun --kill-on-bad-exit=1" in script
