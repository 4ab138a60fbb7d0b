/* libnvidia-ml.so.1 of a simulated host: answers NVML calls from the machine description (machine.h).
 *
 * A value is read from "gpu.<index>.<name>". A name that the description lacks answers NVML_ERROR_NOT_SUPPORTED, as the
 * driver does for a feature that the board does not have; a value "!15" answers with that NVML error code. The keys:
 *
 *   nvml.init     return code of nvmlInit (18 library mismatch, 9 driver not loaded)    nvml.hang  1: never returns
 *   driver.version  nvml.version  cuda.driver (13000)  gpu.count
 *   gpu.N.error   return code for the handle (15 lost)
 *   name uuid serial vbios gsp part minor board_id module_id brand arch compute virtualization
 *   pci.bus_id pci.device_id pci.subsystem (hex)    memory.total memory.reserved memory.used bar1.total (bytes)
 *   ecc.current ecc.pending ecc.{volatile,aggregate}.{corrected,uncorrected}[.dram|.sram] ecc.sram_threshold
 *   remap.{corrected,uncorrected,pending,failure,banks}    retired.{single,double,pending}
 *   temperature.{gpu,memory,margin} threshold.{0..7} tlimit.{shutdown,slowdown,memory,gpu}
 *   power.{usage,average,limit,default,min,max} (mW)    clock.{graphics,sm,memory,video}[.max]    pstate
 *   throttle (mask)    pcie.{gen,gen.max,width,width.max,replay}    mig.{current,pending} persistence compute_mode
 *   nvlink.count nvlink.version nvlink.rate_mbps nvlink.L.active nvlink.L.remote (bus id) nvlink.L.remote_type
 *   topology.M p2p.M p2p_nvlink.M (NVML's numbers)    numa cpus (kernel list)    recovery
 *   fabric.{state,status,clique,uuid,health,summary}
 *
 * Struct layouts are those that NVIDIA publishes with its Python binding (nvidia-ml-py).
 */
#include "machine.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

typedef int Return;
typedef const void *Device;

enum { SUCCESS = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7 };
enum { VALUE_UNSIGNED = 1, VALUE_UNSIGNED_LONG_LONG = 3, VALUE_SIGNED = 5 };

static int initialised;

static Device device_of(unsigned index) { return (Device)(uintptr_t)(index + 1); }
static unsigned index_of(Device device) { return (unsigned)(uintptr_t)device - 1; }
static unsigned device_count(void) { return (unsigned)machine_number("gpu.count", 0); }

/* Is this a device that can be asked? Its error code if not. */
static Return usable(Device device) {
    if (!initialised) return UNINITIALIZED;
    if (!device || index_of(device) >= device_count()) return INVALID_ARGUMENT;
    return (Return)machine_gpu_number(index_of(device), "error", SUCCESS);
}

/* The text of one name of a device; the error code where there is none. */
static Return text_of(Device device, const char *name, const char **text) {
    Return code = usable(device);
    if (code) return code;
    *text = machine_gpu(index_of(device), name);
    if (!*text) return NOT_SUPPORTED;
    return **text == '!' ? (Return)strtol(*text + 1, NULL, 10) : SUCCESS;
}

static Return number_of(Device device, const char *name, long long *value) {
    const char *text = NULL;
    Return code = text_of(device, name, &text);
    if (code == SUCCESS) *value = strtoll(text, NULL, 0);
    return code;
}

static Return unsigned_of(Device device, const char *name, unsigned *value) {
    long long number = 0;
    Return code = number_of(device, name, &number);
    if (code == SUCCESS) *value = (unsigned)number;
    return code;
}

static Return copy(const char *text, char *buffer, unsigned size) {
    if (strlen(text) >= size) return INSUFFICIENT_SIZE;
    strcpy(buffer, text);
    return SUCCESS;
}

static Return copy_of(Device device, const char *name, char *buffer, unsigned size) {
    const char *text = NULL;
    Return code = text_of(device, name, &text);
    return code ? code : copy(text, buffer, size);
}

static const char *indexed(char *key, size_t size, const char *prefix, unsigned index, const char *suffix) {
    snprintf(key, size, "%s.%u%s", prefix, index, suffix);
    return key;
}

