/* The parts that pictures share. */
#ifndef HTH_CLI_SVG_H
#define HTH_CLI_SVG_H

#include <stdbool.h>
#include <stdio.h>

/* Begin a picture on white, with a title and a subtitle, which need not be UTF-8. Classes of text and lines: title,
 * sub, tick (small), group (bold), grid. `style` adds to them. */
void hth_svg_begin(FILE *out, int width, int height, const char *style, const char *title, const char *subtitle);
/* Text as XML holds it; what it cannot hold becomes '?'. */
void hth_svg_text(FILE *out, const char *text);
/* End it. False when a part of it could not be written (errno). */
bool hth_svg_end(FILE *out);

/* A round number of about a quarter of the scale, for a grid. */
double hth_svg_step(double top);

#endif
