/* The stack machine. Calls of macros, loops, scopes and captured output each have a stack of their own, so nothing that
 * a template does uses the C stack.
 *
 * Scopes: a name is looked for in the innermost scope, then outwards along `outer`, then among the request's variables,
 * then among the functions. An iteration of a loop and a macro's call have a new scope; a macro's lies in the one that
 * the macro was made in. */
#include "text/template_run.h"

#include <assert.h>
#include <string.h>

#include "text/template_builtins.h"
#include "text/template_lexer.h"
#include "text/template_loop.h"
#include "text/template_operate.h"

enum { MAX_CALLS = 200 }; /* macros inside macros */

typedef struct variable {
    uint32_t name;
    hth_value value;
} variable;

typedef struct scope scope;
struct scope {
    scope *outer;
    variable *variables;
    uint32_t count, capacity;
    bool kept; /* a macro closes over it: it may not be used again */
};

struct hth_macro {
    const hth_macro_code *code;
    scope *around;
};

typedef struct frame {
    uint32_t back; /* the instruction to go on with */
    scope *scope;  /* of the caller */
    uint32_t loops, captures, stack;
    uint64_t given; /* bit i: parameter i has an argument */
} frame;

typedef struct loop_state {
    hth_loop *loop;
    scope *outer;
    scope *spare;    /* the last iteration's, to be used again */
    hth_items *kept; /* items that the loop's condition lets through */
    uint32_t looked;
} loop_state;

typedef struct machine {
    hth_env env;
    hth_work *work;
    const hth_code *code;
    hth_value *variables; /* by name: the request's, or a function, or undefined */
    uint32_t at;

    hth_value *stack;
    uint32_t n_stack, stack_capacity;
    scope *scope;
    frame *frames;
    uint32_t n_frames, frame_capacity;
    loop_state *loops;
    uint32_t n_loops, loop_capacity;
    hth_build *captures; /* the first is the output */
    uint32_t n_captures, capture_capacity;
} machine;

/* ---- the stacks ---- */

static bool push(machine *m, hth_value v) {
    if (!HTH_WORK_ROOM(m->work, m->stack, m->n_stack, m->stack_capacity)) return false;
    m->stack[m->n_stack++] = v;
    return true;
}

static hth_value pop(machine *m) {
    assert(m->n_stack > 0);
    return m->stack[--m->n_stack];
}

static hth_value *top(machine *m) {
    assert(m->n_stack > 0);
    return &m->stack[m->n_stack - 1];
}

static hth_build *output(machine *m) {
    return &m->captures[m->n_captures - 1];
}

static bool begin_capture(machine *m, size_t max_size) {
    if (!HTH_WORK_ROOM(m->work, m->captures, m->n_captures, m->capture_capacity)) return false;
    m->captures[m->n_captures++] = (hth_build){.work = m->work, .max_size = max_size};
    return true;
}

static bool end_capture(machine *m) {
    const hth_str *s = hth_build_end(output(m));
    m->n_captures--;
    return s != NULL && push(m, hth_string_value(s));
}

/* ---- scopes ---- */

static scope *new_scope(machine *m, scope *outer) {
    scope *s = HTH_WORK_NEW(m->work, scope);
    if (s != NULL) *s = (scope){.outer = outer};
    return s;
}

static bool enter_scope(machine *m) {
    scope *s = new_scope(m, m->scope);
    if (s == NULL) return false;
    m->scope = s;
    return true;
}

static bool set_variable(machine *m, uint32_t name, hth_value v) {
    scope *s = m->scope;
    for (uint32_t i = 0; i < s->count; i++)
        if (s->variables[i].name == name) {
            s->variables[i].value = v;
            return true;
        }
    if (!HTH_WORK_ROOM(m->work, s->variables, s->count, s->capacity)) return false;
    s->variables[s->count++] = (variable){name, v};
    return true;
}

static bool load_name(machine *m, uint32_t name) {
    uint64_t looks = 0;
    for (const scope *s = m->scope; s != NULL; s = s->outer) {
        looks += 1 + s->count / 8;
        for (uint32_t i = 0; i < s->count; i++)
            if (s->variables[i].name == name)
                return hth_work_charge(m->work, looks / 4) && push(m, s->variables[i].value);
    }
    return hth_work_charge(m->work, looks / 4) && push(m, m->variables[name]);
}

