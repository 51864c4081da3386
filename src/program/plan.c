#include "program/plan.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "program/rules.h"

/* ---- Lifetimes --------------------------------------------------------------------------------------------------- */

/* The ops [begin, end] during which a tensor's bytes are needed, and an op that may not write over it although nothing
 * reads it later (-1: none). */
typedef struct life {
    int32_t begin, end, kept_from;
} life;

static bool is_computed(const hth_tensor *t) {
    return t->class == HTH_ACTIVATION || t->class == HTH_OUTPUT;
}

static hth_step step_of(const hth_op *op) {
    return hth_op_rule_of(op->opcode)->step;
}

/* Whether an op belongs to the step that began with op `first`. */
static bool joins(const hth_op *op, const hth_op *first) {
    switch (step_of(first)) {
    case HTH_STEP_ALONE: return false;
    case HTH_STEP_ROWS:
    case HTH_STEP_SELECT: return step_of(op) == HTH_STEP_ROWS;
    case HTH_STEP_LINEAR: return step_of(op) == HTH_STEP_LINEAR && op->in[0] == first->in[0];
    }
    return false;
}

/* First op after the step that begins with op `first`. */
static int32_t step_end(const hth_program *p, int32_t first) {
    int32_t end = first + 1;
    while (end < p->n_ops && joins(&p->ops[end], &p->ops[first])) end++;
    return end;
}

/* Whether op `add` is an ADD of the output of the op before it. */
static bool is_epilogue(const hth_program *p, int32_t add) {
    if (add >= p->n_ops || p->ops[add].opcode != HTH_OP_ADD) return false;
    hth_tensor_id before = p->ops[add - 1].out;
    return p->ops[add].in[0] == before || p->ops[add].in[1] == before;
}

/* Make every operand of the step [first, end) live to the step's end, so that nothing which begins in it finds its
 * place free. */
static void stretch_lives(const hth_program *p, int32_t first, int32_t end, life *lives) {
    for (int32_t i = first; i < end; i++) {
        const hth_op *op = &p->ops[i];
        for (int j = 0; j < HTH_OP_INPUTS; j++)
            if (op->in[j] != HTH_NONE && lives[op->in[j]].end < end - 1) lives[op->in[j]].end = end - 1;
        if (op->out != HTH_NONE && lives[op->out].end < end - 1) lives[op->out].end = end - 1;
    }
}

