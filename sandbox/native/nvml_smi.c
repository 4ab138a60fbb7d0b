/* What only the real nvidia-smi asks of the stub libnvidia-ml.so.1, beyond the probe's calls. See nvml.c.
 * Source: what nvidia-smi 535.309.01 (Debian 12) and 550.163.01 (Debian 13) ask for when they run over this library. */
#include "nvml.h"

#include <string.h>

enum { TIMEOUT = 10, ACCOUNTED_PROCESSES = 4000 };

Return nvmlDeviceGetHandleByPciBusId_v2(const char *bus, Device *device);
Return nvmlDeviceGetPciInfo_v3(Device device, struct pci_info *info);
Return nvmlDeviceGetTopologyCommonAncestor(Device first, Device second, unsigned *level);

/* ---- the table of unpublished functions ---- */

/* nvidia-smi refuses to start without this table ("Mismatch in versions between nvidia-smi and NVML"), and calls its
 * functions by their place. Place 0 holds the table's size in bytes. A place that is not named below answers that the
 * board does not have the feature, which nvidia-smi prints as N/A; place 26 is told of each line, and its answer ignored. */
enum {
    TABLE_SIZE = 512,
    ANCESTOR_BY_BUS_ID = 23,
    BUS_ID_OF_INDEX = 81,
    PART_NUMBER = 231,
    THERMAL_MARGIN = 240
};
static const unsigned char table_id[16] = {0xc4, 0xfe, 0x3e, 0x6c, 0xc9, 0x8f, 0x6c, 0x4e,
                                           0xa3, 0x27, 0xee, 0x69, 0x6e, 0x12, 0xf7, 0xc4};

static Return not_supported(void) { return NOT_SUPPORTED; }

static Return ancestor_by_bus_id(const char *first, const char *second, unsigned *level) {
    Device one = NULL, two = NULL;
    Return code = nvmlDeviceGetHandleByPciBusId_v2(first, &one);
    if (code == SUCCESS) code = nvmlDeviceGetHandleByPciBusId_v2(second, &two);
    if (code == SUCCESS) code = nvmlDeviceGetTopologyCommonAncestor(one, two, level);
    if (code == SUCCESS) *level = *level / 10 - 1; /* here PIX, PXB, PHB, NODE, SYS are 0 to 4; published: 10 to 50 */
    return code;
}
/* Asked of every index before its handle, so that a GPU without one can be named: "0000:86:00.0". */
static Return bus_id_of_index(unsigned index, char *text) {
    const char *bus_id = machine_gpu(index, "pci.bus_id");
    if (!bus_id || strlen(bus_id) != sizeof "00000000:86:00.0" - 1) return NOT_FOUND;
    strcpy(text, bus_id + 4);
    return SUCCESS;
}
static Return part_number(Device device, char *text, unsigned size) {
    return nvml_copy_of(device, "gpu_part", text, size);
}
static Return thermal_margin(Device device, unsigned *margin) {
    return nvml_unsigned_of(device, "temperature.margin", margin);
}

typedef void (*Function)(void);
static union entry { size_t size; Function function; } table[TABLE_SIZE];

Return nvmlInternalGetExportTable(const void **result, const void *id) {
    if (memcmp(id, table_id, sizeof table_id) != 0) return NOT_FOUND;
    table[0].size = sizeof table;
    for (unsigned place = 1; place < TABLE_SIZE; place++) table[place].function = (Function)not_supported;
    table[ANCESTOR_BY_BUS_ID].function = (Function)ancestor_by_bus_id;
    table[BUS_ID_OF_INDEX].function = (Function)bus_id_of_index;
    table[PART_NUMBER].function = (Function)part_number;
    table[THERMAL_MARGIN].function = (Function)thermal_margin;
    *result = table;
    return SUCCESS;
}

/* ---- events: nvidia-smi makes a set for the GPUs that may be lost while it prints; none are ---- */

Return nvmlEventSetCreate(const void **set) {
    static const char the_set;
    *set = &the_set;
    return SUCCESS;
}
Return nvmlEventSetFree(const void *set) { return set ? SUCCESS : INVALID_ARGUMENT; }
Return nvmlDeviceRegisterEvents(Device device, unsigned long long kinds, const void *set) {
    (void)kinds;
    (void)set;
    return nvml_usable(device);
}
Return nvmlEventSetWait_v2(const void *set, void *event, unsigned milliseconds) {
    (void)set;
    (void)event;
    (void)milliseconds;
    return TIMEOUT;
}

/* ---- what the outputs show of an idle board without a display ---- */

#define CONSTANT(function, number) \
    Return function(Device device, unsigned *value) { \
        *value = number; \
        return nvml_usable(device); \
    }
#define CONSTANT_PAIR(function, first, second) \
    Return function(Device device, unsigned *a, unsigned *b) { \
        *a = first; \
        *b = second; \
        return nvml_usable(device); \
    }

