/* What the memory of a simulated GPU holds, kept as what it is made of, and read exactly. Included by cuda.c alone. */
#ifndef KILN_CONTENT_H
#define KILN_CONTENT_H

#include "gpu.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* What an allocation holds. PATTERN: `pattern` over and over, up to `covered`. PRODUCT: scale x A B, and `flaw` added to
 * one element. FILL: one 32-bit word. */
enum kind { NOTHING, PATTERN, FILL, PRODUCT };

struct allocation {
    DevicePointer base;
    size_t size;
    enum kind kind;
    unsigned char *pattern;
    size_t period, covered;
    const void *source; /* where the pattern was copied from */
    uint32_t word;
    const struct allocation *a, *b;
    int n;
    float scale;
    float flaw;
    struct allocation *next;
};

static const size_t FLAWED_ELEMENT = 12345;

/* One fp16 value of a matrix. */
static float half(const struct allocation *matrix, size_t element) {
    const unsigned char *at = matrix->pattern + (2 * element) % matrix->period;
    unsigned bits = at[0] | (unsigned)at[1] << 8, exponent = bits >> 10 & 31;
    float value = exponent ? ldexpf((float)(1024 + (bits & 1023)), (int)exponent - 25) : ldexpf((float)(bits & 1023), -24);
    return bits & 0x8000 ? -value : value;
}

/* One element of a product, as the GPU would have stored it. */
static float element_of(const struct allocation *c, size_t element) {
    size_t n = (size_t)c->n, row = element % n, column = element / n;
    float sum = element == FLAWED_ELEMENT ? c->flaw : 0;
    if (c->scale != 0)
        for (size_t k = 0; k < n; k++) sum += half(c->a, row + k * n) * half(c->b, k + column * n);
    return sum;
}

/* Copy a part of a pattern; 0 where it lies beyond what was written. */
static int read_pattern(unsigned char *target, const struct allocation *from, size_t offset, size_t size) {
    if (offset + size > from->covered) return 0;
    for (size_t done = 0; done < size;) {
        size_t at = (offset + done) % from->period, part = from->period - at;
        if (part > size - done) part = size - done;
        memcpy(target + done, from->pattern + at, part);
        done += part;
    }
    return 1;
}

/* ones^T (A B) as (ones^T A) B. Every sum is of integers below 2^24, so float is exact in any order. */
static float *sums_of(int n, const struct allocation *a, const struct allocation *b) {
    size_t size = (size_t)n, left = a->period / 2, right = b->period / 2;
    double *totals = malloc((left + 1) * sizeof *totals);
    float *row = malloc(size * sizeof *row), *values = malloc((right + size) * sizeof *values);
    float *sums = malloc(size * sizeof *sums);
    if (totals && row && values && sums) {
        totals[0] = 0;
        for (size_t i = 0; i < left; i++) totals[i + 1] = totals[i] + half(a, i);
        for (size_t k = 0; k < size; k++) {
            size_t start = k * size % left, end = start + size;
            row[k] = (float)(totals[left] * (double)(end / left) + totals[end % left] - totals[start]);
        }
        for (size_t i = 0; i < right + size; i++) values[i] = i < right ? half(b, i) : values[i - right];
        for (size_t j = 0; j < size; j++) {
            const float *column = values + j * size % right;
            float lanes[8] = {0};
            for (size_t k = 0; k < size; k += 8)
                for (size_t lane = 0; lane < 8; lane++) lanes[lane] += row[k + lane] * column[k + lane];
            sums[j] = 0;
            for (size_t lane = 0; lane < 8; lane++) sums[j] += lanes[lane];
        }
    }
    free(totals);
    free(row);
    free(values);
    return sums;
}

#endif
