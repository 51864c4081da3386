#include "program/plan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "program/rules.h"

/* ---- Lifetimes --------------------------------------------------------------------------------------------------- */

/* The ops [begin, end] during which a tensor's bytes are needed, and the op that may not write over it although the
 * tensor dies there. */
typedef struct life {
    int32_t begin, end, keep_from;
} life;

static bool is_computed(const hth_tensor *t) {
    return t->class == HTH_ACTIVATION || t->class == HTH_OUTPUT;
}

/* First op after the group of LINEARs of one input that starts at `first`. */
static int32_t linear_group_end(const hth_program *p, int32_t first) {
    int32_t end = first + 1;
    while (end < p->n_ops && p->ops[end].opcode == HTH_OP_LINEAR && p->ops[end].in[0] == p->ops[first].in[0]) end++;
    return end;
}

/* Whether op `add` is an ADD of the output of the op before it. */
static bool is_epilogue(const hth_program *p, int32_t add) {
    if (add >= p->n_ops || p->ops[add].opcode != HTH_OP_ADD) return false;
    hth_tensor_id before = p->ops[add - 1].out;
    return p->ops[add].in[0] == before || p->ops[add].in[1] == before;
}

static void find_lives(const hth_program *p, life *lives) {
    for (int t = 0; t < p->n_tensors; t++) {
        const hth_tensor *tensor = &p->tensors[t];
        int32_t end = tensor->last_use > tensor->writer ? tensor->last_use : tensor->writer;
        lives[t] = (life){tensor->writer, end, -1};
    }
    for (int32_t i = 0; i < p->n_ops;) {
        if (p->ops[i].opcode != HTH_OP_LINEAR) {
            i++;
            continue;
        }
        int32_t end = linear_group_end(p, i);
        life *input = &lives[p->ops[i].in[0]];
        if (input->end < end - 1) input->end = end - 1;
        if (is_epilogue(p, end)) {
            if (input->end < end) input->end = end;
            input->keep_from = end;
        }
        for (int32_t j = i; j < end; j++) {
            life *out = &lives[p->ops[j].out];
            out->begin = i;
            if (out->end < end - 1) out->end = end - 1;
        }
        i = end;
    }
}

/* ---- In-place chains --------------------------------------------------------------------------------------------- */

static bool same_shape(const hth_tensor *a, const hth_tensor *b) {
    return a->n_dims == b->n_dims && memcmp(a->dims, b->dims, sizeof a->dims) == 0;
}

/* The input whose place op's output takes, or HTH_NONE. */
static hth_tensor_id displaced_input(const hth_program *p, int32_t index, const life *lives) {
    const hth_op *op = &p->ops[index];
    unsigned in_place = hth_op_rule_of(op->opcode)->in_place;
    for (int i = 0; i < HTH_OP_INPUTS; i++) {
        hth_tensor_id in = op->in[i];
        if (!(in_place >> i & 1) || in == HTH_NONE || p->tensors[in].class != HTH_ACTIVATION) continue;
        bool dies = lives[in].end == index && lives[in].keep_from != index;
        for (int j = 0; j < HTH_OP_INPUTS; j++)
            if (op->in[j] == in && !(in_place >> j & 1)) dies = false;
        if (dies && same_shape(&p->tensors[in], &p->tensors[op->out])) return in;
    }
    return HTH_NONE;
}

/* Give each computed tensor its place, and each place the whole life of its chain. */
static void find_places(const hth_program *p, life *lives, hth_tensor_id *place) {
    for (int t = 0; t < p->n_tensors; t++) place[t] = is_computed(&p->tensors[t]) ? t : HTH_NONE;
    for (int32_t i = 0; i < p->n_ops; i++) {
        hth_tensor_id out = p->ops[i].out;
        hth_tensor_id in = out == HTH_NONE ? HTH_NONE : displaced_input(p, i, lives);
        if (in == HTH_NONE) continue;
        place[out] = place[in];
        if (lives[place[in]].end < lives[out].end) lives[place[in]].end = lives[out].end;
    }
    hth_tensor_id root = place[p->logits];
    for (int t = 0; t < p->n_tensors; t++)
        if (place[t] == root) place[t] = p->logits;
}

