"""The tiny models that `make_tiny.py` makes: at least one of each architecture, and its variants that matter."""
from typing import NamedTuple

VOCAB = 512
WINDOW = 64  # shorter than the prompts of the checks, so that the window cuts


class Model(NamedTuple):
    family: str              # of transformers' classes
    shape: dict              # the configuration
    keys: dict = {}          # GGUF keys to add to what the converter writes, or to drop when the value is None
    options: tuple = ()      # of the converter
    mtp: bool = False        # with a block that predicts one token more, which transformers ignores
    mxfp4: bool = False      # experts are packed as published checkpoints have them, and so in the GGUF file


SHAPE = dict(vocab_size=VOCAB, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, max_position_embeddings=512, rms_norm_eps=1e-5, tie_word_embeddings=False,
             bos_token_id=0, eos_token_id=0, pad_token_id=None)
GEMMA = SHAPE | dict(num_attention_heads=2, num_key_value_heads=1, head_dim=48, query_pre_attn_scalar=48,
                     sliding_window=WINDOW, rms_norm_eps=1e-6, tie_word_embeddings=True, bos_token_id=2,
                     eos_token_id=1, pad_token_id=0)
# Rows are multiples of 32, so that the files can be quantized.
LONG = SHAPE | dict(intermediate_size=64, num_attention_heads=2, num_key_value_heads=1, max_position_embeddings=1024)
EXPERTS = LONG | dict(moe_intermediate_size=32, num_experts=8, num_experts_per_tok=3)
SHARED = EXPERTS | dict(shared_expert_intermediate_size=64, num_experts=5, num_experts_per_tok=2)


def rope(kind="default", theta=10000.0, **more):
    return {"rope_type": kind, "rope_theta": theta, **more}


def yarn(theta=10000.0):
    return rope("yarn", theta, factor=4.0, original_max_position_embeddings=128)


def gemma3_rope(**full):
    return {"full_attention": rope(theta=1e6) | full, "sliding_attention": rope()}


# Both ends of the ramp lie inside the frequencies and between two of them, so that rounding them would show.
GPT_OSS = LONG | dict(
    num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2, head_dim=32, sliding_window=32,
    intermediate_size=32, num_local_experts=6, num_experts_per_tok=3, attention_bias=True, rope_parameters=rope(
        "yarn", 150000.0, factor=4.0, original_max_position_embeddings=1024, beta_fast=32.0, beta_slow=1.0,
        truncate=False))


def layers(letters):
    return ["full_attention" if letter == "A" else "linear_attention" for letter in letters]


def hybrid(layer_letters, key_heads, value_heads, kernel=4):
    """D is a recurrent layer, A one with attention. Half of each head is rotated, in three sections."""
    return dict(
        num_hidden_layers=len(layer_letters), layer_types=layers(layer_letters), head_dim=32, rms_norm_eps=1e-6,
        linear_num_key_heads=key_heads, linear_num_value_heads=value_heads, linear_key_head_dim=32,
        linear_value_head_dim=32, linear_conv_kernel_dim=kernel, rope_parameters=rope(
            theta=1e7, partial_rotary_factor=0.5))


def sectioned(shape):
    return shape | dict(rope_parameters=shape["rope_parameters"] | dict(mrope_interleaved=True,
                                                                        mrope_section=[3, 3, 2]))


# This family has no dense width, and its files no key for it.
QWEN35_MOE = {key: value for key, value in SHARED.items() if key != "intermediate_size"}
NO_MTP = ("--no-mtp",)

