/* What libcublas.so.12 asks of libcuda.so.1: both are stubs, and the memory is libcuda's. See cuda.c. */
#ifndef KILN_GPU_H
#define KILN_GPU_H

typedef unsigned long long DevicePointer;

/* Each returns a CUresult; 1 is an argument that the model has no answer for. */
int kiln_stub_gemm(int n, DevicePointer a, DevicePointer b, float beta, DevicePointer c);
int kiln_stub_magnitudes(int count, DevicePointer x, float *result);
int kiln_stub_column_sums(int n, DevicePointer c, DevicePointer y);

#endif
