/* What a bench found, as a table or as JSON. */
#include "cli/bench.h"
#include "cli/report.h"
#include "cli/say.h"

/* ---- JSON ---- */

/* The figures of the first prefill and of the first decode of one session stand at the top. */
static void first_json(hth_json *json, const hth_bench *b, bool decode) {
    for (size_t i = 0; i < b->n_rows; i++) {
        const hth_bench_row *row = &b->rows[i];
        if (row->decode != decode || row->sessions != 1) continue;
        hth_report_measure(json, decode ? "decode_tokens_per_s" : "prefill_tokens_per_s", row->median);
        if (!hth_bench_has_limits(b)) return;
        hth_report_measure(json, decode ? "decode_fraction_of_read" : "prefill_fraction_of_peak",
                           decode ? hth_bench_of_read(b, &row->cost, hth_bench_seconds(row))
                                  : hth_bench_of_peak(b, &row->cost, hth_bench_seconds(row)));
        return;
    }
}

static void row_json(hth_json *json, const hth_bench *b, const hth_bench_row *row) {
    hth_json_open(json, NULL, '{');
    hth_json_text(json, "test", row->decode ? "decode" : "prefill");
    hth_json_int(json, "tokens", row->tokens);
    hth_json_int(json, "depth", row->depth);
    hth_json_int(json, "marks", row->marks);
    hth_json_int(json, "sessions", row->sessions);
    hth_report_measure(json, "tokens_per_s", row->median);
    hth_report_measure(json, "tokens_per_s_each", row->median / (double)row->sessions);
    hth_report_measure(json, "least", row->least);
    hth_report_measure(json, "most", row->most);
    hth_json_open(json, "samples", '[');
    for (int64_t k = 0; k < b->flags.reps; k++) hth_report_measure(json, NULL, row->rates[k]);
    hth_json_close(json, ']');
    hth_json_uint(json, "passes", row->cost.passes);
    hth_json_uint(json, "weight_bytes", row->cost.weight_bytes);
    hth_json_uint(json, "kv_bytes", row->cost.kv_bytes);
    hth_json_uint(json, "linear_int8_ops", row->cost.int8_ops);
    hth_json_uint(json, "linear_float_ops", row->cost.float_ops);
    hth_json_uint(json, "attention_ops", row->cost.attention_ops);
    hth_bench_fractions_json(json, b, &row->cost, hth_bench_seconds(row));
    hth_bench_ops_json(json, b, row);
    hth_json_close(json, '}');
}

static void report_json(const hth_bench *b) {
    hth_json json = {.out = stdout};
    hth_json_open(&json, NULL, '{');
    hth_report_model(&json, b->path, b->engine);
    hth_json_int(&json, "reps", b->flags.reps);
    first_json(&json, b, false);
    first_json(&json, b, true);
    hth_bench_limits_json(&json, b);
    hth_json_open(&json, "rows", '[');
    for (size_t i = 0; i < b->n_rows; i++) row_json(&json, b, &b->rows[i]);
    hth_json_close(&json, ']');
    hth_bench_sweep_json(&json, b);
    hth_report_counters(&json, b->engine);
    hth_json_close(&json, '}');
}

/* ---- Table ---- */

static bool has_batches(const hth_bench *b) {
    return b->batches.count > 0;
}

static void put_heading(const hth_bench *b) {
    hth_outf("%-8s %8s %8s %6s", "test", "tokens", "depth", "marks");
    if (has_batches(b)) hth_outf(" %8s %12s", "sessions", "each/s");
    hth_outf(" %12s %12s %12s", "tokens/s", "least", "most");
    if (hth_bench_has_limits(b)) hth_outf(" %8s %8s", "of read", "of peak");
    hth_outf("\n");
}

static void put_row(const hth_bench *b, const hth_bench_row *row) {
    hth_outf("%-8s %8lld %8lld %6lld", row->decode ? "decode" : "prefill", (long long)row->tokens,
             (long long)row->depth, (long long)row->marks);
    if (has_batches(b)) hth_outf(" %8lld %12.2f", (long long)row->sessions, row->median / (double)row->sessions);
    hth_outf(" %12.2f %12.2f %12.2f", row->median, row->least, row->most);
    hth_bench_fractions_columns(b, &row->cost, hth_bench_seconds(row));
    hth_outf("\n");
}

static void report_table(const hth_bench *b) {
    hth_outf("%s, %d thread%s, kernels %s, KV %s\n", b->path, b->info.threads, hth_plural(b->info.threads),
             b->info.kernels, b->info.kv);
    if (b->n_rows > 0) put_heading(b);
    for (size_t i = 0; i < b->n_rows; i++) put_row(b, &b->rows[i]);
    hth_bench_limits_table(b);
    hth_bench_sweep_table(b);
    hth_bench_ops_table(b);
    hth_bench_fractions_notes(b);
}

void hth_bench_report(const hth_bench *b) {
    if (b->args.common.json) report_json(b);
    else report_table(b);
}