/* ---- library ---- */

Return nvmlInitWithFlags(unsigned flags) {
    (void)flags;
    if (machine_number("nvml.hang", 0) != 0) sleep(600); /* as a driver that holds its lock; bounded */
    Return code = (Return)machine_number("nvml.init", machine_text("driver.version") ? SUCCESS : 9);
    initialised = code == SUCCESS;
    return code;
}
Return nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
Return nvmlInit(void) { return nvmlInitWithFlags(0); }
Return nvmlShutdown(void) { return initialised ? SUCCESS : UNINITIALIZED; }

const char *nvmlErrorString(Return code) {
    static const char *const texts[] = {
        "Success", "Uninitialized", "Invalid Argument", "Not Supported", "Insufficient Permissions",
        "Already Initialized", "Not Found", "Insufficient Size", "Insufficient External Power", "Driver Not Loaded",
        "Timeout", "Interrupt Request Issue", "NVML Shared Library Not Found", "Function Not Found",
        "Corrupted infoROM", "GPU is lost", "GPU requires restart", "The operating system has blocked the request.",
        "Driver/library version mismatch", "In use by another client", "Insufficient Memory"};
    return code >= 0 && code < (Return)(sizeof texts / sizeof *texts) ? texts[code] : "Unknown Error";
}

static Return system_text(const char *key, char *buffer, unsigned size) {
    const char *text = machine_text(key);
    if (!initialised) return UNINITIALIZED;
    return text ? copy(text, buffer, size) : NOT_SUPPORTED;
}
Return nvmlSystemGetDriverVersion(char *buffer, unsigned size) { return system_text("driver.version", buffer, size); }
Return nvmlSystemGetNVMLVersion(char *buffer, unsigned size) {
    const char *text = machine_text("nvml.version"); /* answers before nvmlInit, too */
    return text ? copy(text, buffer, size) : NOT_SUPPORTED;
}
Return nvmlSystemGetCudaDriverVersion_v2(int *version) {
    *version = (int)machine_number("cuda.driver", 0);
    return *version ? SUCCESS : NOT_FOUND;
}
Return nvmlSystemGetCudaDriverVersion(int *version) { return nvmlSystemGetCudaDriverVersion_v2(version); }

/* ---- devices ---- */

Return nvmlDeviceGetCount_v2(unsigned *count) {
    if (!initialised) return UNINITIALIZED;
    *count = device_count();
    return SUCCESS;
}
Return nvmlDeviceGetCount(unsigned *count) { return nvmlDeviceGetCount_v2(count); }

Return nvmlDeviceGetHandleByIndex_v2(unsigned index, Device *device) {
    Return code = usable(device_of(index));
    if (code == SUCCESS) *device = device_of(index);
    return code;
}
Return nvmlDeviceGetHandleByIndex(unsigned index, Device *device) {
    return nvmlDeviceGetHandleByIndex_v2(index, device);
}

static Return handle_by(const char *name, const char *wanted, Device *device) {
    if (!initialised) return UNINITIALIZED;
    for (unsigned i = 0; i < device_count(); i++) {
        const char *text = machine_gpu(i, name);
        size_t skip = text && strlen(text) > strlen(wanted) ? strlen(text) - strlen(wanted) : 0; /* short PCI domain */
        if (text && strcasecmp(text + skip, wanted) == 0) return nvmlDeviceGetHandleByIndex_v2(i, device);
    }
    return NOT_FOUND;
}
Return nvmlDeviceGetHandleByUUID(const char *uuid, Device *device) { return handle_by("uuid", uuid, device); }
Return nvmlDeviceGetHandleByPciBusId_v2(const char *bus, Device *device) { return handle_by("pci.bus_id", bus, device); }

#define TEXT(function, name) \
    Return function(Device device, char *buffer, unsigned size) { return copy_of(device, name, buffer, size); }
#define UNSIGNED(function, name) \
    Return function(Device device, unsigned *value) { return unsigned_of(device, name, value); }
#define UNSIGNED_PAIR(function, first, second) \
    Return function(Device device, unsigned *a, unsigned *b) { \
        Return code = unsigned_of(device, first, a); \
        return code ? code : unsigned_of(device, second, b); \
    }