static bool find_variables(machine *m, const hth_dict *variables) {
    m->variables = hth_work_take_array(m->work, m->code->n_names, sizeof *m->variables);
    if (m->variables == NULL) return false;
    for (uint32_t i = 0; i < m->code->n_names; i++) {
        const hth_str *name = m->code->names[i];
        const hth_value *given = hth_dict_find(variables, hth_string_value(name));
        int id = given == NULL ? hth_global_id(name) : -1;
        m->variables[i] = given != NULL ? *given
                          : id >= 0     ? (hth_value){.kind = HTH_GLOBAL, .integer = id}
                                        : hth_missing(name);
    }
    return true;
}

/* ---- calls ---- */

/* Set a variable of a macro, whose name may not be one of the template's. */
static bool set_named(machine *m, const char *text, hth_value v) {
    const hth_value *name = hth_dict_find_text(m->code->name_index, text);
    return name == NULL || set_variable(m, (uint32_t)name->integer, v);
}

/* The parameter of a name; n_params when there is none. */
static uint32_t parameter_of(const machine *m, const hth_macro_code *c, const hth_str *name) {
    uint32_t i = 0;
    while (i < c->n_params && !hth_str_equal(m->code->names[c->params[i]], name)) i++;
    return i;
}

static bool wrong_call(machine *m, const hth_macro_code *c, const char *what) {
    return hth_work_fail(m->work, HEARTH_BAD_ARGUMENT, "macro '%.*s' %s",
                         (int)(c->name->size < 60 ? c->name->size : 60), c->name->data, what);
}

/* Arguments into the scope of a macro that has been entered; *given gets a bit for each parameter that has one. */
static bool bind_arguments(machine *m, const hth_macro_code *c, const hth_call *call, bool given[HTH_MAX_PARAMS]) {
    hth_items *more = hth_items_new(m->work, HTH_A_TUPLE, 0);
    hth_dict *others = hth_dict_new(m->work);
    hth_value caller = hth_nothing();
    if (more == NULL || others == NULL) return false;
    for (uint32_t i = 0; i < c->n_params; i++) given[i] = false;
    for (uint32_t i = 0; i < call->count; i++) {
        if (i >= c->n_params) {
            if (!c->varargs) return wrong_call(m, c, "takes fewer arguments");
            if (!hth_items_put(m->work, more, call->values[i])) return false;
            continue;
        }
        given[i] = true;
        if (!set_variable(m, c->params[i], call->values[i])) return false;
    }
    for (uint32_t i = 0; i < call->n_named; i++) {
        hth_value name = call->named[2 * i], v = call->named[2 * i + 1];
        uint32_t at = parameter_of(m, c, name.str);
        if (at < c->n_params) {
            if (given[at]) return wrong_call(m, c, "got an argument twice");
            given[at] = true;
            if (!set_variable(m, c->params[at], v)) return false;
        } else if (c->caller && hth_str_is(name.str, "caller")) {
            caller = v;
        } else if (!c->kwargs) {
            return wrong_call(m, c, "has no argument of that name");
        } else if (!hth_dict_put(m->work, others, name, v)) {
            return false;
        }
    }
    for (uint32_t i = 0; i < c->n_params; i++)
        if (!given[i] && !set_variable(m, c->params[i], hth_missing(m->code->names[c->params[i]]))) return false;
    if (c->varargs && !set_named(m, "varargs", hth_list_value(more))) return false;
    if (c->kwargs && !set_named(m, "kwargs", hth_dict_value(others))) return false;
    return !c->caller || set_named(m, "caller", caller);
}

static bool call_macro(machine *m, const hth_macro *macro, const hth_call *call, uint32_t stack) {
    const hth_macro_code *c = macro->code;
    bool given[HTH_MAX_PARAMS];
    if (m->n_frames == MAX_CALLS)
        return hth_work_fail(m->work, HEARTH_OVER_BUDGET, "macros call each other more than %d deep", MAX_CALLS);
    if (!HTH_WORK_ROOM(m->work, m->frames, m->n_frames, m->frame_capacity)) return false;
    frame *f = &m->frames[m->n_frames];
    *f = (frame){.back = m->at, .scope = m->scope, .loops = m->n_loops, .captures = m->n_captures, .stack = stack};
    m->scope = new_scope(m, macro->around);
    if (m->scope == NULL || !bind_arguments(m, c, call, given)) return false;
    m->n_frames++;
    for (uint32_t i = 0; i < c->n_params; i++) f->given |= (uint64_t)given[i] << i;
    m->n_stack = stack;
    m->at = c->body;
    return begin_capture(m, 0);
}

static bool return_from_macro(machine *m) {
    assert(m->n_frames > 0);
    const frame f = m->frames[--m->n_frames];
    assert(m->n_captures == f.captures + 1 && m->n_loops == f.loops && m->n_stack == f.stack);
    m->at = f.back;
    m->scope = f.scope;
    return end_capture(m);
}

