"""What the checks share: prompts, running Hearth, and the measure that compares rows of logits."""
import random
import subprocess
import tempfile
from pathlib import Path

import numpy as np

PROMPT_TOKENS, LIMIT = 300, 2e-4  # of max |logit|
# Where errors of one token reach far: through a recurrent state, or through weights that a router chooses.
LONG_PROMPT_TOKENS, LONG_LIMIT = 600, 5e-4
QUANTIZED_LIMIT = 1e-2  # of files with MXFP4 experts, when the reference rounds activations to int8, too


def is_long(config):
    return bool(getattr(config, "num_experts_per_tok", 0)) or "linear_attention" in (
        getattr(config, "layer_types", None) or [])


def limit(config, is_quantized=False):
    return QUANTIZED_LIMIT if is_quantized else LONG_LIMIT if is_long(config) else LIMIT


def random_prompt(n_vocab, seed=1, length=PROMPT_TOKENS):
    rng = random.Random(seed)
    return [rng.randrange(n_vocab) for _ in range(length)]


def prompt(config):
    return random_prompt(config.vocab_size, length=LONG_PROMPT_TOKENS if is_long(config) else PROMPT_TOKENS)


def hearth_logits(hearth, model, tokens, *options):
    """float32 rows that `hearth logits` computes for the tokens."""
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "logits"
        command = [str(hearth), "logits", "-m", str(model), "--tokens", ",".join(map(str, tokens)), *options,
                   "--out", str(out)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"exit status {done.returncode}: {done.stderr.strip() or done.stdout.strip()}")
        rows = np.fromfile(out, dtype="<f4")
    if rows.size == 0 or rows.size % len(tokens):
        raise RuntimeError(f"{rows.size} values for {len(tokens)} tokens")
    return rows.reshape(len(tokens), -1)


def difference(reference, rows):
    """max |difference| / max |logit| at each position."""
    if reference.shape != rows.shape:
        raise RuntimeError(f"shape {rows.shape}, expected {reference.shape}")
    if not np.isfinite(rows).all():
        return np.full(len(rows), np.inf)
    return np.abs(reference - rows).max(axis=1) / np.abs(reference).max()
