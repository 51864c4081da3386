hearth_test(unit_scan unit/scan_test.c LABELS threaded)
