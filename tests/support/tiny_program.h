/* The program that a recipe makes of a tiny model, and what the tests of the recipes ask of it. With cmocka. */
#ifndef HTH_TESTS_TINY_PROGRAM_H
#define HTH_TESTS_TINY_PROGRAM_H

#include "program/program.h"
#include "support/tiny_model.h"

/* Read a model as far as it goes; the program, NULL after an error, is the caller's. */
hearth_status tiny_read(const tiny_model *m, hth_program **p, hearth_error *err);

/* Fail the test unless reading it has this status, and where `text` is not NULL, an error that holds it. */
void tiny_expect(const tiny_model *m, hearth_status status, const char *text);

/* The program of a model that must be good; the caller's. */
hth_program *tiny_program(const tiny_model *m);

const hth_op *tiny_find_op(const hth_program *p, const char *site); /* NULL when there is none */
const hth_op *tiny_op_at(const hth_program *p, const char *site);   /* fails the test when there is none */

#endif