/* ---- First fit --------------------------------------------------------------------------------------------------- */

typedef struct block {
    uint64_t offset, bytes;
    int32_t end; /* last op that needs it */
} block;

/* The blocks in use, in order of offset. */
typedef struct arena {
    block *blocks;
    int count;
    uint64_t bytes; /* high-water mark */
} arena;

static void release_dead(arena *a, int32_t now) {
    int kept = 0;
    for (int i = 0; i < a->count; i++)
        if (a->blocks[i].end >= now) a->blocks[kept++] = a->blocks[i];
    a->count = kept;
}

/* The lowest gap of `bytes`; false when the arena would pass what 63 bits can count. */
static bool take(arena *a, uint64_t bytes, int32_t end, uint64_t *offset) {
    uint64_t at = 0;
    int i = 0;
    for (; i < a->count; i++) {
        if (a->blocks[i].offset - at >= bytes) break;
        at = a->blocks[i].offset + a->blocks[i].bytes;
    }
    uint64_t top;
    if (!hth_add_u64(at, bytes, &top) || top > INT64_MAX) return false;
    memmove(&a->blocks[i + 1], &a->blocks[i], (size_t)(a->count - i) * sizeof *a->blocks);
    a->blocks[i] = (block){at, bytes, end};
    a->count++;
    if (top > a->bytes) a->bytes = top;
    *offset = at;
    return true;
}

static bool tensor_bytes(const hth_tensor *t, const hth_extents *extents, uint64_t *bytes) {
    uint64_t n = sizeof(float);
    for (int i = 0; i < t->n_dims; i++)
        if (!hth_mul_u64(n, (uint64_t)t->dims[i].n, &n) ||
            !hth_mul_u64(n, (uint64_t)extents->value[t->dims[i].symbol], &n))
            return false;
    return hth_round_up_u64(n, HTH_PLAN_ALIGN, bytes) && *bytes <= INT64_MAX;
}

static hearth_status too_large(const hth_program *p, hth_tensor_id t, hearth_error *err) {
    return hth_fail(err, HEARTH_TOO_LONG, "%s: the activations do not fit 63 bits", p->tensors[t].name);
}

/* Walk the ops in order and place each chain where it starts. A group of LINEARs places all its outputs at its first
 * op. */
static hearth_status place_all(const hth_program *p, const life *lives, arena *a, hth_plan *plan, hearth_error *err) {
    for (int32_t i = 0; i < p->n_ops; i++) {
        hth_tensor_id out = p->ops[i].out;
        if (out == HTH_NONE || plan->place[out] != out || out == p->logits) continue;
        release_dead(a, lives[out].begin);
        uint64_t bytes;
        if (!tensor_bytes(&p->tensors[out], &plan->extents, &bytes) ||
            !take(a, bytes, lives[out].end, &plan->offset[out]))
            return too_large(p, out, err);
    }
    for (int t = 0; t < p->n_tensors; t++)
        if (plan->place[t] != HTH_NONE && plan->place[t] != t) plan->offset[t] = plan->offset[plan->place[t]];
    plan->bytes = a->bytes;
    return tensor_bytes(&p->tensors[p->logits], &plan->extents, &plan->logits_bytes) ? HEARTH_OK
                                                                                     : too_large(p, p->logits, err);
}

hearth_status hth_plan_make(const hth_program *program, const hth_extents *extents, hth_plan *out, hearth_error *err) {
    size_t n = (size_t)program->n_tensors;
    *out = (hth_plan){.extents = *extents};
    out->extents.value[HTH_ONE] = 1;
    out->offset = malloc(n * sizeof *out->offset);
    out->place = malloc(n * sizeof *out->place);
    life *lives = malloc(n * sizeof *lives);
    arena a = {.blocks = malloc((n + 1) * sizeof *a.blocks)};
    hearth_status status;
    if (out->offset && out->place && lives && a.blocks) {
        for (size_t t = 0; t < n; t++) out->offset[t] = UINT64_MAX;
        find_lives(program, lives);
        find_places(program, lives, out->place);
        status = place_all(program, lives, &a, out, err);
    } else status = hth_fail(err, HEARTH_NO_MEMORY, "no memory to plan %d tensors", program->n_tensors);
    free(lives);
    free(a.blocks);
    if (status != HEARTH_OK) hth_plan_free(out);
    return status;
}

