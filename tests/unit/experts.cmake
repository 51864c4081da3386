hearth_test(unit_experts_store unit/experts_store.c)
hearth_test(unit_experts_router unit/experts_router.c)
hearth_test(unit_experts_op unit/experts_op.c LABELS threaded)
