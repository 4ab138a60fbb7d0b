/* Memory errors, temperatures and clocks of the stub libnvidia-ml.so.1. See nvml.c. */
#include "nvml.h"

#include <stdio.h>
#include <string.h>

/* ---- errors of memory ---- */

static Return ecc(Device device, unsigned type, unsigned counter, const char *where, unsigned long long *count) {
    char key[64];
    long long number = 0;
    snprintf(key, sizeof key, "ecc.%s.%s%s", counter ? "aggregate" : "volatile", type ? "uncorrected" : "corrected",
             where);
    Return code = nvml_number_of(device, key, &number);
    if (code == SUCCESS) *count = (unsigned long long)number;
    return code;
}
Return nvmlDeviceGetTotalEccErrors(Device device, unsigned type, unsigned counter, unsigned long long *count) {
    return ecc(device, type, counter, "", count);
}
Return nvmlDeviceGetMemoryErrorCounter(Device device, unsigned type, unsigned counter, unsigned location,
                                       unsigned long long *count) {
    if (location == 2) return ecc(device, type, counter, ".dram", count);
    if (location == 7) return ecc(device, type, counter, ".sram", count);
    Return code = nvml_usable(device);
    return code ? code : NOT_SUPPORTED;
}

struct sram_status {
    unsigned version;
    unsigned long long aggregate_parity, aggregate_secded, aggregate_corrected, volatile_parity, volatile_secded,
        volatile_corrected, buckets[5];
    unsigned threshold_exceeded;
};
Return nvmlDeviceGetSramEccErrorStatus(Device device, struct sram_status *status) {
    Return code = nvml_unsigned_of(device, "ecc.sram_threshold", &status->threshold_exceeded);
    if (code) return code;
    memset(&status->aggregate_parity, 0, 11 * sizeof status->aggregate_parity);
    ecc(device, 1, 1, ".sram", &status->aggregate_secded);
    ecc(device, 0, 1, ".sram", &status->aggregate_corrected);
    ecc(device, 1, 0, ".sram", &status->volatile_secded);
    return ecc(device, 0, 0, ".sram", &status->volatile_corrected);
}

Return nvmlDeviceGetRemappedRows(Device device, unsigned *corrected, unsigned *uncorrected, unsigned *pending,
                                 unsigned *failure) {
    Return code = nvml_unsigned_of(device, "remap.corrected", corrected);
    if (code == SUCCESS) code = nvml_unsigned_of(device, "remap.uncorrected", uncorrected);
    if (code == SUCCESS) code = nvml_unsigned_of(device, "remap.pending", pending);
    return code ? code : nvml_unsigned_of(device, "remap.failure", failure);
}

struct histogram { unsigned max, high, partial, low, none; };
Return nvmlDeviceGetRowRemapperHistogram(Device device, struct histogram *histogram) {
    *histogram = (struct histogram){0};
    return nvml_unsigned_of(device, "remap.banks", &histogram->max);
}

static Return retired(Device device, unsigned cause, unsigned *count, unsigned long long *pages,
                      unsigned long long *times) {
    unsigned found = 0;
    Return code = nvml_unsigned_of(device, cause ? "retired.double" : "retired.single", &found);
    if (code) return code;
    unsigned room = *count;
    *count = found;
    if (found && (!pages || room < found)) return INSUFFICIENT_SIZE;
    for (unsigned i = 0; pages && i < found; i++) {
        pages[i] = 0x10000ULL * (i + 1);
        if (times) times[i] = 0;
    }
    return SUCCESS;
}
Return nvmlDeviceGetRetiredPages(Device device, unsigned cause, unsigned *count, unsigned long long *pages) {
    return retired(device, cause, count, pages, NULL);
}
Return nvmlDeviceGetRetiredPages_v2(Device device, unsigned cause, unsigned *count, unsigned long long *pages,
                                    unsigned long long *times) {
    return retired(device, cause, count, pages, times);
}

struct repairs { unsigned version, channel, tpc; };
Return nvmlDeviceGetRepairStatus(Device device, struct repairs *status) {
    Return code = nvml_unsigned_of(device, "repair.channel", &status->channel);
    return code ? code : nvml_unsigned_of(device, "repair.tpc", &status->tpc);
}
struct unrepairable { unsigned version, memory; };
Return nvmlDeviceGetUnrepairableMemoryFlag_v1(Device device, struct unrepairable *flag) {
    return nvml_unsigned_of(device, "repair.impossible", &flag->memory);
}
Return nvmlDeviceValidateInforom(Device device) {
    unsigned corrupt = 0;
    Return code = nvml_unsigned_of(device, "inforom.corrupt", &corrupt);
    return code ? code : corrupt ? CORRUPTED_INFOROM : SUCCESS;
}

/* ---- temperature, clocks ---- */

Return nvmlDeviceGetTemperature(Device device, unsigned sensor, unsigned *temperature) {
    return sensor ? INVALID_ARGUMENT : nvml_unsigned_of(device, "temperature.gpu", temperature);
}
struct temperature { unsigned version, sensor; int temperature; };
Return nvmlDeviceGetTemperatureV(Device device, struct temperature *reading) {
    return nvmlDeviceGetTemperature(device, reading->sensor, (unsigned *)&reading->temperature);
}
struct margin { unsigned version; int margin; };
Return nvmlDeviceGetMarginTemperature(Device device, struct margin *margin) {
    return nvml_unsigned_of(device, "temperature.margin", (unsigned *)&margin->margin);
}
Return nvmlDeviceGetTemperatureThreshold(Device device, unsigned kind, unsigned *temperature) {
    char key[32];
    return nvml_unsigned_of(device, nvml_indexed(key, sizeof key, "threshold", kind, ""), temperature);
}

static Return clock_of(Device device, unsigned kind, const char *suffix, unsigned *clock) {
    static const char *const kinds[] = {"graphics", "sm", "memory", "video"};
    char key[32];
    if (kind > 3) return INVALID_ARGUMENT;
    snprintf(key, sizeof key, "clock.%s%s", kinds[kind], suffix);
    return nvml_unsigned_of(device, key, clock);
}
Return nvmlDeviceGetClockInfo(Device device, unsigned kind, unsigned *clock) {
    return clock_of(device, kind, "", clock);
}
Return nvmlDeviceGetMaxClockInfo(Device device, unsigned kind, unsigned *clock) {
    return clock_of(device, kind, ".max", clock);
}
Return nvmlDeviceGetMaxCustomerBoostClock(Device device, unsigned kind, unsigned *clock) {
    return clock_of(device, kind, ".max", clock);
}

Return nvmlDeviceGetCurrentClocksEventReasons(Device device, unsigned long long *reasons) {
    long long mask = 0;
    Return code = nvml_number_of(device, "throttle", &mask);
    if (code == SUCCESS) *reasons = (unsigned long long)mask;
    return code;
}
Return nvmlDeviceGetCurrentClocksThrottleReasons(Device device, unsigned long long *reasons) {
    return nvmlDeviceGetCurrentClocksEventReasons(device, reasons);
}
Return nvmlDeviceGetSupportedClocksEventReasons(Device device, unsigned long long *reasons) {
    *reasons = 0x1ff;
    return nvml_usable(device);
}

struct utilization { unsigned gpu, memory; };
Return nvmlDeviceGetUtilizationRates(Device device, struct utilization *rates) {
    unsigned sliced = 0;
    *rates = (struct utilization){0, 0};
    if (nvml_unsigned_of(device, "mig.current", &sliced) == SUCCESS && sliced) return NOT_SUPPORTED; /* nor on hardware */
    return nvml_usable(device);
}