static void find_lives(const hth_program *p, life *lives) {
    for (int t = 0; t < p->n_tensors; t++) {
        const hth_tensor *tensor = &p->tensors[t];
        lives[t] = (life){tensor->writer, tensor->last_use > tensor->writer ? tensor->last_use : tensor->writer, -1};
    }
    for (int32_t i = 0, end; i < p->n_ops; i = end) {
        end = step_end(p, i);
        stretch_lives(p, i, end, lives);
        if (step_of(&p->ops[i]) != HTH_STEP_LINEAR || !is_epilogue(p, end)) continue;
        life *input = &lives[p->ops[i].in[0]];
        if (input->end < end) input->end = end;
        input->kept_from = end;
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
        if (in == HTH_NONE || p->tensors[in].class != HTH_ACTIVATION) continue;
        bool dies = p->tensors[in].last_use == index && lives[in].kept_from != index;
        for (int j = 0; j < HTH_OP_INPUTS; j++)
            if (op->in[j] == in && !(in_place >> j & 1)) dies = false;
        if (!dies) continue;
        assert(same_shape(&p->tensors[in], &p->tensors[op->out]));
        return in;
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

/* ---- Packing ----------------------------------------------------------------------------------------------------- */

/* Tensors that take each other's place, as one. Large ones are placed first, each at the lowest offset that is free for
 * its whole life. */
typedef struct chain {
    hth_tensor_id first; /* its place */
    int32_t begin, end;  /* ops that need it */
    uint64_t bytes, offset;
} chain;

static bool tensor_bytes(const hth_tensor *t, const hth_extents *extents, uint64_t *bytes) {
    uint64_t n = sizeof(float);
    for (int i = 0; i < t->n_dims; i++)
        if (!hth_mul_u64(n, (uint64_t)t->dims[i].n, &n) ||
            !hth_mul_u64(n, (uint64_t)extents->value[t->dims[i].symbol], &n))
            return false;
    return hth_round_up_u64(n, HTH_PLAN_ALIGN, bytes) && *bytes <= INT64_MAX;
}

static int larger_first(const void *a, const void *b) {
    const chain *x = a, *y = b;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
    return x->begin < y->begin ? -1 : x->begin > y->begin;
}

/* Put *c among the `count` chains that have their offset, which are in order of it; false when the arena would pass
 * what 63 bits can count. */
static bool pack(chain *packed, int count, const chain *c) {
    uint64_t at = 0;
    int i = 0;
    for (; i < count; i++) {
        if (packed[i].end < c->begin || packed[i].begin > c->end) continue;
        if (packed[i].offset >= at && packed[i].offset - at >= c->bytes) break;
        uint64_t top = packed[i].offset + packed[i].bytes;
        if (top > at) at = top;
    }
    if (at > INT64_MAX - c->bytes) return false;
    while (i > 0 && packed[i - 1].offset > at) i--;
    while (i < count && packed[i].offset <= at) i++;
    memmove(&packed[i + 1], &packed[i], (size_t)(count - i) * sizeof *packed);
    packed[i] = *c;
    packed[i].offset = at;
    return true;
}

static hearth_status too_large(const hth_program *p, hth_tensor_id t, hearth_error *err) {
    return hth_fail(err, HEARTH_TOO_LONG, "%s: the activations do not fit 63 bits", p->tensors[t].name);
}

/* List the chains of the arena. */
static hearth_status list_chains(const hth_program *p, const life *lives, const hth_plan *plan, chain *chains,
                                 int *count, hearth_error *err) {
    *count = 0;
    for (int t = 0; t < p->n_tensors; t++) {
        if (plan->place[t] != t || t == p->logits) continue;
        chain *c = &chains[(*count)++];
        *c = (chain){.first = t, .begin = lives[t].begin, .end = lives[t].end};
        if (!tensor_bytes(&p->tensors[t], &plan->extents, &c->bytes)) return too_large(p, t, err);
    }
    return HEARTH_OK;
}

/* Give every tensor its offset. `chains` and `packed` have room for all tensors. */
static hearth_status place_all(const hth_program *p, const life *lives, chain *chains, chain *packed, hth_plan *plan,
                               hearth_error *err) {
    int count;
    HTH_TRY(list_chains(p, lives, plan, chains, &count, err));
    qsort(chains, (size_t)count, sizeof *chains, larger_first);
    for (int i = 0; i < count; i++)
        if (!pack(packed, i, &chains[i])) return too_large(p, chains[i].first, err);
    for (int i = 0; i < count; i++) {
        plan->offset[packed[i].first] = packed[i].offset;
        if (packed[i].offset + packed[i].bytes > plan->bytes) plan->bytes = packed[i].offset + packed[i].bytes;
    }
    for (int t = 0; t < p->n_tensors; t++)
        if (plan->place[t] != HTH_NONE && plan->place[t] != t) plan->offset[t] = plan->offset[plan->place[t]];
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
    chain *chains = malloc(2 * n * sizeof *chains);
    hearth_status status;
    if (out->offset && out->place && lives && chains) {
        for (size_t t = 0; t < n; t++) out->offset[t] = UINT64_MAX;
        find_lives(program, lives);
        find_places(program, lives, out->place);
        status = place_all(program, lives, chains, chains + n, out, err);
    } else status = hth_fail(err, HEARTH_NO_MEMORY, "no memory to plan %d tensors", program->n_tensors);
    free(lives);
    free(chains);
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

/* Whether an operand of a step lies apart from op's output, or has its very place. */
static bool is_apart(const hth_program *p, const hth_plan *plan, const hth_op *op, hth_tensor_id operand) {
    if (operand == HTH_NONE || operand == op->out || !is_computed(&p->tensors[operand])) return true;
    bool same_place =
        plan->place[operand] == plan->place[op->out] && same_shape(&p->tensors[operand], &p->tensors[op->out]);
    return same_place || !overlap(p, plan, operand, op->out);
}

static bool step_is_valid(const hth_program *p, const hth_plan *plan, int32_t first, int32_t end) {
    for (int32_t i = first; i < end; i++) {
        const hth_op *op = &p->ops[i];
        if (op->out == HTH_NONE) continue;
        for (int32_t j = first; j < end; j++) {
            if (!is_apart(p, plan, op, p->ops[j].out)) return false;
            for (int k = 0; k < HTH_OP_INPUTS; k++)
                if (!is_apart(p, plan, op, p->ops[j].in[k])) return false;
        }
        bool product = step_of(op) == HTH_STEP_LINEAR;
        if (product && overlap(p, plan, op->out, op->in[0])) return false;
        for (int32_t j = first; product && j < i; j++)
            if (overlap(p, plan, op->out, p->ops[j].out)) return false;
        if (product && i == end - 1 && is_epilogue(p, end) && overlap(p, plan, p->ops[end].out, op->in[0]))
            return false;
    }
    return true;
}

/* The promises about neighbours that a backend may run as one step. */
static bool steps_are_valid(const hth_program *p, const hth_plan *plan) {
    for (int32_t i = 0, end; i < p->n_ops; i = end) {
        end = step_end(p, i);
        if (!step_is_valid(p, plan, i, end)) return false;
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