void hth_plan_free(hth_plan *plan) {
    free(plan->offset);
    free(plan->place);
    *plan = (hth_plan){0};
}

/* ---- Validity, by other means than the planner's ----------------------------------------------------------------- */

static bool reads(const hth_op *op, hth_tensor_id t) {
    for (int i = 0; i < HTH_OP_INPUTS; i++)
        if (op->in[i] == t) return true;
    return false;
}

static bool overlap(const hth_program *p, const hth_plan *plan, hth_tensor_id s, hth_tensor_id t) {
    bool s_is_logits = plan->place[s] == p->logits, t_is_logits = plan->place[t] == p->logits;
    if (s_is_logits || t_is_logits) return s_is_logits && t_is_logits;
    uint64_t s_bytes = 4 * (uint64_t)hth_tensor_elements(&p->tensors[s], &plan->extents);
    uint64_t t_bytes = 4 * (uint64_t)hth_tensor_elements(&p->tensors[t], &plan->extents);
    return plan->offset[s] < plan->offset[t] + t_bytes && plan->offset[t] < plan->offset[s] + s_bytes;
}

/* Whether `out` may use the bytes of `in`, which dies where out is written. */
static bool may_displace(const hth_program *p, const hth_plan *plan, hth_tensor_id in, hth_tensor_id out) {
    const hth_op *op = &p->ops[p->tensors[out].writer];
    if (plan->offset[in] != plan->offset[out] || !same_shape(&p->tensors[in], &p->tensors[out])) return false;
    unsigned in_place = hth_op_rule_of(op->opcode)->in_place;
    for (int i = 0; i < HTH_OP_INPUTS; i++)
        if (op->in[i] == in && !(in_place >> i & 1)) return false;
    return reads(op, in);
}

/* Whether two tensors that overlap are never needed by one op, or the later takes the earlier's place. */
static bool may_overlap(const hth_program *p, const hth_plan *plan, hth_tensor_id s, hth_tensor_id t) {
    if (p->tensors[s].writer > p->tensors[t].writer) return may_overlap(p, plan, t, s);
    int32_t dies = p->tensors[s].last_use, born = p->tensors[t].writer;
    if (dies < born) return true;
    return dies == born && may_displace(p, plan, s, t);
}

/* The promises about neighbours that a backend may run as one step. */
static bool steps_are_valid(const hth_program *p, const hth_plan *plan) {
    for (int32_t i = 0; i < p->n_ops; i++) {
        if (p->ops[i].opcode != HTH_OP_LINEAR) continue;
        hth_tensor_id in = p->ops[i].in[0];
        int32_t j = i;
        for (; j < p->n_ops && p->ops[j].opcode == HTH_OP_LINEAR && p->ops[j].in[0] == in; j++) {
            if (overlap(p, plan, p->ops[j].out, in)) return false;
            if (j > i && overlap(p, plan, p->ops[j].out, p->ops[i].out)) return false;
        }
        if (j < p->n_ops && p->ops[j].opcode == HTH_OP_ADD && reads(&p->ops[j], p->ops[j - 1].out) &&
            overlap(p, plan, p->ops[j].out, in))
            return false;
    }
    return true;
}

bool hth_plan_is_valid(const hth_program *program, const hth_plan *plan) {
    const hth_program *p = program;
    for (int s = 0; s < p->n_tensors; s++) {
        bool computed = is_computed(&p->tensors[s]);
        if (computed != (plan->place[s] != HTH_NONE)) return false;
        if (!computed || plan->place[s] == p->logits) {
            if (plan->offset[s] != UINT64_MAX) return false;
        } else {
            uint64_t bytes = 4 * (uint64_t)hth_tensor_elements(&p->tensors[s], &plan->extents);
            if (plan->offset[s] % HTH_PLAN_ALIGN != 0 || plan->offset[s] + bytes > plan->bytes) return false;
        }
        for (int t = 0; t < s && computed; t++)
            if (is_computed(&p->tensors[t]) && overlap(p, plan, s, t) && !may_overlap(p, plan, s, t)) return false;
    }
    return plan->place[p->logits] == p->logits && steps_are_valid(p, plan);
}
