/* libcuda.so.1 of a simulated host: the driver calls that a burn-in makes, answered from the machine description.
 *
 * Memory and time are models. A large allocation is kept as what it is made of (a repeated pattern, a fill, a product of
 * two matrices), so that a host with eight GPUs takes megabytes; its content is nevertheless right to the bit wherever it
 * is read. Time is virtual: a copy or a GEMM moves the clock that events read by what the configured speed makes of it,
 * and returns at once. A use that the model has no answer for is refused with CUDA_ERROR_NOT_SUPPORTED, never guessed.
 *
 * Keys, beside those of nvml.c (cuda.driver, gpu.count, gpu.N.error, .name, .pci.bus_id, .memory.total, .memory.reserved):
 *
 *   cuda.init_error            what cuInit returns (802: the fabric manager has not set the system up)
 *   gpu.N.burnin.h2d_gbps      GB/s of a copy to the GPU; d2h_gbps from it; fp16_tflops of a GEMM. Without them such a
 *                              call is refused.
 *   gpu.N.burnin.free_bytes    free memory; by default all but the reserved
 *   gpu.N.burnin.corrupt_at    number of the GEMM, from 1, whose result has one wrong element
 *   gpu.N.burnin.always_wrong  1: every GEMM has the same wrong element
 *   gpu.N.burnin.no_work       1: kernels return success, write nothing and take no time
 *   gpu.N.burnin.copy_corrupt  1: a copy from the GPU has a wrong bit
 *   gpu.N.burnin.context_error, .memory_error, .launch_error   the error of a context, an allocation, a GEMM (seen, as
 *                              on a real GPU, by whoever waits for it)
 *   gpu.N.burnin.hang          1: whoever waits for a GEMM waits for ever (at most 600 s)
 *   gpu.N.burnin.crash         1: a GEMM ends the process by SIGSEGV
 *
 * A process uses one device and one stream, as each process of a burn-in does.
 */
#include "content.h"
#include "gpu.h"
#include "machine.h"

#include <math.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int CUresult;

enum {
    SUCCESS = 0,
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    NOT_INITIALIZED = 3,
    NO_DEVICE = 100,
    INVALID_DEVICE = 101,
    INVALID_CONTEXT = 201,
    NOT_SUPPORTED = 801
};

static const float FLAW = 4096.0f; /* an upper bit of a result */

static struct {
    int initialised, entered;
    unsigned index; /* NVML's */
    double h2d, d2h, tflops;
    long corrupt_at, gemms;
    int always_wrong, no_work, copy_corrupt, hang, crash, launch_error, memory_error;
    int pending_error, pending_hang;
    double clock_ms;
    size_t free_bytes;
    struct allocation *first;
    DevicePointer top;
    float *sums; /* column sums of the last product, which stays the same over a burn-in */
    const struct allocation *sums_a, *sums_b;
    const void *last_target;
    const struct allocation *last_source;
} gpu;

static double setting(const char *name, double fallback) {
    char key[64];
    snprintf(key, sizeof key, "burnin.%s", name);
    return machine_gpu_number(gpu.index, key, fallback);
}

/* The NVML index of a CUDA ordinal: CUDA leaves out a GPU that is lost. -1 where there is none. */
static int index_of(int ordinal) {
    int count = (int)machine_number("gpu.count", 0);
    for (int i = 0; i < count; i++)
        if (machine_gpu_number((unsigned)i, "error", 0) == 0 && ordinal-- == 0) return i;
    return -1;
}

static struct allocation *find(DevicePointer pointer, size_t size) {
    for (struct allocation *each = gpu.first; each; each = each->next)
        if (pointer >= each->base && pointer - each->base + size <= each->size) return each;
    return NULL;
}

CUresult cuInit(unsigned flags) {
    (void)flags;
    int error = (int)machine_number("cuda.init_error", 0);
    if (error) return error;
    if (machine_number("nvml.init", 0) != 0) return machine_number("nvml.init", 0) == 18 ? 803 : NO_DEVICE;
    if (index_of(0) < 0) return NO_DEVICE;
    gpu.initialised = 1;
    return SUCCESS;
}

CUresult cuDriverGetVersion(int *version) {
    *version = (int)machine_number("cuda.driver", 0);
    return SUCCESS;
}

