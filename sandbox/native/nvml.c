/* libnvidia-ml.so.1 of a simulated host: answers NVML calls from the machine description (machine.h).
 *
 * A value is read from "gpu.<index>.<name>". A name that the description lacks answers NVML_ERROR_NOT_SUPPORTED, as the
 * driver does for a feature that the board does not have; a value "!15" answers with that NVML error code. The keys:
 *
 *   nvml.init     return code of nvmlInit (18 library mismatch, 9 driver not loaded)    nvml.hang  1: never returns
 *   driver.version  nvml.version  cuda.driver (13000)  gpu.count
 *   gpu.N.error   return code for the handle (15 lost)
 *   name uuid serial vbios gsp part gpu_part minor board_id module_id brand arch compute virtualization
 *   inforom.{image,oem,ecc,power,corrupt}    repair.{channel,tpc,impossible}
 *   pci.bus_id pci.device_id pci.subsystem (hex)    memory.total memory.reserved memory.used bar1.total (bytes)
 *   ecc.current ecc.pending ecc.{volatile,aggregate}.{corrected,uncorrected}[.dram|.sram] ecc.sram_threshold
 *   remap.{corrected,uncorrected,pending,failure,banks}    retired.{single,double,pending}
 *   temperature.{gpu,memory,margin} threshold.{0..7} tlimit.{shutdown,slowdown,memory,gpu}
 *   power.{usage,average,limit,default,min,max} (mW)    clock.{graphics,sm,memory,video}[.max]    pstate
 *   throttle (mask)    pcie.{gen,gen.max,width,width.max,replay}    persistence compute_mode
 *   mig.{current,pending,max,count} and of each MIG instance mig.K.{name,uuid,gi,ci,slices,sms,copy,decoders,encoders,
 *   jpegs,ofas} mig.K.memory.{total,reserved,used} mig.K.bar1.total
 *   nvlink.count nvlink.version nvlink.rate_mbps nvlink.L.active nvlink.L.remote (bus id) nvlink.L.remote_type
 *   topology.M p2p.M p2p_nvlink.M (NVML's numbers)    cpus nodes (kernel lists)    memory.numa    recovery
 *   fabric.{state,status,clique,uuid,health,summary}
 *
 * Struct layouts are those that NVIDIA publishes with its Python binding (nvidia-ml-py). The library's parts: this file
 * (library and devices), nvml_health.c (memory errors, temperatures, clocks), nvml_links.c (NVLink, topology, fabric),
 * nvml_mig.c (MIG instances), nvml_fields.c (field values), nvml_smi.c (what only nvidia-smi asks for).
 */
#include "nvml.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { INSTANCE_SHIFT = 16, INDEX_MASK = 0xffff }; /* a handle: the GPU's index + 1, above it the MIG instance */

static int initialised;

Device nvml_device_of(unsigned index) { return (Device)(uintptr_t)(index + 1); }
unsigned nvml_index_of(Device device) { return (unsigned)((uintptr_t)device & INDEX_MASK) - 1; }
unsigned nvml_instance_of(Device device) { return (unsigned)((uintptr_t)device >> INSTANCE_SHIFT); }
Device nvml_instance_handle(Device device, unsigned instance) {
    return (Device)((uintptr_t)device | (uintptr_t)(instance + 1) << INSTANCE_SHIFT);
}
unsigned nvml_device_count(void) { return (unsigned)machine_number("gpu.count", 0); }

/* Is this a device that can be asked? Its error code if not. */
Return nvml_usable(Device device) {
    if (!initialised) return UNINITIALIZED;
    if (!device || nvml_index_of(device) >= nvml_device_count()) return INVALID_ARGUMENT;
    return (Return)machine_gpu_number(nvml_index_of(device), "error", SUCCESS);
}

/* The text of one name of a device; the error code where there is none. */
Return nvml_text_of(Device device, const char *name, const char **text) {
    char key[64];
    Return code = nvml_usable(device);
    if (code) return code;
    if (nvml_instance_of(device)) {
        snprintf(key, sizeof key, "mig.%u.%s", nvml_instance_of(device) - 1, name);
        name = key;
    }
    *text = machine_gpu(nvml_index_of(device), name);
    if (!*text) return NOT_SUPPORTED;
    return **text == '!' ? (Return)strtol(*text + 1, NULL, 10) : SUCCESS;
}

Return nvml_number_of(Device device, const char *name, long long *value) {
    const char *text = NULL;
    Return code = nvml_text_of(device, name, &text);
    if (code == SUCCESS) *value = strtoll(text, NULL, 0);
    return code;
}

Return nvml_unsigned_of(Device device, const char *name, unsigned *value) {
    long long number = 0;
    Return code = nvml_number_of(device, name, &number);
    if (code == SUCCESS) *value = (unsigned)number;
    return code;
}

static Return copy(const char *text, char *buffer, unsigned size) {
    if (strlen(text) >= size) return INSUFFICIENT_SIZE;
    strcpy(buffer, text);
    return SUCCESS;
}

Return nvml_copy_of(Device device, const char *name, char *buffer, unsigned size) {
    const char *text = NULL;
    Return code = nvml_text_of(device, name, &text);
    return code ? code : copy(text, buffer, size);
}