TEXT(nvmlDeviceGetName, "name")
TEXT(nvmlDeviceGetUUID, "uuid")
TEXT(nvmlDeviceGetSerial, "serial")
TEXT(nvmlDeviceGetVbiosVersion, "vbios")
TEXT(nvmlDeviceGetBoardPartNumber, "part")
UNSIGNED(nvmlDeviceGetMinorNumber, "minor")
UNSIGNED(nvmlDeviceGetIndex, "index")
UNSIGNED(nvmlDeviceGetBoardId, "board_id")
UNSIGNED(nvmlDeviceGetModuleId, "module_id")
UNSIGNED(nvmlDeviceGetBrand, "brand")
UNSIGNED(nvmlDeviceGetArchitecture, "arch")
UNSIGNED(nvmlDeviceGetPersistenceMode, "persistence")
UNSIGNED(nvmlDeviceGetComputeMode, "compute_mode")
UNSIGNED(nvmlDeviceGetPerformanceState, "pstate")
UNSIGNED(nvmlDeviceGetPowerUsage, "power.usage")
UNSIGNED(nvmlDeviceGetPowerManagementLimit, "power.limit")
UNSIGNED(nvmlDeviceGetEnforcedPowerLimit, "power.limit")
UNSIGNED(nvmlDeviceGetPowerManagementDefaultLimit, "power.default")
UNSIGNED_PAIR(nvmlDeviceGetPowerManagementLimitConstraints, "power.min", "power.max")
UNSIGNED(nvmlDeviceGetCurrPcieLinkGeneration, "pcie.gen")
UNSIGNED(nvmlDeviceGetMaxPcieLinkGeneration, "pcie.gen.max")
UNSIGNED(nvmlDeviceGetGpuMaxPcieLinkGeneration, "pcie.gen.max")
UNSIGNED(nvmlDeviceGetCurrPcieLinkWidth, "pcie.width")
UNSIGNED(nvmlDeviceGetMaxPcieLinkWidth, "pcie.width.max")
UNSIGNED(nvmlDeviceGetPcieReplayCounter, "pcie.replay")
UNSIGNED_PAIR(nvmlDeviceGetMigMode, "mig.current", "mig.pending")
UNSIGNED_PAIR(nvmlDeviceGetEccMode, "ecc.current", "ecc.pending")
UNSIGNED(nvmlDeviceGetDefaultEccMode, "ecc.current")
UNSIGNED(nvmlDeviceGetRetiredPagesPendingStatus, "retired.pending")
UNSIGNED(nvmlDeviceGetNumaNodeId, "memory.numa") /* of the GPU's own memory: only coherent platforms have it */

Return nvmlDeviceGetGspFirmwareVersion(Device device, char *version) { return copy_of(device, "gsp", version, 0x40); }

Return nvmlDeviceGetVirtualizationMode(Device device, unsigned *mode) {
    return unsigned_of(device, "virtualization", mode);
}

Return nvmlDeviceGetCudaComputeCapability(Device device, int *major, int *minor) {
    const char *text = NULL;
    Return code = text_of(device, "compute", &text);
    if (code == SUCCESS && sscanf(text, "%d.%d", major, minor) != 2) return NOT_SUPPORTED;
    return code;
}

struct pci_info {
    char legacy[16];
    unsigned domain, bus, device, device_id, subsystem;
    char bus_id[32];
};

static Return fill_pci(const char *text, struct pci_info *info) {
    if (sscanf(text, "%x:%x:%x", &info->domain, &info->bus, &info->device) != 3) return NOT_SUPPORTED;
    snprintf(info->legacy, sizeof info->legacy, "%04X:%02X:%02X.0", info->domain & 0xffff, info->bus & 0xff,
             info->device & 0xff);
    return copy(text, info->bus_id, sizeof info->bus_id);
}
Return nvmlDeviceGetPciInfo_v3(Device device, struct pci_info *info) {
    const char *text = NULL;
    Return code = text_of(device, "pci.bus_id", &text);
    memset(info, 0, sizeof *info);
    if (code == SUCCESS) code = fill_pci(text, info);
    if (code == SUCCESS) code = unsigned_of(device, "pci.device_id", &info->device_id);
    return code ? code : unsigned_of(device, "pci.subsystem", &info->subsystem);
}
Return nvmlDeviceGetPciInfo_v2(Device device, struct pci_info *info) { return nvmlDeviceGetPciInfo_v3(device, info); }