CUresult cuGetErrorName(CUresult error, const char **name) {
    static const struct {
        int code;
        const char *name;
    } names[] = {
        {1, "CUDA_ERROR_INVALID_VALUE"},       {2, "CUDA_ERROR_OUT_OF_MEMORY"},     {3, "CUDA_ERROR_NOT_INITIALIZED"},
        {46, "CUDA_ERROR_DEVICE_UNAVAILABLE"}, {100, "CUDA_ERROR_NO_DEVICE"},       {101, "CUDA_ERROR_INVALID_DEVICE"},
        {201, "CUDA_ERROR_INVALID_CONTEXT"},   {214, "CUDA_ERROR_ECC_UNCORRECTABLE"}, {719, "CUDA_ERROR_LAUNCH_FAILED"},
        {801, "CUDA_ERROR_NOT_SUPPORTED"},     {802, "CUDA_ERROR_SYSTEM_NOT_READY"},
        {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"}, {999, "CUDA_ERROR_UNKNOWN"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].code == error) {
            *name = names[i].name;
            return SUCCESS;
        }
    *name = NULL;
    return INVALID_VALUE;
}

CUresult cuDeviceGetCount(int *count) {
    if (!gpu.initialised) return NOT_INITIALIZED;
    for (*count = 0; index_of(*count) >= 0;) ++*count;
    return SUCCESS;
}

CUresult cuDeviceGet(int *device, int ordinal) {
    if (!gpu.initialised) return NOT_INITIALIZED;
    if (ordinal < 0 || index_of(ordinal) < 0) return INVALID_DEVICE;
    *device = ordinal;
    return SUCCESS;
}

static CUresult text_of(char *target, int size, int device, const char *name) {
    int index = index_of(device);
    const char *text = index < 0 ? NULL : machine_gpu((unsigned)index, name);
    if (!text || size <= 0) return INVALID_VALUE;
    snprintf(target, (size_t)size, "%s", text);
    return SUCCESS;
}

CUresult cuDeviceGetName(char *name, int size, int device) { return text_of(name, size, device, "name"); }

CUresult cuDeviceGetPCIBusId(char *address, int size, int device) {
    char text[32];
    CUresult code = text_of(text, sizeof text, device, "pci.bus_id");
    if (code) return code;
    const char *colon = strchr(text, ':'); /* NVML's domain has eight digits, CUDA's has four */
    if (!colon) return INVALID_VALUE;
    snprintf(address, (size_t)size, "%04lx%s", strtoul(text, NULL, 16), colon);
    return SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(void **context, int device) {
    int index = index_of(device);
    if (index < 0) return INVALID_DEVICE;
    gpu.index = (unsigned)index;
    *context = &gpu;
    gpu.h2d = setting("h2d_gbps", 0);
    gpu.d2h = setting("d2h_gbps", 0);
    gpu.tflops = setting("fp16_tflops", 0);
    gpu.corrupt_at = (long)setting("corrupt_at", 0);
    gpu.always_wrong = setting("always_wrong", 0) != 0;
    gpu.no_work = setting("no_work", 0) != 0;
    gpu.copy_corrupt = setting("copy_corrupt", 0) != 0;
    gpu.hang = setting("hang", 0) != 0;
    gpu.crash = setting("crash", 0) != 0;
    gpu.launch_error = (int)setting("launch_error", 0);
    gpu.memory_error = (int)setting("memory_error", 0);
    double total = machine_gpu_number(gpu.index, "memory.total", 0);
    gpu.free_bytes = (size_t)setting("free_bytes", total - machine_gpu_number(gpu.index, "memory.reserved", 0));
    gpu.top = 0x7f0000000000ull;
    return (CUresult)setting("context_error", SUCCESS);
}

CUresult cuCtxSetCurrent(void *context) {
    gpu.entered = context == &gpu;
    return gpu.entered ? SUCCESS : INVALID_CONTEXT;
}

CUresult cuMemGetInfo_v2(size_t *free, size_t *total) {
    if (!gpu.entered) return INVALID_CONTEXT;
    *free = gpu.free_bytes;
    *total = (size_t)machine_gpu_number(gpu.index, "memory.total", 0);
    return SUCCESS;
}

CUresult cuMemAlloc_v2(DevicePointer *pointer, size_t size) {
    if (!gpu.entered) return INVALID_CONTEXT;
    if (gpu.memory_error) return gpu.memory_error;
    if (!size) return INVALID_VALUE;
    if (size > gpu.free_bytes) return OUT_OF_MEMORY;
    struct allocation *new = calloc(1, sizeof *new);
    if (!new) return OUT_OF_MEMORY;
    new->base = *pointer = gpu.top;
    new->size = size;
    new->next = gpu.first;
    gpu.first = new;
    gpu.top += (size + 0xfffff) & ~(size_t)0xfffff;
    gpu.free_bytes -= size;
    return SUCCESS;
}

CUresult cuMemFree_v2(DevicePointer pointer) {
    for (struct allocation **link = &gpu.first; *link; link = &(*link)->next)
        if ((*link)->base == pointer) {
            struct allocation *old = *link;
            *link = old->next;
            gpu.free_bytes += old->size;
            if (gpu.last_source == old) gpu.last_source = NULL;
            free(old->pattern);
            free(old);
            return SUCCESS;
        }
    return INVALID_VALUE;
}

CUresult cuMemHostAlloc(void **pointer, size_t size, unsigned flags) {
    (void)flags;
    *pointer = calloc(1, size);
    return *pointer ? SUCCESS : OUT_OF_MEMORY;
}

CUresult cuMemFreeHost(void *pointer) {
    if (gpu.last_target == pointer) gpu.last_target = NULL;
    for (struct allocation *each = gpu.first; each; each = each->next)
        if (each->source == pointer) each->source = NULL;
    free(pointer);
    return SUCCESS;
}

CUresult cuStreamCreate(void **stream, unsigned flags) {
    (void)flags;
    *stream = &gpu.clock_ms;
    return gpu.entered ? SUCCESS : INVALID_CONTEXT;
}

static CUresult settled(void) {
    if (gpu.pending_hang) sleep(600);
    return gpu.pending_error;
}

CUresult cuStreamSynchronize(void *stream) {
    (void)stream;
    return settled();
}

CUresult cuEventCreate(void **event, unsigned flags) {
    (void)flags;
    *event = calloc(1, sizeof(double));
    return *event ? SUCCESS : OUT_OF_MEMORY;
}

CUresult cuEventRecord(void *event, void *stream) {
    (void)stream;
    *(double *)event = gpu.clock_ms;
    return SUCCESS;
}

CUresult cuEventSynchronize(void *event) {
    (void)event;
    return settled();
}

CUresult cuEventElapsedTime(float *milliseconds, void *begin, void *end) {
    *milliseconds = (float)(*(double *)end - *(double *)begin);
    return SUCCESS;
}

/* A write at the start begins a pattern; equal writes behind it go on with it. A copy from the same place again is taken
 * to carry the same bytes. */
CUresult cuMemcpyHtoDAsync_v2(DevicePointer target, const void *source, size_t size, void *stream) {
    (void)stream;
    struct allocation *to = find(target, size);
    if (!to) return INVALID_VALUE;
    if (gpu.h2d <= 0) return NOT_SUPPORTED;
    size_t offset = (size_t)(target - to->base);
    gpu.clock_ms += (double)size / gpu.h2d / 1e6;
    if (offset == 0) {
        if (to->kind == PATTERN && to->period == size && to->source == source) return SUCCESS;
        unsigned char *pattern = realloc(to->pattern, size);
        if (!pattern) return OUT_OF_MEMORY;
        to->kind = PATTERN;
        to->pattern = memcpy(pattern, source, size);
        to->period = to->covered = size;
        to->source = source;
        if (gpu.last_source == to) gpu.last_source = NULL;
        return SUCCESS;
    }
    if (to->kind != PATTERN || offset != to->covered || offset % to->period || size > to->period) return NOT_SUPPORTED;
    if (memcmp(to->pattern, source, size)) return NOT_SUPPORTED;
    to->covered += size;
    return SUCCESS;
}

CUresult cuMemcpyDtoHAsync_v2(void *target, DevicePointer source, size_t size, void *stream) {
    (void)stream;
    const struct allocation *from = find(source, size);
    if (!from) return INVALID_VALUE;
    if (gpu.d2h <= 0) return NOT_SUPPORTED;
    size_t offset = (size_t)(source - from->base);
    gpu.clock_ms += (double)size / gpu.d2h / 1e6;
    if (gpu.last_target == target && gpu.last_source == from && size == from->size) return SUCCESS;
    gpu.last_target = target;
    gpu.last_source = from;
    if (from->kind == PATTERN) {
        if (!read_pattern(target, from, offset, size)) return NOT_SUPPORTED;
        if (gpu.copy_corrupt) ((unsigned char *)target)[size / 2] ^= 1;
        return SUCCESS;
    }
    if (offset % 4 || size % 4 || (from->kind == PRODUCT && size > 256)) return NOT_SUPPORTED;
    for (size_t i = 0; i < size / 4; i++) {
        float value = from->kind == PRODUCT ? element_of(from, offset / 4 + i) : 0;
        memcpy((char *)target + 4 * i, from->kind == FILL ? (const void *)&from->word : &value, 4);
    }
    return SUCCESS;
}

CUresult cuMemsetD32Async(DevicePointer target, unsigned word, size_t count, void *stream) {
    (void)stream;
    struct allocation *to = find(target, 4 * count);
    if (!to || target != to->base || 4 * count != to->size) return NOT_SUPPORTED;
    to->kind = FILL;
    to->word = word;
    if (gpu.last_source == to) gpu.last_source = NULL;
    return SUCCESS;
}

/* C = A B + beta C: what C holds is noted, not computed. */
int kiln_stub_gemm(int n, DevicePointer left, DevicePointer right, float beta, DevicePointer result) {
    size_t elements = (size_t)n * (size_t)n;
    struct allocation *a = find(left, 2 * elements), *b = find(right, 2 * elements), *c = find(result, 4 * elements);
    if (!a || !b || !c || a->kind != PATTERN || b->kind != PATTERN) return INVALID_VALUE;
    if (a->covered < 2 * elements || b->covered < 2 * elements) return INVALID_VALUE;
    if (gpu.crash) raise(SIGSEGV);
    if (gpu.no_work) return SUCCESS;
    if (gpu.tflops <= 0) return NOT_SUPPORTED;
    int again = c->kind == PRODUCT && c->a == a && c->b == b && c->n == n;
    if (beta != 0 && !again) return NOT_SUPPORTED;
    gpu.gemms++;
    gpu.clock_ms += 2.0 * n * (double)elements / gpu.tflops / 1e9;
    gpu.pending_error = gpu.launch_error;
    gpu.pending_hang = gpu.hang;
    c->scale = 1 + (beta != 0 ? beta * c->scale : 0);
    c->flaw = beta != 0 ? beta * c->flaw : 0;
    if (gpu.always_wrong || gpu.gemms == gpu.corrupt_at) c->flaw += FLAW;
    c->kind = PRODUCT;
    c->a = a;
    c->b = b;
    c->n = n;
    return SUCCESS;
}

int kiln_stub_magnitudes(int count, DevicePointer x, float *result) {
    const struct allocation *from = find(x, 4 * (size_t)count);
    if (!from) return INVALID_VALUE;
    if (settled()) return settled();
    if (gpu.no_work) return SUCCESS;
    if (from->kind != PRODUCT || from->scale != 0) return NOT_SUPPORTED;
    *result = fabsf(from->flaw);
    return SUCCESS;
}

int kiln_stub_column_sums(int n, DevicePointer matrix, DevicePointer vector) {
    const struct allocation *c = find(matrix, 4 * (size_t)n * (size_t)n);
    struct allocation *y = find(vector, 4 * (size_t)n);
    if (!c || !y || y->base != vector || y->size != 4 * (size_t)n) return INVALID_VALUE;
    if (gpu.no_work) return SUCCESS;
    if (c->kind != PRODUCT || c->n != n || n % 8) return NOT_SUPPORTED;
    if (gpu.sums_a != c->a || gpu.sums_b != c->b) {
        free(gpu.sums);
        gpu.sums = sums_of(n, c->a, c->b);
        gpu.sums_a = c->a;
        gpu.sums_b = c->b;
    }
    float *pattern = gpu.sums ? realloc(y->pattern, y->size) : NULL;
    if (!pattern) return OUT_OF_MEMORY;
    for (int j = 0; j < n; j++) pattern[j] = c->scale * gpu.sums[j];
    pattern[FLAWED_ELEMENT / (size_t)n] += c->flaw;
    y->pattern = (unsigned char *)pattern;
    y->kind = PATTERN;
    y->period = y->covered = y->size;
    y->source = NULL;
    if (gpu.last_source == y) gpu.last_source = NULL;
    return SUCCESS;
}