const char *nvml_indexed(char *key, size_t size, const char *prefix, unsigned index, const char *suffix) {
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
    *count = nvml_device_count();
    return SUCCESS;
}
Return nvmlDeviceGetCount(unsigned *count) { return nvmlDeviceGetCount_v2(count); }

Return nvmlDeviceGetHandleByIndex_v2(unsigned index, Device *device) {
    Return code = nvml_usable(nvml_device_of(index));
    if (code == SUCCESS) *device = nvml_device_of(index);
    return code;
}
Return nvmlDeviceGetHandleByIndex(unsigned index, Device *device) {
    return nvmlDeviceGetHandleByIndex_v2(index, device);
}

static Return handle_by(const char *name, const char *wanted, Device *device) {
    if (!initialised) return UNINITIALIZED;
    for (unsigned i = 0; i < nvml_device_count(); i++) {
        const char *text = machine_gpu(i, name);
        size_t skip = text && strlen(text) > strlen(wanted) ? strlen(text) - strlen(wanted) : 0; /* short PCI domain */
        if (text && strcasecmp(text + skip, wanted) == 0) return nvmlDeviceGetHandleByIndex_v2(i, device);
    }
    return NOT_FOUND;
}
Return nvmlDeviceGetHandleByUUID(const char *uuid, Device *device) { return handle_by("uuid", uuid, device); }
Return nvmlDeviceGetHandleByPciBusId_v2(const char *bus, Device *device) { return handle_by("pci.bus_id", bus, device); }

#define TEXT(function, name) \
    Return function(Device device, char *buffer, unsigned size) { return nvml_copy_of(device, name, buffer, size); }

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

Return nvmlDeviceGetGspFirmwareVersion(Device device, char *version) { return nvml_copy_of(device, "gsp", version, 0x40); }

Return nvmlDeviceGetVirtualizationMode(Device device, unsigned *mode) {
    return nvml_unsigned_of(device, "virtualization", mode);
}

Return nvmlDeviceGetCudaComputeCapability(Device device, int *major, int *minor) {
    const char *text = NULL;
    Return code = nvml_text_of(device, "compute", &text);
    if (code == SUCCESS && sscanf(text, "%d.%d", major, minor) != 2) return NOT_SUPPORTED;
    return code;
}

Return nvml_fill_pci(const char *text, struct pci_info *info) {
    if (sscanf(text, "%x:%x:%x", &info->domain, &info->bus, &info->device) != 3) return NOT_SUPPORTED;
    snprintf(info->legacy, sizeof info->legacy, "%04X:%02X:%02X.0", info->domain & 0xffff, info->bus & 0xff,
             info->device & 0xff);
    return copy(text, info->bus_id, sizeof info->bus_id);
}
Return nvmlDeviceGetPciInfo_v3(Device device, struct pci_info *info) {
    const char *text = NULL;
    Return code = nvml_text_of(device, "pci.bus_id", &text);
    memset(info, 0, sizeof *info);
    if (code == SUCCESS) code = nvml_fill_pci(text, info);
    if (code == SUCCESS) code = nvml_unsigned_of(device, "pci.device_id", &info->device_id);
    return code ? code : nvml_unsigned_of(device, "pci.subsystem", &info->subsystem);
}
Return nvmlDeviceGetPciInfo_v2(Device device, struct pci_info *info) { return nvmlDeviceGetPciInfo_v3(device, info); }

struct memory { unsigned long long total, free, used; };
struct memory_v2 { unsigned version; unsigned long long total, reserved, free, used; };

Return nvmlDeviceGetMemoryInfo_v2(Device device, struct memory_v2 *memory) {
    long long total = 0, reserved = 0, used = 0;
    Return code = nvml_number_of(device, "memory.total", &total);
    if (code == SUCCESS) code = nvml_number_of(device, "memory.reserved", &reserved);
    if (code == SUCCESS) code = nvml_number_of(device, "memory.used", &used);
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
    Return code = nvml_number_of(device, "bar1.total", &total);
    if (code == SUCCESS) *memory = (struct memory){(unsigned long long)total, (unsigned long long)total, 0};
    return code;
}

/* ---- CPU affinity ---- */

Return nvml_bits_of(const char *text, unsigned size, unsigned long *set) {
    memset(set, 0, size * sizeof *set);
    while (*text) {
        char *end;
        unsigned long first = strtoul(text, &end, 10), last = first;
        if (*end == '-') last = strtoul(end + 1, &end, 10);
        for (unsigned long bit = first; bit <= last; bit++) {
            if (bit / 64 >= size) return INSUFFICIENT_SIZE;
            set[bit / 64] |= 1UL << bit % 64;
        }
        text = *end == ',' ? end + 1 : end;
        if (*end && *end != ',') break;
    }
    return SUCCESS;
}
Return nvmlDeviceGetCpuAffinity(Device device, unsigned size, unsigned long *set) {
    const char *text = NULL;
    Return code = nvml_text_of(device, "cpus", &text);
    return code ? code : nvml_bits_of(text, size, set);
}

/* ---- processes ---- */

static Return no_processes(Device device, unsigned *count) {
    *count = 0;
    return nvml_usable(device);
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
