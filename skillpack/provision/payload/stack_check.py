#!/usr/bin/env python3
"""Import torch, flash-attn, vLLM and verl in this interpreter and run a small kernel. Prints one JSON document.

Usage: stack_check.py
Each part is tried by itself, so that a broken one does not hide the others. The list is
[{id, ok, text, ...}]; ok is null for what cannot be tried here (no GPU).
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import sys

PARTS = ("torch", "flash_attn", "vllm", "verl", "ajet")


def imported(name: str) -> dict:
    """Import one package, its compiled part too, and tell its version or the error."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            module = importlib.import_module(name)
            if name == "flash_attn":
                importlib.import_module("flash_attn_2_cuda")
            if name == "vllm":
                importlib.import_module("vllm._C")
    except BaseException as error:  # a broken extension may raise anything, SystemExit included
        return {"id": name, "ok": False, "text": f"{type(error).__name__}: {error}"}
    return {"id": name, "ok": True, "text": str(getattr(module, "__version__", "imported"))}


def cuda() -> dict:
    """Tell whether torch reaches a GPU."""
    torch = importlib.import_module("torch")
    built = torch.version.cuda
    if not built:
        return {"id": "cuda", "ok": False, "text": "Torch not compiled with CUDA enabled"}
    try:
        if not torch.cuda.is_available():
            torch.cuda.init()
        cards = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    except Exception as error:
        return {"id": "cuda", "ok": False, "text": f"{type(error).__name__}: {error}"}
    abi = torch._C._GLIBCXX_USE_CXX11_ABI
    return {
        "id": "cuda",
        "ok": bool(cards),
        "text": "CUDA {}, C++11 ABI {}, {}".format(built, abi, ", ".join(cards) or "no card"),
    }


def kernel() -> dict:
    """Run attention on a GPU by flash-attn and by torch and compare; bfloat16, as AgentJet trains."""
    torch = importlib.import_module("torch")
    flash_attn_func = importlib.import_module("flash_attn").flash_attn_func

    try:
        torch.manual_seed(0)
        q, k, v = (torch.randn(1, 64, 4, 64, device="cuda", dtype=torch.bfloat16) for _ in range(3))
        ours = flash_attn_func(q, k, v, causal=True).transpose(1, 2)
        theirs = torch.nn.functional.scaled_dot_product_attention(
            q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=True
        )
        difference = float((ours - theirs).abs().max())
    except Exception as error:
        return {"id": "kernel", "ok": False, "text": f"{type(error).__name__}: {error}"}
    # two bfloat16 results of size about 1 differ by a few units of 2**-8
    return {
        "id": "kernel",
        "ok": difference < 0.05,
        "text": f"attention differs from torch's by {difference:.4f} at most",
    }


def main() -> int:
    """Try all parts and print them."""
    parts = [imported(name) for name in PARTS]
    works = {part["id"] for part in parts if part["ok"]}
    parts.append(cuda() if "torch" in works else {"id": "cuda", "ok": None, "text": "torch does not import"})
    ready = {"torch", "flash_attn"} <= works and parts[-1]["ok"]
    parts.append(kernel() if ready else {"id": "kernel", "ok": None, "text": "not tried: see the parts above"})
    sys.stdout.write(json.dumps(parts) + "\n")
    return 0 if all(part["ok"] for part in parts) else 1


if __name__ == "__main__":
    sys.exit(main())