struct memory { unsigned long long total, free, used; };
struct memory_v2 { unsigned version; unsigned long long total, reserved, free, used; };

Return nvmlDeviceGetMemoryInfo_v2(Device device, struct memory_v2 *memory) {
    long long total = 0, reserved = 0, used = 0;
    Return code = number_of(device, "memory.total", &total);
    if (code == SUCCESS) code = number_of(device, "memory.reserved", &reserved);
    if (code == SUCCESS) code = number_of(device, "memory.used", &used);
    if (code) return code;
    memory->total = (unsigned long long)total;
    memory->reserved = (unsigned long long)reserved;
    memory->used = (unsigned long long)used;
    memory->free = (unsigned long long)(total - reserved - used);
    return SUCCESS;
}
Return nvmlDeviceGetMemoryInfo(Device device, struct memory *memory) {
    struct memory_v2 info = {0};
    Return code = nvmlDeviceGetMemoryInfo_v2(device, &info);
    if (code) return code;
    *memory = (struct memory){info.total, info.free, info.used + info.reserved}; /* the old call counts both as used */
    return SUCCESS;
}
Return nvmlDeviceGetBAR1MemoryInfo(Device device, struct memory *memory) {
    long long total = 0;
    Return code = number_of(device, "bar1.total", &total);
    if (code == SUCCESS) *memory = (struct memory){(unsigned long long)total, (unsigned long long)total, 0};
    return code;
}

/* ---- errors of memory ---- */

static Return ecc(Device device, unsigned type, unsigned counter, const char *where, unsigned long long *count) {
    char key[64];
    long long number = 0;
    snprintf(key, sizeof key, "ecc.%s.%s%s", counter ? "aggregate" : "volatile", type ? "uncorrected" : "corrected",
             where);
    Return code = number_of(device, key, &number);
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
    Return code = usable(device);
    return code ? code : NOT_SUPPORTED;
}

struct sram_status {
    unsigned version;
    unsigned long long aggregate_parity, aggregate_secded, aggregate_corrected, volatile_parity, volatile_secded,
        volatile_corrected, buckets[5];
    unsigned threshold_exceeded;
};
Return nvmlDeviceGetSramEccErrorStatus(Device device, struct sram_status *status) {
    Return code = unsigned_of(device, "ecc.sram_threshold", &status->threshold_exceeded);
    if (code) return code;
    memset(&status->aggregate_parity, 0, 11 * sizeof status->aggregate_parity);
    ecc(device, 1, 1, ".sram", &status->aggregate_secded);
    ecc(device, 0, 1, ".sram", &status->aggregate_corrected);
    ecc(device, 1, 0, ".sram", &status->volatile_secded);
    return ecc(device, 0, 0, ".sram", &status->volatile_corrected);
}

Return nvmlDeviceGetRemappedRows(Device device, unsigned *corrected, unsigned *uncorrected, unsigned *pending,
                                 unsigned *failure) {
    Return code = unsigned_of(device, "remap.corrected", corrected);
    if (code == SUCCESS) code = unsigned_of(device, "remap.uncorrected", uncorrected);
    if (code == SUCCESS) code = unsigned_of(device, "remap.pending", pending);
    return code ? code : unsigned_of(device, "remap.failure", failure);
}

struct histogram { unsigned max, high, partial, low, none; };
Return nvmlDeviceGetRowRemapperHistogram(Device device, struct histogram *histogram) {
    *histogram = (struct histogram){0};
    return unsigned_of(device, "remap.banks", &histogram->max);
}

