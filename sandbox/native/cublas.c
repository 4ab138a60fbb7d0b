/* libcublas.so.12 of a simulated host: the calls that a burn-in makes, on the memory and the clock of libcuda (cuda.c).
 *
 * Arguments that a burn-in does not use are refused with CUBLAS_STATUS_NOT_SUPPORTED: the stub answers for what it
 * models and for nothing else.
 */
#include "gpu.h"

#include <dlfcn.h>
#include <stddef.h>

typedef int Status;

enum { SUCCESS = 0, NOT_INITIALIZED = 1, EXECUTION_FAILED = 13, NOT_SUPPORTED = 15 };
enum { R_32F = 0, R_16F = 2, COMPUTE_32F = 68, OP_N = 0, OP_T = 1, VERSION = 120600 };

static struct {
    int (*gemm)(int, DevicePointer, DevicePointer, float, DevicePointer);
    int (*magnitudes)(int, DevicePointer, float *);
    int (*column_sums)(int, DevicePointer, DevicePointer);
} gpu;

static Status status(int code) {
    if (code == 0) return SUCCESS;
    return code == 801 || code == 1 ? NOT_SUPPORTED : EXECUTION_FAILED;
}

Status cublasCreate_v2(void **handle) {
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (!driver) return NOT_INITIALIZED;
    *(void **)&gpu.gemm = dlsym(driver, "kiln_stub_gemm");
    *(void **)&gpu.magnitudes = dlsym(driver, "kiln_stub_magnitudes");
    *(void **)&gpu.column_sums = dlsym(driver, "kiln_stub_column_sums");
    *handle = &gpu;
    return gpu.gemm && gpu.magnitudes && gpu.column_sums ? SUCCESS : NOT_INITIALIZED;
}

Status cublasSetStream_v2(void *handle, void *stream) {
    (void)stream;
    return handle == &gpu ? SUCCESS : NOT_INITIALIZED;
}

Status cublasGetVersion_v2(void *handle, int *version) {
    *version = VERSION;
    return handle == &gpu ? SUCCESS : NOT_INITIALIZED;
}

Status cublasGemmEx(void *handle, int transa, int transb, int m, int n, int k, const void *alpha, DevicePointer a, int atype,
                    int lda, DevicePointer b, int btype, int ldb, const void *beta, DevicePointer c, int ctype, int ldc,
                    int compute, int algorithm) {
    (void)algorithm;
    if (handle != &gpu) return NOT_INITIALIZED;
    int square = m == n && k == n && lda == n && ldb == n && ldc == n && transa == OP_N && transb == OP_N;
    int types = atype == R_16F && btype == R_16F && ctype == R_32F && compute == COMPUTE_32F;
    if (!square || !types || *(const float *)alpha != 1.0f) return NOT_SUPPORTED;
    return status(gpu.gemm(n, a, b, *(const float *)beta, c));
}

Status cublasSasum_v2(void *handle, int n, DevicePointer x, int incx, float *result) {
    if (handle != &gpu) return NOT_INITIALIZED;
    return incx == 1 ? status(gpu.magnitudes(n, x, result)) : NOT_SUPPORTED;
}

/* The vector that a burn-in multiplies with is all ones. */
Status cublasSgemv_v2(void *handle, int trans, int m, int n, const float *alpha, DevicePointer a, int lda, DevicePointer x,
                      int incx, const float *beta, DevicePointer y, int incy) {
    (void)x;
    if (handle != &gpu) return NOT_INITIALIZED;
    int plain = trans == OP_T && m == n && lda == n && incx == 1 && incy == 1 && *alpha == 1.0f && *beta == 0.0f;
    return plain ? status(gpu.column_sums(n, a, y)) : NOT_SUPPORTED;
}
