hearth_test(unit_scan unit/scan_test.c LABELS threaded)
hearth_test(unit_units unit/units_test.c)