static Return retired(Device device, unsigned cause, unsigned *count, unsigned long long *pages,
                      unsigned long long *times) {
    unsigned found = 0;
    Return code = unsigned_of(device, cause ? "retired.double" : "retired.single", &found);
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

/* ---- temperature, clocks ---- */

Return nvmlDeviceGetTemperature(Device device, unsigned sensor, unsigned *temperature) {
    return sensor ? INVALID_ARGUMENT : unsigned_of(device, "temperature.gpu", temperature);
}
struct temperature { unsigned version, sensor; int temperature; };
Return nvmlDeviceGetTemperatureV(Device device, struct temperature *reading) {
    return nvmlDeviceGetTemperature(device, reading->sensor, (unsigned *)&reading->temperature);
}
struct margin { unsigned version; int margin; };
Return nvmlDeviceGetMarginTemperature(Device device, struct margin *margin) {
    return unsigned_of(device, "temperature.margin", (unsigned *)&margin->margin);
}
Return nvmlDeviceGetTemperatureThreshold(Device device, unsigned kind, unsigned *temperature) {
    char key[32];
    return unsigned_of(device, indexed(key, sizeof key, "threshold", kind, ""), temperature);
}

static Return clock_of(Device device, unsigned kind, const char *suffix, unsigned *clock) {
    static const char *const kinds[] = {"graphics", "sm", "memory", "video"};
    char key[32];
    if (kind > 3) return INVALID_ARGUMENT;
    snprintf(key, sizeof key, "clock.%s%s", kinds[kind], suffix);
    return unsigned_of(device, key, clock);
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
    Return code = number_of(device, "throttle", &mask);
    if (code == SUCCESS) *reasons = (unsigned long long)mask;
    return code;
}
Return nvmlDeviceGetCurrentClocksThrottleReasons(Device device, unsigned long long *reasons) {
    return nvmlDeviceGetCurrentClocksEventReasons(device, reasons);
}
Return nvmlDeviceGetSupportedClocksEventReasons(Device device, unsigned long long *reasons) {
    *reasons = 0x1ff;
    return usable(device);
}

struct utilization { unsigned gpu, memory; };
Return nvmlDeviceGetUtilizationRates(Device device, struct utilization *rates) {
    *rates = (struct utilization){0, 0};
    return usable(device);
}

/* ---- NVLink, topology, fabric ---- */

static Return link_of(Device device, unsigned link, const char *suffix, unsigned *value) {
    char key[48];
    unsigned links = 0;
    Return code = unsigned_of(device, "nvlink.count", &links);
    if (code) return code;
    if (link >= links) return INVALID_ARGUMENT;
    return unsigned_of(device, indexed(key, sizeof key, "nvlink", link, suffix), value);
}
Return nvmlDeviceGetNvLinkState(Device device, unsigned link, unsigned *active) {
    return link_of(device, link, ".active", active);
}
Return nvmlDeviceGetNvLinkVersion(Device device, unsigned link, unsigned *version) {
    Return code = link_of(device, link, ".active", version);
    return code ? code : unsigned_of(device, "nvlink.version", version);
}
Return nvmlDeviceGetNvLinkCapability(Device device, unsigned link, unsigned capability, unsigned *result) {
    Return code = link_of(device, link, ".active", result);
    if (code == SUCCESS) *result = capability != 4; /* every capability but an SLI bridge */
    return code;
}
Return nvmlDeviceGetNvLinkErrorCounter(Device device, unsigned link, unsigned counter, unsigned long long *value) {
    unsigned active = 0;
    Return code = link_of(device, link, ".active", &active);
    (void)counter;
    *value = 0;
    return code;
}
Return nvmlDeviceGetNvLinkRemoteDeviceType(Device device, unsigned link, unsigned *kind) {
    return link_of(device, link, ".remote_type", kind);
}
Return nvmlDeviceGetNvLinkRemotePciInfo_v2(Device device, unsigned link, struct pci_info *info) {
    char key[48];
    const char *text = NULL;
    unsigned active = 0;
    Return code = link_of(device, link, ".active", &active);
    memset(info, 0, sizeof *info);
    if (code == SUCCESS) code = text_of(device, indexed(key, sizeof key, "nvlink", link, ".remote"), &text);
    return code ? code : fill_pci(text, info);
}

Return nvmlDeviceGetTopologyCommonAncestor(Device first, Device second, unsigned *level) {
    char key[32];
    Return code = usable(second);
    return code ? code : unsigned_of(first, indexed(key, sizeof key, "topology", index_of(second), ""), level);
}
Return nvmlDeviceGetP2PStatus(Device first, Device second, unsigned capability, unsigned *status) {
    char key[32];
    const char *prefix = capability == 2 ? "p2p_nvlink" : "p2p"; /* 2: over NVLink only */
    Return code = usable(second);
    return code ? code : unsigned_of(first, indexed(key, sizeof key, prefix, index_of(second), ""), status);
}

struct fabric { unsigned char uuid[16]; int status; unsigned clique; unsigned char state; };
struct fabric_v { unsigned version; unsigned char uuid[16]; int status; unsigned clique; unsigned char state;
                  unsigned health; unsigned char summary; };

static Return fabric_of(Device device, struct fabric_v *fabric) {
    const char *text = NULL;
    unsigned state = 0, status = 0, summary = 0;
    Return code = unsigned_of(device, "fabric.state", &state);
    if (code == SUCCESS) code = unsigned_of(device, "fabric.status", &status);
    if (code == SUCCESS) code = unsigned_of(device, "fabric.clique", &fabric->clique);
    if (code == SUCCESS) code = text_of(device, "fabric.uuid", &text);
    if (code) return code;
    memset(fabric->uuid, 0, sizeof fabric->uuid);
    for (unsigned i = 0, at = 0; text[at] && text[at + 1] && i < 16;) {
        if (text[at] == '-') { at++; continue; }
        char pair[3] = {text[at], text[at + 1], '\0'};
        fabric->uuid[i++] = (unsigned char)strtoul(pair, NULL, 16);
        at += 2;
    }
    fabric->state = (unsigned char)state;
    fabric->status = (int)status;
    fabric->health = 0;
    unsigned_of(device, "fabric.health", &fabric->health);
    unsigned_of(device, "fabric.summary", &summary);
    if (fabric->version >> 24 >= 3) fabric->summary = (unsigned char)summary;
    return SUCCESS;
}
Return nvmlDeviceGetGpuFabricInfoV(Device device, struct fabric_v *fabric) {
    unsigned version = fabric->version >> 24;
    return version == 2 || version == 3 ? fabric_of(device, fabric) : 25; /* argument version mismatch */
}
Return nvmlDeviceGetGpuFabricInfo(Device device, struct fabric *fabric) {
    struct fabric_v full = {.version = 0x02000024};
    Return code = fabric_of(device, &full);
    if (code) return code;
    memcpy(fabric->uuid, full.uuid, sizeof full.uuid);
    fabric->status = full.status;
    fabric->clique = full.clique;
    fabric->state = full.state;
    return SUCCESS;
}

/* ---- CPU affinity ---- */

Return nvmlDeviceGetCpuAffinity(Device device, unsigned size, unsigned long *set) {
    const char *text = NULL;
    Return code = text_of(device, "cpus", &text);
    if (code) return code;
    memset(set, 0, size * sizeof *set);
    while (*text) {
        char *end;
        unsigned long first = strtoul(text, &end, 10), last = first;
        if (*end == '-') last = strtoul(end + 1, &end, 10);
        for (unsigned long cpu = first; cpu <= last; cpu++) {
            if (cpu / 64 >= size) return INSUFFICIENT_SIZE;
            set[cpu / 64] |= 1UL << cpu % 64;
        }
        text = *end == ',' ? end + 1 : end;
        if (*end && *end != ',') break;
    }
    return SUCCESS;
}

/* ---- processes ---- */

static Return no_processes(Device device, unsigned *count) {
    *count = 0;
    return usable(device);
}
Return nvmlDeviceGetComputeRunningProcesses_v3(Device device, unsigned *count, void *infos) {
    (void)infos;
    return no_processes(device, count);
}
Return nvmlDeviceGetComputeRunningProcesses_v2(Device device, unsigned *count, void *infos) {
    (void)infos;
    return no_processes(device, count);
}
Return nvmlDeviceGetGraphicsRunningProcesses_v3(Device device, unsigned *count, void *infos) {
    (void)infos;
    return no_processes(device, count);
}

/* ---- field values ---- */

struct field {
    uint32_t id, scope;
    int64_t timestamp, latency;
    unsigned type;
    int code;
    union { double real; unsigned number; unsigned long long large; long long negative; int small; } value;
};

static const struct { uint32_t id; const char *name; unsigned type; } fields[] = {
    {1, "ecc.current", VALUE_UNSIGNED}, {2, "ecc.pending", VALUE_UNSIGNED},
    {3, "ecc.volatile.corrected", VALUE_UNSIGNED_LONG_LONG}, {4, "ecc.volatile.uncorrected", VALUE_UNSIGNED_LONG_LONG},
    {5, "ecc.aggregate.corrected", VALUE_UNSIGNED_LONG_LONG}, {6, "ecc.aggregate.uncorrected", VALUE_UNSIGNED_LONG_LONG},
    {29, "retired.single", VALUE_UNSIGNED}, {30, "retired.double", VALUE_UNSIGNED},
    {31, "retired.pending", VALUE_UNSIGNED}, {82, "temperature.memory", VALUE_UNSIGNED},
    {90, "nvlink.rate_mbps", VALUE_UNSIGNED}, {91, "nvlink.count", VALUE_UNSIGNED},
    {94, "pcie.replay", VALUE_UNSIGNED}, {142, "remap.corrected", VALUE_UNSIGNED},
    {143, "remap.uncorrected", VALUE_UNSIGNED}, {144, "remap.pending", VALUE_UNSIGNED},
    {145, "remap.failure", VALUE_UNSIGNED}, {185, "power.average", VALUE_UNSIGNED},
    {186, "power.usage", VALUE_UNSIGNED}, {187, "power.min", VALUE_UNSIGNED}, {188, "power.max", VALUE_UNSIGNED},
    {189, "power.default", VALUE_UNSIGNED}, {190, "power.limit", VALUE_UNSIGNED}, {192, "power.limit", VALUE_UNSIGNED},
    {193, "tlimit.shutdown", VALUE_SIGNED}, {194, "tlimit.slowdown", VALUE_SIGNED},
    {195, "tlimit.memory", VALUE_SIGNED}, {196, "tlimit.gpu", VALUE_SIGNED}, {230, "recovery", VALUE_UNSIGNED},
};

/* The link that an NVLink field speaks of, or -1 where the field is not of one link. */
static int link_of_field(const struct field *field) {
    if (field->id >= 84 && field->id <= 89) return (int)field->id - 84;     /* SPEED_MBPS_L0..L5 */
    if (field->id >= 132 && field->id <= 137) return (int)field->id - 126;  /* SPEED_MBPS_L6..L11 */
    return field->id >= 164 && field->id <= 166 ? (int)field->scope : -1;   /* GET_SPEED, GET_STATE, GET_VERSION */
}

static int link_field(Device device, struct field *field, unsigned link) {
    unsigned value = 0;
    Return code = nvmlDeviceGetNvLinkState(device, link, &value);
    if (code == SUCCESS && field->id == 166) code = unsigned_of(device, "nvlink.version", &value);
    else if (code == SUCCESS && field->id != 165 && value) code = unsigned_of(device, "nvlink.rate_mbps", &value);
    field->type = VALUE_UNSIGNED;
    field->value.number = value;
    return code;
}

static int plain_field(Device device, struct field *field) {
    long long number = 0;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        if (fields[i].id != field->id) continue;
        Return code = number_of(device, fields[i].name, &number);
        field->type = fields[i].type;
        if (field->type == VALUE_SIGNED) field->value.small = (int)number;
        else if (field->type == VALUE_UNSIGNED) field->value.number = (unsigned)number;
        else field->value.large = (unsigned long long)number;
        return code;
    }
    return NOT_SUPPORTED;
}

Return nvmlDeviceGetFieldValues(Device device, int count, struct field *values) {
    Return code = usable(device);
    if (code) return code;
    for (int i = 0; i < count; i++) {
        int link = link_of_field(&values[i]);
        values[i].value.large = 0;
        values[i].code = link < 0 ? plain_field(device, &values[i]) : link_field(device, &values[i], (unsigned)link);
    }
    return SUCCESS;
}