/* The callee lies under b values and c pairs. */
static bool call(machine *m, const hth_instruction *i) {
    uint32_t size = i->b + 2u * i->c, base = m->n_stack - size - 1;
    assert(m->n_stack > size);
    hth_value callee = m->stack[base], out = hth_none();
    hth_call args = {.what = "the call",
                     .values = m->stack + base + 1,
                     .count = i->b,
                     .named = m->stack + base + 1 + i->b,
                     .n_named = i->c};
    switch (callee.kind) {
    case HTH_MACRO: return call_macro(m, callee.macro, &args, base);
    case HTH_GLOBAL:
        if (!hth_global_apply(&m->env, (int)callee.integer, &args, &out)) return false;
        break;
    case HTH_METHOD:
        if (!hth_method_apply(&m->env, callee.method, &args, &out)) return false;
        break;
    case HTH_LOOP: return hth_work_fail(m->work, HEARTH_UNSUPPORTED, "recursive loops are not supported");
    default:
        return hth_use(m->work, callee) &&
               hth_work_fail(m->work, HEARTH_BAD_ARGUMENT, "a %s cannot be called", hth_kind_name(callee));
    }
    m->n_stack = base;
    return push(m, out);
}

static bool apply(machine *m, const hth_instruction *i) {
    uint32_t size = i->b + 2u * i->c, base = m->n_stack - size - 1;
    hth_value v = m->stack[base], out = hth_none();
    hth_call args = {
        .values = m->stack + base + 1, .count = i->b, .named = m->stack + base + 1 + i->b, .n_named = i->c};
    if (i->op == HTH_OP_FILTER) {
        args.what = hth_filter_name(i->a);
        if (!hth_filter_apply(&m->env, i->a, v, &args, &out)) return false;
    } else {
        bool holds;
        args.what = hth_test_name(i->a);
        if (!hth_test_apply(&m->env, i->a, v, &args, &holds)) return false;
        out = hth_truth(holds);
    }
    m->n_stack = base;
    return push(m, out);
}

static bool make_macro(machine *m, const hth_instruction *i) {
    hth_macro *macro = HTH_WORK_NEW(m->work, hth_macro);
    if (macro == NULL) return false;
    *macro = (hth_macro){.code = &m->code->macros[i->a], .around = m->scope};
    for (scope *s = m->scope; s != NULL && !s->kept; s = s->outer) s->kept = true;
    m->at = macro->code->end;
    return push(m, (hth_value){.kind = HTH_MACRO, .macro = macro});
}

/* ---- loops ---- */

static bool begin_loop(machine *m) {
    hth_value v = pop(m);
    if (!HTH_WORK_ROOM(m->work, m->loops, m->n_loops, m->loop_capacity)) return false;
    loop_state *l = &m->loops[m->n_loops];
    *l = (loop_state){.loop = HTH_WORK_NEW(m->work, hth_loop), .outer = m->scope};
    if (l->loop == NULL) return false;
    *l->loop = (hth_loop){.index = -1};
    m->n_loops++;
    return hth_iterate(m->work, v, &l->loop->items);
}

static loop_state *innermost(machine *m) {
    assert(m->n_loops > 0);
    return &m->loops[m->n_loops - 1];
}

/* A new scope inside the loop, the last one again if nobody kept it. */
static bool loop_scope(machine *m, loop_state *l) {
    if (l->spare == NULL || l->spare->kept) l->spare = new_scope(m, l->outer);
    if (l->spare == NULL) return false;
    l->spare->count = 0;
    m->scope = l->spare;
    return true;
}

static bool look_at_next(machine *m, const hth_instruction *i) {
    loop_state *l = innermost(m);
    if (l->kept == NULL && (l->kept = hth_items_new(m->work, HTH_A_LIST, 0)) == NULL) return false;
    if (l->looked >= l->loop->items->count) {
        l->loop->items = l->kept;
        m->at += (uint32_t)(i->a - 1);
        return true;
    }
    return loop_scope(m, l) && push(m, l->loop->items->items[l->looked++]);
}

static bool keep_item(machine *m) {
    loop_state *l = innermost(m);
    bool keep = hth_value_true(pop(m));
    m->scope = l->outer;
    return !keep || hth_items_put(m->work, l->kept, l->loop->items->items[l->looked - 1]);
}

