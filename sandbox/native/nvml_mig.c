/* MIG devices of the stub libnvidia-ml.so.1: the instances of a GPU that is partitioned. See nvml.c.
 *
 * An instance is a device of its own to NVML. Its handle carries the GPU and the instance (nvml.h), and every name that
 * is asked of it is read from "gpu.<index>.mig.<instance>.<name>".
 */
#include "nvml.h"

Return nvmlDeviceIsMigDeviceHandle(Device device, unsigned *is_instance) {
    *is_instance = nvml_instance_of(device) != 0;
    return nvml_usable(device);
}

/* How many instances a GPU can hold: none while MIG is off, although the board could. */
Return nvmlDeviceGetMaxMigDeviceCount(Device device, unsigned *count) {
    unsigned enabled = 0;
    Return code = nvml_unsigned_of(device, "mig.current", &enabled);
    *count = 0;
    if (code == SUCCESS && enabled) code = nvml_unsigned_of(device, "mig.max", count);
    return code;
}

Return nvmlDeviceGetMigDeviceHandleByIndex(Device device, unsigned index, Device *instance) {
    unsigned count = 0;
    Return code = nvml_unsigned_of(device, "mig.count", &count);
    if (code) return code;
    if (index >= count) return NOT_FOUND; /* a place that holds no instance */
    *instance = nvml_instance_handle(device, index);
    return SUCCESS;
}

Return nvmlDeviceGetDeviceHandleFromMigDeviceHandle(Device instance, Device *device) {
    if (!nvml_instance_of(instance)) return INVALID_ARGUMENT;
    *device = nvml_device_of(nvml_index_of(instance));
    return nvml_usable(*device);
}

UNSIGNED(nvmlDeviceGetGpuInstanceId, "gi")
UNSIGNED(nvmlDeviceGetComputeInstanceId, "ci")

struct attributes {
    unsigned multiprocessors, copy_engines, decoders, encoders, jpegs, ofas, gpu_slices, compute_slices;
    unsigned long long memory_mib;
};
Return nvmlDeviceGetAttributes_v2(Device instance, struct attributes *attributes) {
    static const char *const names[] = {"sms", "copy", "decoders", "encoders", "jpegs", "ofas", "slices", "slices"};
    unsigned *const fields[] = {&attributes->multiprocessors, &attributes->copy_engines, &attributes->decoders,
                                &attributes->encoders,        &attributes->jpegs,        &attributes->ofas,
                                &attributes->gpu_slices,      &attributes->compute_slices};
    long long bytes = 0;
    Return code = nvml_instance_of(instance) ? SUCCESS : NOT_SUPPORTED;
    for (unsigned i = 0; code == SUCCESS && i < sizeof fields / sizeof *fields; i++)
        code = nvml_unsigned_of(instance, names[i], fields[i]);
    if (code == SUCCESS) code = nvml_number_of(instance, "memory.total", &bytes);
    attributes->memory_mib = (unsigned long long)bytes >> 20;
    return code;
}
