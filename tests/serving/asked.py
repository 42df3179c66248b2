"""Asks an export in a process that has nothing of ours."""

import json
import subprocess
import sys

# What a server knows: TensorFlow, its text ops and nothing of ours.
SERVE = """
import json, sys
import tensorflow as tf
if sys.argv[1] == "text":
    import tensorflow_text
assert not [name for name in sys.modules if name.startswith("keras_bert")]
model = tf.saved_model.load(sys.argv[2])

def plain(value):
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value.decode() if isinstance(value, bytes) else value

def tensor(value, spec):
    if not value:  # a list of nothing does not say its shape
        return tf.zeros([0, *(size or 2 for size in spec.shape[1:])], spec.dtype)
    return tf.constant(value, spec.dtype)

for line in sys.stdin:
    signature, inputs = json.loads(line)
    function = model.signatures[signature]
    specs = function.structured_input_signature[1]
    try:
        inputs = {name: tensor(value, specs[name]) for name, value in inputs.items()}
        reply = {k: plain(v.numpy().tolist()) for k, v in function(**inputs).items()}
    except tf.errors.InvalidArgumentError as error:
        reply = {"error": error.message}
    print(json.dumps(reply))
"""


def serve(folder, requests, ops="text", cwd=None):
    """Replies to (signature, inputs by name) as plain values; {"error": message} of a refusal."""
    lines = "\n".join(map(json.dumps, requests))
    command = [sys.executable, "-c", SERVE, ops, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd, input=lines)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
