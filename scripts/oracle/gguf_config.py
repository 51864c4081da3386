"""The transformers configuration of the model in a GGUF file, from its metadata. What no key records (whether a
router's weights are normalised, how YaRN rounds) is what the architecture's models have."""
from transformers import (Gemma2Config, Gemma3TextConfig, GPT2Config, GptOssConfig, LlamaConfig, MistralConfig,
                          MixtralConfig, OlmoeConfig, Qwen2Config, Qwen2MoeConfig, Qwen3_5MoeTextConfig,
                          Qwen3_5TextConfig, Qwen3Config, Qwen3MoeConfig, Qwen3NextConfig)


def rope_parameters(file):
    rope = {"rope_type": "default", "rope_theta": float(file.key("rope.freq_base", 10000.0))}
    factor = file.key("rope.scaling.factor", 0.0) or 0.0
    kind = file.key("rope.scaling.type", "linear")
    if factor > 0 and kind == "linear":
        rope |= {"rope_type": "linear", "factor": float(factor)}
    elif factor > 0 and kind == "yarn":
        rope |= {"rope_type": "yarn", "factor": float(factor),
                 "original_max_position_embeddings": file.key("rope.scaling.original_context_length")}
    return rope


def gpt2(file, common):
    return GPT2Config(
        vocab_size=common["vocab_size"], n_positions=file.key("context_length"), n_embd=file.key("embedding_length"),
        n_layer=file.key("block_count"), n_head=file.key("attention.head_count"),
        layer_norm_epsilon=file.key("attention.layer_norm_epsilon"),
        tie_word_embeddings=common["tie_word_embeddings"], bos_token_id=None, eos_token_id=None)


def llama(file, common):
    window = file.key("attention.sliding_window", 0)
    if file.key("expert_count", 0):
        return MixtralConfig(num_local_experts=file.key("expert_count"),
                             num_experts_per_tok=file.key("expert_used_count"), sliding_window=window or None,
                             **common)
    if window:
        return MistralConfig(sliding_window=window, **common)
    return LlamaConfig(attention_bias="blk.0.attn_q.bias" in file.tensors,
                       mlp_bias="blk.0.ffn_up.bias" in file.tensors, **common)


def qwen2(file, common):
    return Qwen2Config(**common)


def qwen3(file, common):
    return Qwen3Config(attention_bias="blk.0.attn_q.bias" in file.tensors, **common)


def gemma(file, common):
    return common | dict(
        query_pre_attn_scalar=common["head_dim"], sliding_window=file.key("attention.sliding_window", 0),
        hidden_activation="gelu_pytorch_tanh")


def gemma2(file, common):
    return Gemma2Config(attn_logit_softcapping=file.key("attn_logit_softcapping", 50.0),
                        final_logit_softcapping=file.key("final_logit_softcapping", 30.0), **gemma(file, common))


def gemma3(file, common):
    local = {"rope_type": "default", "rope_theta": float(file.key("rope.freq_base_swa", 10000.0))}
    common["rope_parameters"] = {"full_attention": common["rope_parameters"], "sliding_attention": local}
    return Gemma3TextConfig(final_logit_softcapping=file.key("final_logit_softcapping"), **gemma(file, common))


def experts(file, common):
    return common | dict(num_experts=file.key("expert_count"), num_experts_per_tok=file.key("expert_used_count"),
                         moe_intermediate_size=file.key("expert_feed_forward_length"))


def shared_experts(file, common):
    return experts(file, common) | dict(
        shared_expert_intermediate_size=file.key("expert_shared_feed_forward_length"))


def qwen2moe(file, common):
    return Qwen2MoeConfig(norm_topk_prob=False, **shared_experts(file, common))


def qwen3moe(file, common):
    return Qwen3MoeConfig(norm_topk_prob=True, **experts(file, common))


def olmoe(file, common):
    del common["head_dim"]
    return OlmoeConfig(norm_topk_prob=False, num_experts=file.key("expert_count"),
                       num_experts_per_tok=file.key("expert_used_count"), **common)


def gpt_oss(file, common):
    common["rope_parameters"] |= {"beta_fast": 32.0, "beta_slow": 1.0, "truncate": False}
    common["intermediate_size"] = file.key("expert_feed_forward_length")
    return GptOssConfig(attention_bias=True, sliding_window=file.key("attention.sliding_window"),
                        num_local_experts=file.key("expert_count"), num_experts_per_tok=file.key("expert_used_count"),
                        **common)


def hybrid(file, common):
    trunk = file.key("block_count") - file.key("nextn_predict_layers", 0)
    interval = file.key("full_attention_interval", 4)
    recurrent = file.key("attention.recurrent_layers", [(i + 1) % interval != 0 for i in range(trunk)])
    rope = common["rope_parameters"] | {
        "partial_rotary_factor": file.key("rope.dimension_count") / common["head_dim"]}
    if file.arch != "qwen3next":
        rope |= {"mrope_interleaved": True, "mrope_section": file.key("rope.dimension_sections")[:3]}
    value_heads = file.key("ssm.time_step_rank")
    return common | dict(
        num_hidden_layers=trunk, rope_parameters=rope,
        layer_types=["linear_attention" if is_recurrent else "full_attention" for is_recurrent in recurrent[:trunk]],
        linear_conv_kernel_dim=file.key("ssm.conv_kernel"), linear_key_head_dim=file.key("ssm.state_size"),
        linear_num_key_heads=file.key("ssm.group_count"), linear_num_value_heads=value_heads,
        linear_value_head_dim=file.key("ssm.inner_size") // value_heads)


def qwen35(file, common):
    return Qwen3_5TextConfig(**hybrid(file, common))


def qwen35moe(file, common):
    del common["intermediate_size"]
    return Qwen3_5MoeTextConfig(**shared_experts(file, hybrid(file, common)))


def qwen3next(file, common):
    return Qwen3NextConfig(norm_topk_prob=True, **shared_experts(file, hybrid(file, common)))


CONFIGS = {
    "gpt2": gpt2, "llama": llama, "qwen2": qwen2, "qwen3": qwen3, "gemma2": gemma2, "gemma3": gemma3,
    "qwen2moe": qwen2moe, "qwen3moe": qwen3moe, "olmoe": olmoe, "gpt-oss": gpt_oss, "qwen35": qwen35,
    "qwen35moe": qwen35moe, "qwen3next": qwen3next,
}


def config_from(file):
    if file.arch not in CONFIGS:
        raise SystemExit(f"{file.path}: no transformers configuration for architecture {file.arch!r}")
    width, heads = file.key("embedding_length"), file.key("attention.head_count")
    return CONFIGS[file.arch](file, dict(
        vocab_size=file.tensors["token_embd.weight"].shape[1].item(), hidden_size=width,
        head_dim=file.key("attention.key_length", width // heads), intermediate_size=file.key("feed_forward_length"),
        num_hidden_layers=file.key("block_count"), num_attention_heads=heads,
        num_key_value_heads=file.key("attention.head_count_kv", heads),
        rms_norm_eps=file.key("attention.layer_norm_rms_epsilon"), max_position_embeddings=file.key("context_length"),
        tie_word_embeddings="output.weight" not in file.tensors, rope_parameters=rope_parameters(file)))
