# Planted defects of templates, output parsers, constraints, and of a chat that keeps what it has.
include(${PROJECT_SOURCE_DIR}/tests/support/mutants.cmake)

if(NOT HEARTH_SANITIZE)
  set(unit ${PROJECT_SOURCE_DIR}/tests/unit)
  set(support ${PROJECT_SOURCE_DIR}/tests/support)
  set(allocations malloc calloc realloc reallocarray aligned_alloc strdup strndup free)

  # White space around the tags of a template.
  hearth_mutant_test(template ${unit}/template_recorded.c ${unit}/template_help.c)
  hearth_mutant(template_minus_trims_blanks_only TEST template SOURCE text/template_lexer.c
    FROM "if (sign == '-') return space_before(l, begin, tag);"
    TO "if (sign == '-') { while (tag > begin && l->source[tag - 1] == ' ') tag--; return tag; }")
  hearth_mutant(template_newline_behind_a_value_trimmed TEST template SOURCE text/template_lexer.c
    FROM "printing ? \"}}\" : \"%}\", !printing)" TO "printing ? \"}}\" : \"%}\", true)")
  hearth_mutant(template_blanks_in_a_line_trimmed TEST template SOURCE text/template_lexer.c
    FROM "return space_before(l, line, tag) == line ? line : tag;" TO "return space_before(l, line, tag);")

  # Where messages begin.
  hearth_mutant_test(template_marks ${unit}/template_marks.c ${unit}/template_help.c ${unit}/text_help.c)
  hearth_mutant(template_mark_of_rewritten_text_stable TEST template_marks SOURCE text/template_marks.c
    FROM "bool stable = same == text->size;" TO "bool stable = true;")
  hearth_mutant(template_mark_inside_a_character TEST template_marks SOURCE text/template_marks.c
    FROM "while (same > 0 && same < full->size &&" TO "while (false &&")
  hearth_mutant(template_mark_behind_a_generation_prompt TEST template_marks SOURCE text/template_marks.c
    FROM "hth_string_value(prompt), hth_truth(false))" TO "hth_string_value(prompt), hth_truth(true))")
  hearth_mutant(message_with_control_tokens TEST template_marks SOURCE text/encode.c
    FROM "p->plain[2 * low] < end" TO "p->plain[2 * low] < begin")

  # What a model writes, wherever it is cut.
  hearth_mutant_test(output ${unit}/text_output.c ${support}/output_log.c ${support}/alloc_guard.c WRAP ${allocations})
  hearth_mutant(output_marker_cut_in_two_missed TEST output SOURCE text/output_parser.c
    FROM "return at + i == p->text.size && !p->ended ? HTH_MATCH_PARTIAL : HTH_MATCH_NONE;" TO "return HTH_MATCH_NONE;")
  hearth_mutant(output_arguments_cut_inside_a_character TEST output SOURCE text/output_call.c
    FROM "size_t size = hth_output_whole(text, p->arguments.size - p->shown);"
    TO "size_t size = p->arguments.size - p->shown;")
  hearth_mutant(output_value_ends_at_any_closing_tag TEST output SOURCE text/output_tagged.c
    FROM "bool ends = key == HTH_MATCH_FULL || close == HTH_MATCH_FULL || p->at == p->text.size;"
    TO "bool ends = true;")
  hearth_mutant(output_newline_behind_reasoning_shown TEST output SOURCE text/output_text.c
    FROM "default: hth_output_text_begin(p, is_reasoning, true);"
    TO "default: hth_output_text_begin(p, is_reasoning, false);")
  hearth_mutant(output_reasoning_ends_at_a_call TEST output SOURCE text/output_text.c
    FROM "if (p->is_reasoning) { try_marker"
    TO "if (p->is_reasoning) { try_marker(p, &f, CALL_OPEN, s->calls[0].open, -1); try_marker")
  hearth_mutant(output_closing_tag_cut_in_two_opens TEST output SOURCE text/output_elements.c
    FROM "if (*end < p->text.size && p->text.data[*end] == '/') return HTH_MATCH_NONE;" TO "")
  hearth_mutant(output_broken_call_lost TEST output SOURCE text/output_call.c
    FROM "call->fault = fault; p->begun = false;" TO "call->fault = fault; p->kept = p->at; p->begun = false;")

  # Which tokens a grammar lets through.
  hearth_mutant_test(match ${unit}/constraint_match.c ${unit}/constraint_help.c ${unit}/text_help.c
    ${support}/gguf_image.c ${support}/constraint_walk.c)
  hearth_mutant(mask_token_behind_a_rule_missed TEST match SOURCE text/token_mask.c
    FROM "if (next.ends || f->outside < f->outside_end) {" TO "if (f->outside < f->outside_end) {")
  hearth_mutant(mask_token_behind_a_rule_taken_unseen TEST match SOURCE text/constraint.c
    FROM "if (taken == piece.size) hth_mask_add(m->mask, id);" TO "hth_mask_add(m->mask, id);")
  hearth_mutant(mask_end_before_the_end TEST match SOURCE text/constraint.c
    FROM "w < x->words && m->complete; w++" TO "w < x->words; w++")

  # What of a schema its grammar holds.
  hearth_mutant_test(schema ${unit}/constraint_schema.c ${unit}/constraint_help.c ${unit}/text_help.c
    ${support}/gguf_image.c)
  hearth_mutant(schema_required_left_out TEST schema SOURCE text/schema_object.c
    FROM "if (!o->properties[i].required) hth_schema_repeat(s, 0, 1);" TO "hth_schema_repeat(s, 0, 1);")
  hearth_mutant(schema_more_properties_unless_forbidden TEST schema SOURCE text/schema_object.c
    FROM "more == NULL ? o->count == 0 : !json_is_false(more)" TO "more == NULL || !json_is_false(more)")
  hearth_mutant(schema_listed_name_comes_up_again TEST schema SOURCE text/schema_object.c
    FROM "if (!ends) hth_schema_text(s, \"\\\"\"), choices++;" TO "hth_schema_text(s, \"\\\"\"), choices++;")
  hearth_mutant(schema_enum_of_any_type TEST schema SOURCE text/schema.c
    FROM "if (!(types & hth_schema_type_of_value(value))) return 0;" TO "")
  hearth_mutant(schema_integer_may_be_the_excluded_bound TEST schema SOURCE text/schema_number.c
    FROM "return !b.exclusive || !__builtin_add_overflow(b.whole, sign, out);" TO "return true;")
  hearth_mutant(schema_number_may_be_the_excluded_bound TEST schema SOURCE text/schema_number.c
    FROM "if (!m.without_high) {" TO "if (true) {")

  # A sampler that follows a matcher: narrowing, bias and penalties see allowed tokens only, and all of them.
  hearth_mutant_test(constraint_sampler ${unit}/constraint_sampler.c ${unit}/constraint_help.c ${unit}/text_help.c
    ${support}/gguf_image.c ${support}/alloc_guard.c WRAP ${allocations})
  set(all "for (int32_t id = 0; id < s->vocab; id++) HTH_TRY(consider(s, logits, id, &bias, most, set, err));")
  set(early "if (s->matcher) HTH_TRY(consider_allowed(s, logits, most, set, err)); else ${all}")
  string(CONCAT late "${all} if (s->matcher) { const uint64_t *mask; size_t n = 0; "
    "HTH_TRY(hearth_matcher_mask(s->matcher, &mask, NULL, err)); "
    "for (size_t i = 0; i < set->count; i++) if (set->all[i].id < hearth_matcher_vocab(s->matcher) && "
    "mask[set->all[i].id / 64] >> set->all[i].id % 64 & 1) set->all[n++] = set->all[i]; set->count = n; }")
  hearth_mutant(sampler_masks_what_top_k_left TEST constraint_sampler SOURCE engine/sampler.c
    FROM "${early}" TO "${late}")
  hearth_mutant(sampler_bias_behind_a_gap_lost TEST constraint_sampler SOURCE engine/sampler.c
    FROM "while (*bias < s->n_bias && s->bias[*bias].token < id) ++*bias;" TO ";")

  # A constraint that begins where the content does.
  set(cli ${PROJECT_SOURCE_DIR}/src/cli)
  hearth_mutant_test(bounds ${unit}/cli_bounds.c ${unit}/constraint_help.c ${unit}/text_help.c ${support}/gguf_image.c
    ${cli}/interrupt.c ${cli}/say.c WRAP hearth_session_sync hearth_session_position hearth_engine_run
    hearth_engine_tokenizer hearth_engine_info hearth_engine_set_progress)
  hearth_mutant(constraint_begins_in_reasoning TEST bounds SOURCE cli/generate.c
    FROM "if (!before || g->bounds->marks(" TO "if (g->bounds->marks(")
  hearth_mutant(constraint_broken_by_what_is_no_marker TEST bounds SOURCE cli/generate.c
    FROM "if (!g->bound && g->bounds->place(" TO "if (false && g->bounds->place(")

  # A chat computes what is new, and goes back to where it was.
  set(chat SCRIPT test_chat.py CASES Pipe.test_a_turn_computes_only_what_is_new Pipe.test_going_back
    Pipe.test_tokens_of_an_answer_are_kept_as_they_were_written Pipe.test_which_marks_stay)
  hearth_mutant(chat_answer_tokenized_anew ${chat} SOURCE cli/chat_prompt.c
    FROM "for (size_t i = pasts->count; i-- > 0 &&" TO "for (size_t i = 0; i-- > 0 &&")
  hearth_mutant(chat_position_of_a_mark_without_its_past ${chat} SOURCE cli/chat_prompt.c
    FROM "p->positions[i] += p->reused;" TO "(void)p;")
  hearth_mutant(chat_no_mark_before_the_last_token ${chat} SOURCE cli/chat_prompt.c
    FROM "if (p->tokens.count > 1) add_mark(p, p->tokens.count - 1, HTH_MARK_PROMPT);" TO "")
  hearth_mutant(chat_mark_of_another_way_kept ${chat} SOURCE cli/chat_marks.c
    FROM "bool stray = !info || shared < info->position;" TO "bool stray = !info;")
  hearth_mutant(chat_first_message_dropped_first ${chat} SOURCE cli/chat_marks.c
    FROM "marks[i].kind < marks[least].kind ||" TO "marks[i].kind > marks[least].kind ||")
endif()
