#include "cli/report.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/say.h"
#include "cli/verbs.h"

int hth_report_check_picture(const char *path) {
    FILE *file = fopen(path, "ae");
    if (file && fclose(file) == 0) return HTH_EXIT_OK;
    hth_complain("cannot write %s: %s", path, strerror(errno));
    return HTH_EXIT_FAILED;
}

void hth_report_measure(hth_json *json, const char *key, double value) {
    hth_json_double(json, key, round(value * 1000) / 1000);
}

void hth_report_model(hth_json *json, const char *path, const hearth_engine *engine) {
    hearth_model_info info;
    hearth_engine_info(engine, &info);
    hth_json_bytes(json, "model", path, strlen(path));
    hth_json_text(json, "architecture", info.architecture);
    hth_json_int(json, "context", info.context);
    hth_json_int(json, "threads", info.threads);
    hth_json_text(json, "kernels", info.kernels);
    hth_json_text(json, "kv", info.kv);
}

void hth_report_counters(hth_json *json, const hearth_engine *engine) {
    hearth_counters counters;
    hearth_engine_counters(engine, &counters);
    hth_json_open(json, "counters", '{');
    hth_json_uint(json, "calls", counters.calls);
    hth_json_uint(json, "passes", counters.passes);
    hth_json_uint(json, "rows", counters.rows);
    hth_json_uint(json, "outputs", counters.outputs);
    hth_json_uint(json, "row_reads", counters.row_reads);
    hth_json_uint(json, "refaults", counters.refaults);
    hth_json_uint(json, "kept_warm", counters.kept_warm);
    hth_json_uint(json, "blocks_used", counters.blocks_used);
    hth_json_uint(json, "blocks_total", counters.blocks_total);
    hth_json_uint(json, "block_copies", counters.block_copies);
    hth_json_uint(json, "marks_left", counters.marks_left);
    hth_json_uint(json, "restores", counters.restores);
    hth_json_uint(json, "marks_used", counters.marks_used);
    hth_json_uint(json, "marks_total", counters.marks_total);
    hth_json_uint(json, "weight_bytes", counters.weight_bytes);
    hth_json_uint(json, "kv_bytes", counters.kv_bytes);
    hth_json_uint(json, "linear_int8_ops", counters.linear_int8_ops);
    hth_json_uint(json, "linear_float_ops", counters.linear_float_ops);
    hth_json_uint(json, "attention_ops", counters.attention_ops);
    hth_json_close(json, '}');
}

void hth_report_plan(hth_json *json, const hearth_engine *engine) {
    const hearth_plan_term *terms;
    size_t count = hearth_engine_plan(engine, &terms);
    hth_json_open(json, "plan", '[');
    for (size_t i = 0; i < count; i++) {
        hth_json_open(json, NULL, '{');
        hth_json_text(json, "what", terms[i].what);
        hth_json_uint(json, "bytes", terms[i].bytes);
        hth_json_bool(json, "mapped", terms[i].mapped);
        hth_json_close(json, '}');
    }
    hth_json_close(json, ']');
}
