# Planted defects of engine, backend and kernels (../support/mutants.cmake says how they are made).
include(${PROJECT_SOURCE_DIR}/tests/support/mutants.cmake)

if(NOT HEARTH_SANITIZE)
  hearth_mutant_test(marks ${PROJECT_SOURCE_DIR}/tests/unit/marks_test.c)

  # Two timelines that part inside a block.
  hearth_mutant(block_shared_when_written TEST marks SOURCE engine/session.c
    FROM "if (slot > 0 && pool->references[s->blocks[at]] > 1 && slot < pool->fill[s->blocks[at]]) part_block(s, at);"
    TO "(void)part_block;")
  hearth_mutant(block_fill_forgotten TEST marks SOURCE engine/session.c
    FROM "&& slot < pool->fill[s->blocks[at]]" TO "&& slot + 1 < pool->fill[s->blocks[at]]")
  hearth_mutant(block_copy_not_counted_ahead TEST marks SOURCE engine/session.c
    FROM "hth_blocks_for(to) - hth_blocks_for(from) + parts"
    TO "hth_blocks_for(to) - hth_blocks_for(from) - 1 + parts * 0")
  hearth_mutant(block_of_mark_not_counted_ahead TEST marks SOURCE engine/session.c
    FROM "hth_blocks_for(count) - from->kept / HTH_BLOCK_POSITIONS"
    TO "hth_blocks_for(count) - hth_blocks_for(from->kept)")
  hearth_mutant(mark_left_twice TEST marks SOURCE engine/session.c
    FROM "marks[held].position == kept;" TO "false;")
  hearth_mutant(mark_holds_no_blocks TEST marks SOURCE engine/marks.c
    FROM "hth_blocks_hold(&e->blocks, m->blocks[i]); } e->marks.used++;" TO "} e->marks.used++;")
  hearth_mutant(mark_tokens_one_short TEST marks SOURCE engine/marks.c
    FROM "memcpy(s->tokens, m->tokens, (size_t)m->position * sizeof *s->tokens);"
    TO "memcpy(s->tokens, m->tokens, (size_t)(m->position ? m->position - 1 : 0) * sizeof *s->tokens);")
  hearth_mutant(mark_kept_though_cancelled TEST marks SOURCE engine/schedule.c
    FROM "if (ahead > n) return;" TO "if (ahead > item->count) return;")

  # The recurrent state that a mark comes back to.
  hearth_mutant(state_copied_one_row_late TEST marks SOURCE backends/cpu/scan.c
    FROM "advance(exe, &t, row, pass->marks[m].row); row = pass->marks[m].row;"
    TO "int64_t to = hth_min(pass->marks[m].row + 1, end); if (to > row) advance(exe, &t, row, to), row = to;")
  hearth_mutant(state_ring_not_copied TEST marks SOURCE backends/cpu/scan.c
    FROM "i < l.count; i++) memcpy(to + l.first"
    TO "i < l.count && t->step->op->opcode != HTH_OP_CONV_RING; i++) memcpy(to + l.first")
  hearth_mutant(state_delta_not_copied TEST marks SOURCE backends/cpu/scan.c
    FROM "i < l.count; i++) memcpy(to + l.first"
    TO "i < l.count && t->step->op->opcode == HTH_OP_CONV_RING; i++) memcpy(to + l.first")
  string(CONCAT live "row = pass->marks[m].row; if (m + 1 == pass->n_marks) { advance(exe, &t, row, end); row = end; } "
    "leave_mark(exe, &t, l, pass->marks[m].slot);")
  hearth_mutant(state_from_live_buffer TEST marks SOURCE backends/cpu/scan.c
    FROM "row = pass->marks[m].row; leave_mark(exe, &t, l, pass->marks[m].slot);"
    TO "${live}")
  hearth_mutant(state_not_zeroed_at_start TEST marks SOURCE backends/cpu/scan.c
    FROM "if (row < end && pass->positions[row] == 0) zero(&t, l);" TO "(void)zero;")
  hearth_mutant(mark_off_by_one TEST marks SOURCE engine/schedule.c
    FROM "slot, first + ahead}" TO "slot, first + (ahead > 0 ? ahead - 1 : 0)}")
  hearth_mutant(mark_restores_no_state TEST marks SOURCE engine/marks.c
    FROM "s->poison.status = HEARTH_OK; hth_mark_restore_state(s, m);" TO "s->poison.status = HEARTH_OK;")
  hearth_mutant(truncate_restores_no_state TEST marks SOURCE engine/session.c
    FROM "if (m) { hth_mark_restore_state(s, m);" TO "if (m) {")

  # Recurrent state that no session can bring about, or hide: far positions, other slots.
  hearth_mutant_test(scan ${PROJECT_SOURCE_DIR}/tests/unit/scan_test.c)
  hearth_mutant(checkpoint_one_row_early TEST scan SOURCE backends/cpu/scan.c
    FROM "advance(exe, &t, row, pass->marks[m].row); row = pass->marks[m].row;"
    TO "int64_t soon = pass->marks[m].row - (pass->marks[m].row > row); advance(exe, &t, row, soon); row = soon;")
  hearth_mutant(checkpoint_of_another_sequence TEST scan SOURCE backends/cpu/scan.c
    FROM "pass->marks[mid].seq < seq" TO "pass->marks[mid].seq <= seq")
  hearth_mutant(state_position_in_32_bits TEST scan SOURCE backends/cpu/scan.c
    FROM "pass->positions[row] == 0" TO "(int32_t)pass->positions[row] == 0")
  hearth_mutant(state_of_another_slot TEST scan SOURCE backends/cpu/scan.c
    FROM "int32_t slot = pass->state_slots[seq];" TO "int32_t slot = (int32_t)seq;")
  hearth_mutant(ring_not_moved_on TEST scan SOURCE backends/cpu/ref/recurrent.c
    FROM "for (int64_t j = 0; j < kept; j++) a->ring" TO "for (int64_t j = 0; j + 1 < kept; j++) a->ring")

  # The defined order of a sum: what every tier is held to has to be what the contract says.
  set(kernels ${PROJECT_SOURCE_DIR}/tests/kernels)
  hearth_mutant_test(linear ${kernels}/linear_test.c ${kernels}/check.c ${kernels}/limits.c)
  hearth_mutant(linear_block_rounded_twice TEST linear SOURCE backends/cpu/ref/linear.c
    FROM "acc[i] = fmaf(block_value(&w, x, r + i, b), x->d[(r + i) * x->blocks + b], acc[i]);"
    TO "acc[i] += block_value(&w, x, r + i, b) * x->d[(r + i) * x->blocks + b];")

  # Mixtures of experts.
  hearth_mutant_test(experts ${PROJECT_SOURCE_DIR}/tests/unit/experts_op.c)
  hearth_mutant(experts_added_in_decreasing_order TEST experts SOURCE backends/cpu/experts.c
    FROM "for (int64_t i = 0; i < room->active; i++) add_out"
    TO "for (int64_t i = room->active - 1; i >= 0; i--) add_out")
  hearth_mutant(experts_rows_of_the_pair_before TEST experts SOURCE backends/cpu/experts.c
    FROM "int64_t row = room->row[pair];" TO "int64_t row = room->row[pair > 0 ? pair - 1 : 0];")
  hearth_mutant(experts_bias_of_another TEST experts SOURCE backends/cpu/experts.c
    FROM "lease->expert * p->columns + c0" TO "c0")
  hearth_mutant(experts_rows_weighted_like_the_first TEST experts SOURCE backends/cpu/experts.c
    FROM "room->weight[p]," TO "room->weight[p0],")
  hearth_mutant(experts_out_not_cleared TEST experts SOURCE backends/cpu/experts.c
    FROM "memset(s->out.base + r * s->out.ld + c0, 0," TO "if (c0 == 0) memset(s->out.base + r * s->out.ld + c0, 0,")
  hearth_mutant(experts_kept TEST experts SOURCE backends/cpu/experts.c
    FROM "hth_expert_release(exe->store, exe->room.leases, exe->room.active);"
    TO "hth_expert_release(exe->store, exe->room.leases, exe->room.active - (exe->room.active > 1));")
  hearth_mutant(router_fault_of_the_output_row TEST experts SOURCE backends/cpu/units.c
    FROM "outs ? exe->frame.pass->out_rows[r] : r" TO "r")
  hearth_mutant_test(router ${PROJECT_SOURCE_DIR}/tests/unit/experts_router.c)
  hearth_mutant(router_ties_to_the_higher TEST router SOURCE backends/cpu/ref/router.c
    FROM "!(z[i] > top[count - 1])" TO "!(z[i] >= top[count - 1])")
  hearth_mutant(router_weights_by_size TEST router SOURCE backends/cpu/ref/router.c
    FROM "sort_increasing(ids, used);" TO "(void)sort_increasing;")

  # Right bits at several times the work.
  hearth_mutant_test(work ${PROJECT_SOURCE_DIR}/tests/unit/work_test.c)
  hearth_mutant(experts_weights_read_row_by_row TEST work SOURCE backends/cpu/experts.c
    FROM "s->products[HTH_EXPERT_DOWN].run(&a, 0, c1 - c0, 0, p1 - p0, w->linear);"
    TO "for (int r = 0; r < p1 - p0; r++) s->products[2].run(&a, 0, c1 - c0, r, r + 1, w->linear);")

  # Weights that arrive while an engine is opened and used.
  hearth_mutant_test(arrival ${PROJECT_SOURCE_DIR}/tests/unit/arrival_test.c WRAP madvise)
  hearth_mutant(frontier_moved_by_any_piece TEST arrival SOURCE engine/arrival.c
    FROM "while (a->in_order < a->count && a->done[a->in_order]) a->in_order++;" TO "a->in_order = i + 1;")
  hearth_mutant(frontier_a_window_early TEST arrival SOURCE engine/arrival.c
    FROM "order->piece, before, after);" TO "order->piece, after, after);")
  hearth_mutant_test(open ${PROJECT_SOURCE_DIR}/tests/contract/open.c WRAP pread)
  hearth_mutant(pass_before_its_weights TEST open SOURCE backends/cpu/run.c
    FROM "if (!hth_frontier_wait(pass->arrivals, stage->ops)) return;" TO "(void)hth_frontier_wait;")
  hearth_mutant(weights_that_fail_are_not_missed TEST open SOURCE engine/open.c
    FROM "return hth_raise(&a->failure, err);"
    TO "(void)err; return HEARTH_OK;")

  # A plan that is not what is taken, and advice that does not fit.
  hearth_mutant_test(plan ${PROJECT_SOURCE_DIR}/tests/contract/plan.c)
  hearth_mutant(plan_without_keys_and_values TEST plan SOURCE backends/cpu/memory.c
    FROM "if (counted.used == 0 && !counted.overflow) continue;" TO "if (i == 0) continue;")
  hearth_mutant(advice_one_step_too_large TEST plan SOURCE engine/memory.c
    FROM "return low * step;" TO "return (low + 1) * step;")
endif()
