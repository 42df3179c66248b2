"""What is done with a task's weights: saved whole or in part, copied, quantized, tuned in part."""

from pathlib import Path

import keras

from keras_bert.atomic import write_folder
from keras_bert.checkpoints import load_tuned_part, save_tuned_part
from keras_bert.checkpoints.preset import FILES
from keras_bert.models import merge_lora, tune


class TaskWeights:
    """That side of `BertTask`; a base beside KerasHub's."""

    def save_to_preset(self, preset_dir: str, max_shard_size: float = 10) -> None:
        """Writes settings, weights and vocabulary into a folder, whole or not at all.

        Args:
            preset_dir: the folder to make, or the preset to replace.
            max_shard_size: gigabytes that the file of weights may have.

        Raises:
            FileExistsError: if the folder holds something else.
            ValueError: if the weights take more: `from_preset` reads them from one file.
        """
        save = super().save_to_preset

        def write(path):
            save(path, max_shard_size=max_shard_size)
            if shards := sorted(Path(path).glob("*.weights.json")):
                raise ValueError(
                    f"the weights take more than max_shard_size={max_shard_size} GB and would be "
                    f"split ({shards[0].name}), but from_preset reads one file: pass a larger one"
                )

        write_folder(preset_dir, write, FILES)

    def get_config(self) -> dict:
        known = {id(weight) for weight in self.backbone.weights}
        own = [weight for weight in self.weights if id(weight) not in known]
        trained = {id(weight) for weight in self.trainable_weights}
        frozen = [weight.path for weight in own if id(weight) not in trained]
        return super().get_config() | ({"frozen": frozen} if frozen else {})

    @classmethod
    def from_config(cls, config):
        config = dict(config)
        frozen = config.pop("frozen", ())
        task = super().from_config(config)
        task.freeze_own(frozen)
        return task

    def freeze_own(self, paths) -> None:
        """Freezes weights beside the backbone's, by their paths."""
        for weight in self.weights if paths else ():
            if weight.path in paths:
                weight.trainable = False

    def load_weights(self, filepath, skip_mismatch: bool = False, **kwargs) -> None:
        """Reads what `save_weights` wrote, with the state of a compiled model's optimizer.

        Args:
            filepath: a file .weights.h5.
            skip_mismatch: as `keras.Model.load_weights`.
            **kwargs: as there.
        """
        if self.compiled and not self.optimizer.built:
            with self.step.scope():
                self.optimizer.build(self.trainable_variables)
        super().load_weights(filepath, skip_mismatch=skip_mismatch, **kwargs)

    def save_task_weights(self, filepath: str) -> None:
        """Writes what the task has on top of the backbone; no state of the optimizer."""
        keras.saving.save_weights(self, filepath, objects_to_skip=self._not_of_the_task())

    def load_task_weights(self, filepath: str, objects_to_skip=()) -> None:
        """Reads what `save_task_weights` wrote, but for the layers to skip."""
        skipped = [*self._not_of_the_task(), *objects_to_skip]
        keras.saving.load_weights(self, filepath, objects_to_skip=skipped)

    def _not_of_the_task(self) -> list:
        return [*self.backbone._flatten_layers(), self.optimizer]

    def copy_state(self, other: keras.Model) -> None:
        """Takes over another model's weights and random state, keeping what is compiled.

        Args:
            other: a model of the same shape.

        Raises:
            ValueError: if it has another shape.
        """
        mine, theirs = (
            [variable for layer in model.layers for variable in layer.variables]
            for model in (self, other)
        )
        if [v.shape for v in mine] != [v.shape for v in theirs]:
            raise ValueError(f"{other.name} has weights of other shapes than {self.name}")
        for variable, value in zip(mine, theirs, strict=True):
            variable.assign(value)

    def quantize(self, mode: str, **kwargs) -> None:
        """Quantizes the backbone, such as to "int8"; heads, of few weights, stay as they are.

        Args:
            mode: as `keras.Model.quantize`.
            **kwargs: as there.
        """
        self.backbone.quantize(mode, **kwargs)
        self.train_function = self.test_function = self.predict_function = None

    def tune(self, what: str, lora_rank: int = 8):
        """Chooses which weights are trained; see `keras_bert.models.tune`."""
        return tune(self, what, lora_rank)

    def merge_lora(self) -> int:
        """Folds low-rank updates into their kernels; see `keras_bert.models.merge_lora`."""
        return merge_lora(self)

    def save_tuned_part(self, path: str) -> None:
        """Writes what was tuned alone; see `keras_bert.checkpoints.save_tuned_part`."""
        save_tuned_part(self, path)

    def load_tuned_part(self, path: str) -> None:
        """Reads what `save_tuned_part` wrote; see `keras_bert.checkpoints.load_tuned_part`."""
        load_tuned_part(self, path)