static bool next_iteration(machine *m, const hth_instruction *i) {
    loop_state *l = innermost(m);
    m->scope = l->outer;
    if (l->loop->index + 1 >= l->loop->items->count) {
        m->at += (uint32_t)(i->a - 1);
        return true;
    }
    l->loop->index++;
    return loop_scope(m, l) && set_named(m, "loop", (hth_value){.kind = HTH_LOOP, .loop = l->loop}) &&
           push(m, l->loop->items->items[l->loop->index]);
}

static bool end_loop(machine *m) {
    m->scope = innermost(m)->outer;
    m->n_loops--;
    return true;
}

/* ---- values ---- */

static bool make_list(machine *m, hth_list_kind kind, uint32_t count) {
    hth_items *l = hth_items_new(m->work, kind, count);
    assert(m->n_stack >= count);
    if (l == NULL || !hth_work_charge(m->work, count)) return false;
    m->n_stack -= count;
    for (uint32_t i = 0; i < count; i++) hth_items_put(m->work, l, m->stack[m->n_stack + i]);
    return push(m, hth_list_value(l));
}

static bool make_dict(machine *m, uint32_t count) {
    hth_dict *d = hth_dict_new(m->work);
    assert(m->n_stack >= 2 * count);
    if (d == NULL || !hth_work_charge(m->work, count)) return false;
    m->n_stack -= 2 * count;
    for (uint32_t i = 0; i < count; i++) {
        const hth_value *pair = &m->stack[m->n_stack + 2 * i];
        if (!hth_use(m->work, pair[0]) || !hth_dict_put(m->work, d, pair[0], pair[1])) return false;
    }
    return push(m, hth_dict_value(d));
}

static bool unpack(machine *m, uint32_t count) {
    hth_items *l;
    hth_value v = pop(m);
    if (!hth_use(m->work, v) || !hth_iterate(m->work, v, &l) || !hth_work_charge(m->work, count)) return false;
    if (l->count != count)
        return hth_work_fail(m->work, HEARTH_BAD_ARGUMENT, "%u values for %u names", l->count, count);
    for (uint32_t i = count; i-- > 0;)
        if (!push(m, l->items[i])) return false;
    return true;
}

static bool store_attribute(machine *m, hth_value name) {
    hth_value space = pop(m), v = pop(m);
    if (space.kind != HTH_NAMESPACE)
        return hth_use(m->work, space) &&
               hth_work_fail(m->work, HEARTH_BAD_ARGUMENT, "an attribute of a %s cannot be set: only of a namespace",
                             hth_kind_name(space));
    return hth_dict_put(m->work, space.dict, name, v);
}

static bool slice(machine *m) {
    hth_value bounds[3], out;
    bounds[2] = pop(m);
    bounds[1] = pop(m);
    bounds[0] = pop(m);
    if (!hth_slice(m->work, *top(m), bounds, &out)) return false;
    *top(m) = out;
    return true;
}

static bool unknown(machine *m, const hth_instruction *i) {
    const hth_str *name = m->code->constants[i->a].str;
    return hth_work_fail(m->work, HEARTH_UNSUPPORTED, "there is no %s '%.*s'",
                         i->op == HTH_OP_NO_FILTER ? "filter" : "test", (int)(name->size < 60 ? name->size : 60),
                         name->data);
}

/* x y -> result, or for a link of a chain that does not hold: false, and a jump. */
static bool compare(machine *m, const hth_instruction *i) {
    hth_value y = pop(m), x = pop(m);
    bool holds;
    if (!hth_compare_values(m->work, (hth_compare)i->b, x, y, &holds)) return false;
    if (i->op == HTH_OP_CHAIN && holds) return push(m, y);
    if (i->op == HTH_OP_CHAIN) m->at += (uint32_t)(i->a - 1);
    return push(m, hth_truth(holds));
}

static bool operate(machine *m, const hth_instruction *i) {
    hth_value y = pop(m), x = pop(m), out;
    if (i->op == HTH_OP_ITEM ? !hth_item(m->work, x, y, &out) : !hth_binary(m->work, i->b, x, y, &out)) return false;
    return push(m, out);
}

static void jump(machine *m, const hth_instruction *i) {
    m->at += (uint32_t)(i->a - 1); /* `at` is behind the jump already */
}

/* ---- the machine ---- */

