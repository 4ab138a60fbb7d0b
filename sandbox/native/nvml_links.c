/* NVLink, topology and fabric of the stub libnvidia-ml.so.1. See nvml.c. */
#include "nvml.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- NVLink, topology, fabric ---- */

enum { LINKS_MAX = 18, REMOTE_SWITCH = 2 }; /* nvidia-smi asks every board for 18 links and stops at another error */

static Return link_of(Device device, unsigned link, const char *suffix, unsigned *value) {
    char key[48];
    unsigned links = 0;
    Return code = nvml_unsigned_of(device, "nvlink.count", &links);
    if (code) return code;
    if (link >= links) return link < LINKS_MAX ? NOT_SUPPORTED : INVALID_ARGUMENT;
    return nvml_unsigned_of(device, nvml_indexed(key, sizeof key, "nvlink", link, suffix), value);
}
Return nvmlDeviceGetNvLinkState(Device device, unsigned link, unsigned *active) {
    return link_of(device, link, ".active", active);
}
Return nvmlDeviceGetNvLinkVersion(Device device, unsigned link, unsigned *version) {
    Return code = link_of(device, link, ".active", version);
    return code ? code : nvml_unsigned_of(device, "nvlink.version", version);
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
    if (code == SUCCESS && !active) code = NOT_SUPPORTED; /* nobody is known at the other end */
    if (code == SUCCESS) code = nvml_text_of(device, nvml_indexed(key, sizeof key, "nvlink", link, ".remote"), &text);
    return code ? code : nvml_fill_pci(text, info);
}

Return nvml_switch_links(Device device, unsigned *count) {
    unsigned links = 0, active = 0, kind = 0;
    Return code = nvml_unsigned_of(device, "nvlink.count", &links);
    *count = 0;
    for (unsigned link = 0; code == SUCCESS && link < links; link++)
        *count += link_of(device, link, ".active", &active) == SUCCESS && active &&
                  link_of(device, link, ".remote_type", &kind) == SUCCESS && kind == REMOTE_SWITCH;
    return code;
}

Return nvmlDeviceGetTopologyCommonAncestor(Device first, Device second, unsigned *level) {
    char key[32];
    Return code = nvml_usable(second);
    return code ? code : nvml_unsigned_of(first, nvml_indexed(key, sizeof key, "topology", nvml_index_of(second), ""), level);
}
Return nvmlDeviceGetP2PStatus(Device first, Device second, unsigned capability, unsigned *status) {
    char key[32];
    const char *prefix = capability == 2 ? "p2p_nvlink" : "p2p"; /* 2: over NVLink only */
    Return code = nvml_usable(second);
    return code ? code : nvml_unsigned_of(first, nvml_indexed(key, sizeof key, prefix, nvml_index_of(second), ""), status);
}

struct fabric { unsigned char uuid[16]; int status; unsigned clique; unsigned char state; };
struct fabric_v { unsigned version; unsigned char uuid[16]; int status; unsigned clique; unsigned char state;
                  unsigned health; unsigned char summary; };

static Return fabric_of(Device device, struct fabric_v *fabric) {
    const char *text = NULL;
    unsigned state = 0, status = 0, summary = 0;
    Return code = nvml_unsigned_of(device, "fabric.state", &state);
    if (code == SUCCESS) code = nvml_unsigned_of(device, "fabric.status", &status);
    if (code == SUCCESS) code = nvml_unsigned_of(device, "fabric.clique", &fabric->clique);
    if (code == SUCCESS) code = nvml_text_of(device, "fabric.uuid", &text);
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
    nvml_unsigned_of(device, "fabric.health", &fabric->health);
    nvml_unsigned_of(device, "fabric.summary", &summary);
    if (fabric->version >> 24 >= 3) fabric->summary = (unsigned char)summary;
    return SUCCESS;
}
Return nvmlDeviceGetGpuFabricInfoV(Device device, struct fabric_v *fabric) {
    unsigned version = fabric->version >> 24;
    return version == 2 || version == 3 ? fabric_of(device, fabric) : ARGUMENT_VERSION_MISMATCH;
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