CONSTANT(nvmlDeviceGetDisplayMode, 0)
CONSTANT(nvmlDeviceGetDisplayActive, 0)
CONSTANT(nvmlDeviceGetMultiGpuBoard, 0)
CONSTANT(nvmlDeviceGetPowerManagementMode, 1)
CONSTANT(nvmlDeviceGetAccountingMode, 0)
CONSTANT(nvmlDeviceGetAccountingBufferSize, ACCOUNTED_PROCESSES)
CONSTANT_PAIR(nvmlDeviceGetEncoderUtilization, 0, 0)
CONSTANT_PAIR(nvmlDeviceGetDecoderUtilization, 0, 0)
CONSTANT_PAIR(nvmlDeviceGetJpgUtilization, 0, 0)
CONSTANT_PAIR(nvmlDeviceGetOfaUtilization, 0, 0)
UNSIGNED(nvmlDeviceGetPowerState, "pstate")

Return nvmlDeviceGetEncoderStats(Device device, unsigned *sessions, unsigned *rate, unsigned *latency) {
    *sessions = *rate = *latency = 0;
    return nvml_usable(device);
}
Return nvmlDeviceGetSupportedClocksThrottleReasons(Device device, unsigned long long *reasons) {
    *reasons = 0x1ff;
    return nvml_usable(device);
}
Return nvmlDeviceGetGspFirmwareMode(Device device, unsigned *enabled, unsigned *by_default) {
    const char *text = NULL;
    Return code = nvml_text_of(device, "gsp", &text);
    *enabled = *by_default = code == SUCCESS;
    return code;
}
Return nvmlDeviceGetInforomImageVersion(Device device, char *text, unsigned size) {
    return nvml_copy_of(device, "inforom.image", text, size);
}
Return nvmlDeviceGetInforomVersion(Device device, unsigned object, char *text, unsigned size) {
    static const char *const objects[] = {"inforom.oem", "inforom.ecc", "inforom.power"};
    if (object >= sizeof objects / sizeof *objects) return INVALID_ARGUMENT;
    return nvml_copy_of(device, objects[object], text, size);
}

struct pci_info_extended {
    unsigned version, domain, bus, device, device_id, subsystem, base_class, sub_class;
    char bus_id[32];
};
Return nvmlDeviceGetPciInfoExt(Device device, struct pci_info_extended *info) {
    struct pci_info plain;
    Return code = nvmlDeviceGetPciInfo_v3(device, &plain);
    if (code) return code;
    info->domain = plain.domain;
    info->bus = plain.bus;
    info->device = plain.device;
    info->device_id = plain.device_id;
    info->subsystem = plain.subsystem;
    info->base_class = 3; /* a display controller, */
    info->sub_class = 2;  /* for 3D */
    memcpy(info->bus_id, plain.bus_id, sizeof info->bus_id);
    return SUCCESS;
}

/* The NUMA nodes near a GPU, as bits; the platform may name several, which is how it says that it does not know. */
Return nvmlDeviceGetMemoryAffinity(Device device, unsigned size, unsigned long *set, unsigned scope) {
    const char *text = NULL;
    Return code = nvml_text_of(device, "nodes", &text);
    (void)scope;
    return code ? code : nvml_bits_of(text, size, set);
}

/* ---- what it asks for and can do without: it stops ("Internal NVML error") where the function is not there ---- */

#define NONE(function) \
    Return function(Device device) { \
        Return code = nvml_usable(device); \
        return code ? code : NOT_SUPPORTED; \
    }

NONE(nvmlDeviceGetAccountingPids)
NONE(nvmlDeviceGetApplicationsClock)
NONE(nvmlDeviceGetAutoBoostedClocksEnabled)
NONE(nvmlDeviceGetBridgeChipInfo)
NONE(nvmlDeviceGetC2cModeInfoV)
NONE(nvmlDeviceGetClock)
NONE(nvmlDeviceGetConfComputeProtectedMemoryUsage)
NONE(nvmlDeviceGetDefaultApplicationsClock)
NONE(nvmlDeviceGetDriverModel)
NONE(nvmlDeviceGetFBCStats)
NONE(nvmlDeviceGetFanSpeed)
NONE(nvmlDeviceGetGpuOperationMode)
NONE(nvmlDeviceGetGridLicensableFeatures_v4)
NONE(nvmlDeviceGetHostVgpuMode)
NONE(nvmlDeviceGetLastBBXFlushTime)
NONE(nvmlDeviceGetPcieThroughput)
NONE(nvmlDeviceGetSupportedMemoryClocks)
NONE(nvmlDeviceGetVgpuCapabilities)
NONE(nvmlDeviceGetVgpuHeterogeneousMode)
Return nvmlGetVgpuDriverCapabilities(void) { return NOT_SUPPORTED; }