/* Instructions that write, or enter and leave things. */
static bool step_output(machine *m, const hth_instruction *i) {
    switch (i->op) {
    case HTH_OP_TEXT: return hth_build_str(output(m), m->code->constants[i->a].str);
    case HTH_OP_PRINT: return hth_value_print(output(m), pop(m));
    case HTH_OP_SCOPE: return enter_scope(m);
    case HTH_OP_SCOPE_END: m->scope = m->scope->outer; return true;
    case HTH_OP_CAPTURE: return begin_capture(m, 0);
    case HTH_OP_CAPTURE_END: return end_capture(m);
    case HTH_OP_FOR: return begin_loop(m);
    case HTH_OP_FOR_LOOK: return look_at_next(m, i);
    case HTH_OP_FOR_KEEP: return keep_item(m);
    case HTH_OP_FOR_NEXT: return next_iteration(m, i);
    case HTH_OP_FOR_NONE:
        m->scope = innermost(m)->outer;
        if (innermost(m)->loop->index >= 0) jump(m, i);
        return true;
    case HTH_OP_FOR_END: return end_loop(m);
    case HTH_OP_MACRO: return make_macro(m, i);
    case HTH_OP_DEFAULT:
        if ((m->frames[m->n_frames - 1].given >> i->c & 1) != 0) jump(m, i);
        return true;
    default: assert(i->op == HTH_OP_RETURN); return return_from_macro(m);
    }
}

/* Instructions that move values. */
static bool step(machine *m, const hth_instruction *i) {
    hth_value v;
    switch (i->op) {
    case HTH_OP_CONST: return push(m, m->code->constants[i->a]);
    case HTH_OP_NAME: return load_name(m, (uint32_t)i->a);
    case HTH_OP_STORE: v = pop(m); return set_variable(m, (uint32_t)i->a, v);
    case HTH_OP_STORE_ATTR: return store_attribute(m, m->code->constants[i->a]);
    case HTH_OP_ATTR: v = *top(m); return hth_attribute(m->work, v, m->code->constants[i->a].str, top(m));
    case HTH_OP_SLICE: return slice(m);
    case HTH_OP_CALL: return call(m, i);
    case HTH_OP_FILTER:
    case HTH_OP_TEST: return apply(m, i);
    case HTH_OP_NO_FILTER:
    case HTH_OP_NO_TEST: return unknown(m, i);
    case HTH_OP_ITEM:
    case HTH_OP_BINARY: return operate(m, i);
    case HTH_OP_COMPARE:
    case HTH_OP_CHAIN: return compare(m, i);
    case HTH_OP_NEGATE:
    case HTH_OP_PLUS: v = *top(m); return hth_negate(m->work, v, i->op == HTH_OP_NEGATE, top(m));
    case HTH_OP_NOT: *top(m) = hth_truth(!hth_value_true(*top(m))); return true;
    case HTH_OP_AND:
    case HTH_OP_OR:
        if (hth_value_true(*top(m)) == (i->op == HTH_OP_OR)) jump(m, i);
        else m->n_stack--;
        return true;
    case HTH_OP_JUMP: jump(m, i); return true;
    case HTH_OP_JUMP_FALSE:
        if (!hth_value_true(pop(m))) jump(m, i);
        return true;
    case HTH_OP_LIST: return make_list(m, HTH_A_LIST, (uint32_t)i->a);
    case HTH_OP_TUPLE: return make_list(m, HTH_A_TUPLE, (uint32_t)i->a);
    case HTH_OP_DICT: return make_dict(m, (uint32_t)i->a);
    case HTH_OP_UNPACK: return unpack(m, (uint32_t)i->a);
    case HTH_OP_POP: m->n_stack--; return true;
    default: return step_output(m, i);
    }
}

/* The failure, with the place in the template; a template's own words stay as they are. */
static void name_place(machine *m, uint32_t at) {
    hth_work *w = m->work;
    char text[sizeof w->text];
    uint32_t line, column;
    if (w->status == HEARTH_REFUSED) return;
    hth_source_place(m->code->source, m->code->source_size, at, &line, &column);
    memcpy(text, w->text, sizeof text);
    hearth_status status = w->status;
    w->status = HEARTH_OK;
    hth_work_fail(w, status, "template, line %u, column %u: %s", line, column, text);
}

bool hth_template_run(hth_work *w, const hth_code *code, const hth_run_inputs *inputs, const hth_str **out) {
    machine m = {.work = w, .code = code, .env = {.work = w, .now = inputs->now}};
    if (!find_variables(&m, inputs->variables) || !begin_capture(&m, inputs->max_output) || !enter_scope(&m))
        return false;
    for (;;) {
        const hth_instruction *i = &code->instructions[m.at];
        if (i->op == HTH_OP_END) break;
        m.at++;
        if (hth_work_charge(w, 1) && step(&m, i) && w->status == HEARTH_OK) continue;
        name_place(&m, i->at);
        return false;
    }
    assert(m.n_stack == 0 && m.n_frames == 0 && m.n_loops == 0 && m.n_captures == 1);
    *out = hth_build_end(output(&m));
    return *out != NULL;
}
