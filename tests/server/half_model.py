"""A SavedModel of plain TensorFlow operations, whose answers follow from its definitions.

Nothing of this package is in it except the contract.
"""

from keras_bert.serving.export_contract import described, write_contract


def write_model(folder, add):
    """`serving_default`: y = x / 2 + add; others of more inputs, of strings, of several dtypes."""
    import tensorflow as tf

    def spec(name, dtype="float32", shape=(None,)):
        return tf.TensorSpec(shape, dtype, name=name)

    @tf.function(input_signature=[spec("x")])
    def half(x):
        return {"y": x / 2 + add}

    @tf.function(
        input_signature=[
            spec("tag", "string"),
            spec("signal", "int32", (None, 5)),
            spec("sensor", "float32", (None, 2, 2)),
        ]
    )
    def three(tag, signal, sensor):
        return {
            "name": tf.strings.upper(tag),
            "total": tf.reduce_sum(signal, axis=1),
            "turned": tf.transpose(sensor, [0, 2, 1]),
        }

    @tf.function(input_signature=[spec("text", "string")])
    def echo(text):
        return {"same": text, "same_bytes": text}

    @tf.function(input_signature=[spec("a", "bool"), spec("b", "int64"), spec("c", "uint8")])
    def kinds(a, b, c):
        return {"a": ~a, "b": b, "c": c}

    @tf.function(input_signature=[spec("x")])
    def odd(x):
        return {"log": tf.math.log(x), "x": x}

    module = tf.Module()
    functions = {"serving_default": half, "three": three, "echo": echo, "kinds": kinds, "odd": odd}
    concrete = {name: f.get_concrete_function() for name, f in functions.items()}
    tf.saved_model.save(module, str(folder), signatures=concrete)
    signatures = {
        name: {
            "inputs": described({s.name: s for s in functions[name].input_signature}),
            "outputs": described(f.structured_outputs),
        }
        for name, f in concrete.items()
    }
    write_contract(folder, {"task": "Made", "signatures": signatures, "examples": []})
