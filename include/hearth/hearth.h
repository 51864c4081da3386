/* All of Hearth's public headers. */
#ifndef HEARTH_HEARTH_H
#define HEARTH_HEARTH_H

#include "hearth/constraint.h"
#include "hearth/engine.h"
#include "hearth/file.h"
#include "hearth/options.h"
#include "hearth/output.h"
#include "hearth/sampler.h"
#include "hearth/status.h"
#include "hearth/template.h"
#include "hearth/tokenizer.h"

#endif
