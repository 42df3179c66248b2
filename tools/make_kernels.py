"""Makes `keras_bert/kernels/ir` from the Triton kernels in `tools/kernels`.

Needs Triton (it comes with torch on Linux; another version may order its IR otherwise than 3.8,
with which the files were made), but no GPU. A kernel's numbers become the `$names` of a
template; sizes of blocks are what the files differ in.
Run: python tools/make_kernels.py
"""

import argparse
import re
import sys
from pathlib import Path

TOOLS = Path(__file__).resolve().parent
sys.path.insert(0, str(TOOLS))
FOLDER = TOOLS.parent / "keras_bert" / "kernels" / "ir"

NUMBERS = {"length": "i32", "heads": "i32", "rows": "i32", "hidden": "i32", "threshold": "i32"}
NUMBERS |= {"scale": "fp32", "factor": "fp32", "epsilon": "fp32"}
TYPES = {"groups": "*i32", "seed": "*u32"}
TYPES |= dict.fromkeys(("log_sums", "deltas", "means", "slopes", "gamma", "beta", "sums"), "*fp32")


def files() -> dict:
    """Each file's (kernel, constants of the compiler)."""
    from kernels import attention, gelu, residual_norm

    found = {}
    for units in (32, 64):
        sizes = {"D": units, "BLOCK": 64}
        for name, drop in (("", False), ("_dropout", True)):
            found[f"attention_forward_{units}{name}"] = attention.forward, sizes | {"DROP": drop}
        found[f"attention_backward_{units}"] = attention.backward, sizes
    for width in (128, 256, 512, 1024):
        for name, drop in (("", False), ("_dropout", True)):
            constants = {"WIDTH": width, "DROP": drop}
            found[f"norm_forward_{width}{name}"] = residual_norm.norm_forward, constants
        found[f"norm_backward_{width}"] = residual_norm.norm_backward, {"WIDTH": width}
    for name, tanh in (("exact", False), ("tanh", True)):
        constants = {"ROWS": 16, "WIDTH": 512, "TANH": tanh}
        found[f"gelu_forward_{name}"] = gelu.gelu_forward, constants
        found[f"gelu_backward_{name}"] = gelu.gelu_backward, constants
    return found


def template(kernel, constants: dict) -> str:
    """A kernel's IR, with `$name` where a number or the float type is to stand."""
    from triton._C.libtriton import ir
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource
    from triton.compiler.compiler import make_backend

    names = [name for name in kernel.arg_names if name not in constants]
    tensors = [name for name in names if name not in NUMBERS]
    numbers = [name for name in names if name in NUMBERS]
    signature = {name: TYPES.get(name, "*bf16") for name in tensors}
    signature |= {name: NUMBERS[name] for name in numbers}
    signature |= dict.fromkeys(constants, "constexpr")
    aligned = {(kernel.arg_names.index(name),): [["tt.divisibility", 16]] for name in tensors}
    source = ASTSource(kernel, signature, constants, aligned)
    target = GPUTarget("cuda", 90, 32)
    backend = make_backend(target)
    options = backend.parse_options({})
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    module = source.make_ir(
        target,
        options,
        backend.get_codegen_implementation(options),
        backend.get_module_map(),
        context,
    )
    text = backend.make_ttir(module, {}, options, 90).str_nodebug()
    for place, name in reversed([*enumerate(names)]):
        text = re.sub(rf"%arg{place}\b", f"%{name}", text)
    lines = []
    for name in numbers:
        kind = NUMBERS[name].replace("fp", "f")
        text, count = re.subn(rf"(, )?%{name}: {kind}\b", "", text, count=1)
        if not count:
            raise ValueError(f"{kernel.__name__} has no argument {name}: {kind}")
        lines.append(f"    %{name} = arith.constant ${name} : {kind}\n")
    head = "attributes {noinline = false} {\n"
    text = text.replace(head, head + "".join(lines), 1)
    return text.replace("bf16", "$float")


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing: fail if files differ")
    check = parser.parse_args(argv).check
    made = {f"{name}.mlir": template(*how) for name, how in files().items()}
    there = {path.name: path.read_text("utf-8") for path in FOLDER.glob("*.mlir")}
    if check:
        wrong = [name for name in sorted(made | there) if made.get(name) != there.get(name)]
        if wrong:
            sys.exit(f"not what this tool makes: {', '.join(wrong)}")
        return
    FOLDER.mkdir(exist_ok=True)
    for name in there.keys() - made.keys():
        (FOLDER / name).unlink()
    for name, text in made.items():
        (FOLDER / name).write_text(text, encoding="utf-8")
        print(f"{name}: {len(text)} characters")


if __name__ == "__main__":
    main()
