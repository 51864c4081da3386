/* CPU probe: cores and quotas of machines laid out as files, and sanity on this one. */
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cpu.h"
#include "base/sysmem.h"

static char root[] = "/tmp/hearth-cpu-XXXXXX";

/* Write a file under the root, making its directories. */
static void put(const char *path, const char *text) {
    char full[512];
    snprintf(full, sizeof full, "%s/%s", root, path);
    for (char *slash = full + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = 0;
        mkdir(full, 0700);
        *slash = '/';
    }
    FILE *f = fopen(full, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static int start(void **state) {
    (void)state;
    memcpy(root, "/tmp/hearth-cpu-XXXXXX", sizeof root);
    return mkdtemp(root) ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *where) {
    (void)info;
    (void)kind;
    (void)where;
    return remove(path);
}

static int end(void **state) {
    (void)state;
    return nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static hth_cpu_mask mask_of(const int *cpus, int n) {
    hth_cpu_mask mask = {{0}};
    const int bits = 8 * (int)sizeof(unsigned long);
    for (int i = 0; i < n; i++) mask.bits[cpus[i] / bits] |= 1ul << (cpus[i] % bits);
    return mask;
}

static void siblings_count_once(void **state) {
    (void)state;
    put("sys/devices/system/cpu/cpu0/topology/thread_siblings_list", "0,4\n");
    put("sys/devices/system/cpu/cpu1/topology/thread_siblings_list", "1,5\n");
    put("sys/devices/system/cpu/cpu4/topology/thread_siblings_list", "0,4\n");
    put("sys/devices/system/cpu/cpu5/topology/thread_siblings_list", "1,5\n");
    put("sys/devices/system/cpu/cpu6/topology/thread_siblings_list", "6-7\n");
    put("sys/devices/system/cpu/cpu7/topology/thread_siblings_list", "6-7\n");
    put("sys/devices/system/cpu/cpu9/topology/thread_siblings_list", "nonsense\n");
    int cpus[16];
    hth_cpu_mask all = mask_of((int[]){0, 1, 4, 5, 6, 7, 9, 4000}, 8);
    static uint16_t core_of[HTH_CPU_MAX];
    assert_int_equal(hth_cpu_core_list_at(root, &all, cpus, 16, core_of), 5);
    assert_memory_equal(cpus, ((int[]){0, 1, 6, 9, 4000}), 5 * sizeof(int));
    assert_memory_equal(core_of, ((uint16_t[]){0, 1, 2, 3, 0, 1, 6, 6, 8, 9}), 10 * sizeof *core_of);
    assert_int_equal(core_of[4000], 4000);
    assert_int_equal(hth_cpu_core_list_at(root, &all, cpus, 2, NULL), 2);
    /* A sibling outside the mask leaves its core to the other one. */
    hth_cpu_mask half = mask_of((int[]){4, 5, 1, 7}, 4);
    assert_int_equal(hth_cpu_core_list_at(root, &half, cpus, 16, core_of), 3);
    assert_memory_equal(cpus, ((int[]){1, 4, 7}), 3 * sizeof(int));
    assert_memory_equal(core_of, ((uint16_t[]){0, 1, 2, 3, 4, 1, 6, 7}), 8 * sizeof *core_of);
}

static void assert_quota(double expected) {
    double quota = hth_cpu_quota_at(root);
    if (quota != expected) fail_msg("quota is %g, expected %g", quota, expected);
}

static void quota_of_version_2(void **state) {
    (void)state;
    assert_quota(0);
    put("proc/self/cgroup", "0::/outer/inner\n");
    assert_quota(0);
    put("sys/fs/cgroup/outer/inner/cpu.max", "max 100000\n");
    assert_quota(0);
    put("sys/fs/cgroup/outer/cpu.max", "250000 100000\n");
    assert_quota(2.5);
    put("sys/fs/cgroup/outer/inner/cpu.max", "50000 100000\n");
    assert_quota(0.5);
    put("sys/fs/cgroup/outer/inner/cpu.max", "900000 100000\n");
    assert_quota(2.5);
    put("sys/fs/cgroup/cpu.max", "100000 100000\n");
    assert_quota(1);
    put("sys/fs/cgroup/cpu.max", "100000\n");
    assert_quota(2.5);
}

static void quota_of_version_1(void **state) {
    (void)state;
    put("proc/self/cgroup", "7:memory:/x\n4:cpuset:/x\n3:cpu,cpuacct:/docker/abc\n0::/\n");
    put("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
    put("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    assert_quota(0);
    /* The group's path is the host's and not visible here: the mount itself holds the limit. */
    put("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "300000\n");
    assert_quota(3);
    put("sys/fs/cgroup/cpu/docker/abc/cpu.cfs_quota_us", "150000\n");
    put("sys/fs/cgroup/cpu/docker/abc/cpu.cfs_period_us", "100000\n");
    assert_quota(1.5);
    put("proc/self/cgroup", "garbage\n:\n::\n");
    assert_quota(0);
}

static void memory_is_what_is_free_or_what_limits_leave(void **state) {
    (void)state;
    assert_true(hth_memory_allowed_at(root) > (uint64_t)64
                                                  << 20); /* all the machine has, when the system does not say */
    put("proc/meminfo", "MemTotal:       8000000 kB\nMemFree:  1 kB\nMemAvailable:   4000000 kB\n");
    assert_int_equal(hth_memory_allowed_at(root), 4000000ull * 1024);
    put("proc/self/cgroup", "0::/outer/inner\n");
    put("sys/fs/cgroup/outer/inner/memory.max", "max\n");
    assert_int_equal(hth_memory_allowed_at(root), 4000000ull * 1024);
    put("sys/fs/cgroup/outer/memory.max", "1000000000\n");
    assert_int_equal(hth_memory_allowed_at(root), 1000000000);
    put("sys/fs/cgroup/outer/inner/memory.max", "9000000000000\n");
    assert_int_equal(hth_memory_allowed_at(root), 1000000000);
    /* What others in the group have taken is gone, but for files: those can be read again. */
    put("sys/fs/cgroup/outer/memory.current", "900000000\n");
    assert_int_equal(hth_memory_allowed_at(root), 100000000);
    put("sys/fs/cgroup/outer/memory.stat", "file 700\ninactive_file 300000000\nactive_file 2\nactive_file_x 9\n");
    assert_int_equal(hth_memory_allowed_at(root), 400000002);
    put("sys/fs/cgroup/outer/memory.current", "250000000\n");
    assert_int_equal(hth_memory_allowed_at(root), 1000000000);
    put("sys/fs/cgroup/outer/inner/memory.high", "600000000\n");
    assert_int_equal(hth_memory_allowed_at(root), 600000000);
    put("sys/fs/cgroup/outer/inner/memory.current", "700000000\n");
    assert_int_equal(hth_memory_allowed_at(root), 0);
    put("proc/self/cgroup", "9:cpu:/outer\n7:memory:/docker/abc\n");
    put("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    assert_int_equal(hth_memory_allowed_at(root), 4000000ull * 1024);
    put("sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", "500000000\n");
    assert_int_equal(hth_memory_allowed_at(root), 500000000);
    put("sys/fs/cgroup/memory/docker/abc/memory.usage_in_bytes", "480000000\n");
    put("sys/fs/cgroup/memory/docker/abc/memory.stat", "inactive_file 1\ntotal_active_file 80000000\n");
    assert_int_equal(hth_memory_allowed_at(root), 100000000);
}

static void this_machine(void **state) {
    (void)state;
    hth_cpu cpu;
    hth_cpu_probe(&cpu);
    print_message("%s: %d logical, %d cores, quota %g, %d threads; avx2 %d avxvnni %d avx512 %d\n", cpu.name,
                  cpu.logical, cpu.cores, cpu.quota, cpu.threads, cpu.avx2, cpu.avxvnni, cpu.avx512);
    assert_true(cpu.logical >= cpu.cores && cpu.cores >= 1);
    assert_true(cpu.threads >= 1 && cpu.threads <= cpu.cores);
    assert_true(cpu.name[0] != 0 && strlen(cpu.name) < sizeof cpu.name);
#if defined(__x86_64__)
    assert_int_equal(cpu.avx2, __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"));
    assert_int_equal(cpu.avx512, __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni"));
#endif
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(siblings_count_once, start, end),
        cmocka_unit_test_setup_teardown(quota_of_version_2, start, end),
        cmocka_unit_test_setup_teardown(quota_of_version_1, start, end),
        cmocka_unit_test_setup_teardown(memory_is_what_is_free_or_what_limits_leave, start, end),
        cmocka_unit_test(this_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
