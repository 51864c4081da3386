/* A tiny model of each architecture as a list of keys and tensors, which a test changes before it makes the GGUF image.
 * Weights are all ones: the tests that use it look at programs, not at numbers. */
#ifndef HTH_TESTS_TINY_MODEL_H
#define HTH_TESTS_TINY_MODEL_H

#include "support/gguf_image.h"

#define TINY_KEYS    32
#define TINY_TENSORS 96
#define TINY_ARRAY   8

typedef struct tiny_key {
    char name[96]; /* whole */
    uint32_t type; /* hth_gguf_type of the value, or of the elements */
    int count;     /* -1: a scalar */
    union {
        uint64_t whole; /* any integer type, and bool */
        float real;
        const char *text;
        uint32_t array[TINY_ARRAY]; /* u32, i32 or, in the lowest byte, bool */
    };
} tiny_key;

typedef struct tiny_tensor {
    char name[64];
    uint32_t dtype, n_dims;
    uint64_t dims[4];
} tiny_tensor;

typedef struct tiny_model {
    char architecture[16]; /* empty: the file does not say */
    int n_keys, n_tensors;
    tiny_key keys[TINY_KEYS];
    tiny_tensor tensors[TINY_TENSORS];
} tiny_model;

/* Two layers (gemma3: six), embedding 64, four heads of 16 over two KV heads (gpt2: four), feed-forward 96, vocabulary
 * 80, context 256; mixtures: two of four experts of 32 (olmoe: 96);
 * hybrids: a recurrent layer, then one of attention. An unknown architecture ends the test program. */
void tiny_make(tiny_model *m, const char *architecture);
extern const char *const tiny_architectures[]; /* NULL ends it */
bool tiny_is_mixture(const char *architecture);
bool tiny_is_hybrid(const char *architecture);

/* Add or change ARCHITECTURE.suffix. */
void tiny_set_int(tiny_model *m, const char *suffix, uint32_t type, uint64_t value);
void tiny_set_u32(tiny_model *m, const char *suffix, uint32_t value);
void tiny_set_f32(tiny_model *m, const char *suffix, float value);
void tiny_set_text(tiny_model *m, const char *suffix, const char *value);
void tiny_set_array(tiny_model *m, const char *suffix, uint32_t element, int count, const uint32_t *values);
/* Add or change a key by its whole name. */
void tiny_set_global_text(tiny_model *m, const char *key, const char *value);
void tiny_remove_key(tiny_model *m, const char *suffix);

tiny_tensor *tiny_find(tiny_model *m, const char *name);                                  /* NULL when there is none */
void tiny_add(tiny_model *m, const char *name, uint32_t dtype, uint64_t d0, uint64_t d1); /* d1 0: one dimension */
void tiny_add_slabs(tiny_model *m, const char *name, uint32_t dtype, uint64_t d0, uint64_t d1, uint64_t d2);
/* ffn_gate_exps, ffn_up_exps and ffn_down_exps of a block, float32. */
void tiny_add_experts(tiny_model *m, int block, uint64_t embd, uint64_t ff, uint64_t experts);
void tiny_remove(tiny_model *m, const char *name);

/* Write the file into *im, which the caller frees. */
void tiny_image(const tiny_model *m, gguf_image *im);

#endif
