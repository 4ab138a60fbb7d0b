/* What the parts of the stub libnvidia-ml.so.1 share. Its keys and its behaviour: nvml.c. */
#ifndef KILN_NVML_H
#define KILN_NVML_H

#include "machine.h"

#include <stddef.h>

#pragma GCC visibility push(hidden) /* only the nvml* functions of NVIDIA's own interface are the library's */

typedef int Return;
typedef const void *Device;

enum {
    SUCCESS = 0,
    UNINITIALIZED = 1,
    INVALID_ARGUMENT = 2,
    NOT_SUPPORTED = 3,
    NOT_FOUND = 6,
    INSUFFICIENT_SIZE = 7,
    CORRUPTED_INFOROM = 14,
    ARGUMENT_VERSION_MISMATCH = 25
};

Device nvml_device_of(unsigned index);
unsigned nvml_index_of(Device device);

/* A MIG instance of a GPU, counted from 1; 0 for the GPU itself. And the handle of its instance, counted from 0. */
unsigned nvml_instance_of(Device device);
Device nvml_instance_handle(Device device, unsigned instance);

unsigned nvml_device_count(void);

/* SUCCESS for a device that can be asked, else its error code. */
Return nvml_usable(Device device);

/* The value of one name of a device; the error code where there is none. Values are left alone on an error. */
Return nvml_text_of(Device device, const char *name, const char **text);
Return nvml_number_of(Device device, const char *name, long long *value);
Return nvml_unsigned_of(Device device, const char *name, unsigned *value);
Return nvml_copy_of(Device device, const char *name, char *buffer, unsigned size);

/* The bits of a kernel list ("0-3,8"); INSUFFICIENT_SIZE where `size` words do not hold them. */
Return nvml_bits_of(const char *text, unsigned size, unsigned long *set);

/* Write "<prefix>.<index><suffix>" into key and return it. */
const char *nvml_indexed(char *key, size_t size, const char *prefix, unsigned index, const char *suffix);

struct pci_info {
    char legacy[16];
    unsigned domain, bus, device, device_id, subsystem;
    char bus_id[32];
};
Return nvml_fill_pci(const char *bus_id, struct pci_info *info);

/* How many active NVLinks of a device end at a switch. */
Return nvml_switch_links(Device device, unsigned *count);

#pragma GCC visibility pop

/* A function of the interface that answers with one number of the description. */
#define UNSIGNED(function, name) \
    Return function(Device device, unsigned *value) { return nvml_unsigned_of(device, name, value); }
#define UNSIGNED_PAIR(function, first, second) \
    Return function(Device device, unsigned *a, unsigned *b) { \
        Return code = nvml_unsigned_of(device, first, a); \
        return code ? code : nvml_unsigned_of(device, second, b); \
    }

Return nvmlDeviceGetNvLinkState(Device device, unsigned link, unsigned *active);

#endif