MODELS = {
    "llama": Model("Llama", SHAPE | dict(num_hidden_layers=3)),
    "llama-tied": Model("Llama", SHAPE | dict(tie_word_embeddings=True, head_dim=24, num_key_value_heads=1)),
    "llama-rope3": Model("Llama", SHAPE | dict(rope_parameters=rope(
        "llama3", 500000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
        original_max_position_embeddings=128))),
    "llama-linear": Model("Llama", SHAPE | dict(rope_parameters=rope("linear", factor=4.0))),
    "llama-yarn": Model("Llama", SHAPE | dict(rope_parameters=yarn(), head_dim=32)),
    "llama-bias": Model("Llama", SHAPE | dict(attention_bias=True, mlp_bias=True, hidden_size=72,
                                              intermediate_size=100, num_attention_heads=3, num_key_value_heads=3)),
    "mistral": Model("Mistral", SHAPE | dict(sliding_window=WINDOW, rope_parameters=rope(theta=1e6)),
                     {"llama.attention.sliding_window": WINDOW}),
    # More rows than the tokenizer has tokens, as published files have.
    "qwen2": Model("Qwen2", SHAPE | dict(vocab_size=VOCAB + 24, hidden_size=80, intermediate_size=112,
                                         num_attention_heads=5, num_key_value_heads=1, tie_word_embeddings=True,
                                         rms_norm_eps=1e-6, rope_parameters=rope(theta=1e6))),
    "qwen3": Model("Qwen3", SHAPE | dict(head_dim=32, rms_norm_eps=1e-6, rope_parameters=rope(theta=1e6))),
    "qwen3-yarn": Model("Qwen3", SHAPE | dict(head_dim=32, tie_word_embeddings=True, rope_parameters=yarn(1e6))),
    "gemma2": Model("Gemma2", GEMMA | dict(num_hidden_layers=4, num_key_value_heads=2, attn_logit_softcapping=50.0,
                                           final_logit_softcapping=30.0)),
    # Older files lack the key, whose default is what this model has.
    "gemma3": Model("Gemma3", GEMMA | dict(num_hidden_layers=7, rope_parameters=gemma3_rope()),
                    {"gemma3.rope.freq_base_swa": None}),
    "gemma3-linear": Model("Gemma3", GEMMA | dict(
        num_hidden_layers=7, num_attention_heads=4, num_key_value_heads=2, head_dim=16, query_pre_attn_scalar=16,
        final_logit_softcapping=20.0, rope_parameters=gemma3_rope(rope_type="linear", factor=8.0))),
    "gpt2": Model("GPT2", dict(vocab_size=VOCAB, n_positions=320, n_ctx=320, n_embd=64, n_layer=2, n_head=4,
                               bos_token_id=0, eos_token_id=0)),
    "mixtral": Model("Mixtral", LONG | dict(intermediate_size=32, num_local_experts=8, num_experts_per_tok=2,
                                            rope_parameters=rope(theta=1e6))),
    "qwen3moe": Model("Qwen3Moe", EXPERTS | dict(num_attention_heads=4, num_key_value_heads=2, head_dim=32,
                                                 rms_norm_eps=1e-6, norm_topk_prob=True,
                                                 rope_parameters=rope(theta=1e6))),
    # All experts are used in each row.
    "qwen3moe-all": Model("Qwen3Moe", EXPERTS | dict(head_dim=32, rms_norm_eps=1e-6, norm_topk_prob=True,
                                                     num_experts=3, tie_word_embeddings=True,
                                                     rope_parameters=yarn(1e6))),
    "qwen2moe": Model("Qwen2Moe", SHARED | dict(rms_norm_eps=1e-6, norm_topk_prob=False,
                                                          rope_parameters=rope(theta=1e6))),
    "olmoe": Model("Olmoe", LONG | dict(intermediate_size=32, num_key_value_heads=2, num_experts=8,
                                        num_experts_per_tok=4, norm_topk_prob=False)),
    "gptoss": Model("GptOss", GPT_OSS),
    "gptoss-mxfp4": Model("GptOss", GPT_OSS | dict(num_hidden_layers=2), mxfp4=True),
    # Three value heads to a key head; an irregular list of layers.
    "qwen35": Model("Qwen3_5", sectioned(LONG | hybrid("DADDA", 2, 6) | dict(tie_word_embeddings=True)),
                    options=NO_MTP),
    "qwen35-mtp": Model("Qwen3_5", sectioned(LONG | hybrid("DDDA", 2, 2, kernel=3)), options=("--fuse-qkv",), mtp=True),
    "qwen35moe": Model("Qwen3_5Moe", sectioned(QWEN35_MOE | hybrid("DDDA", 2, 4)), options=NO_MTP),
    "qwen35moe-mtp": Model("Qwen3_5Moe", sectioned(QWEN35_MOE | hybrid("AD", 2, 2)),
                           options=("--fuse-gate-up-exps",), mtp=True),
    "qwen3next": Model("Qwen3Next", SHARED | hybrid("DDAD", 2, 4), options=NO_MTP),
    # Older files have no list of layers: every fourth has attention.
    "qwen3next-old": Model("Qwen3Next", SHARED | hybrid("DDDA", 2, 2),
                           {"qwen3next.attention.recurrent_layers": None}, options=NO_MTP),
}
