hearth_test(sampler_distribution unit/sampler_distribution.c)
hearth_test(sampler_draw unit/sampler_draw.c)
hearth_test(sampler_input unit/sampler_input.c)
