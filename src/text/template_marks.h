/* A rendering, and where in it each message begins.
 *
 * Templates differ in how they walk over the messages (slices, reversed loops, several passes, turns that join several
 * messages), and any of them may write text in front of a message that depends on a later one. So a start is not looked
 * for in the template but measured: the messages before it are rendered alone, without generation prompt, and the start
 * is where that text and the full one part. That is what a reader of the prompt's tokens wants to know: all in front of
 * it is the same with and without the message. It costs a rendering a mark; the newest messages come first, and the
 * limit on steps holds for all renderings together. */
#ifndef HTH_TEXT_TEMPLATE_MARKS_H
#define HTH_TEXT_TEMPLATE_MARKS_H

#include "text/template_request.h"
#include "text/template_run.h"

/* Renders the request and up to `marks` of its prefixes; fills the marks of *r. The text is made in w. */
bool hth_render_marked(hth_work *w, const hth_code *code, const hth_request *request, const hth_run_inputs *inputs,
                       uint32_t marks, const hth_str **text, hearth_rendering *r);

#endif
