/* Field values of the stub libnvidia-ml.so.1, by NVML's field numbers. See nvml.c. */
#include "nvml.h"

#include <stdint.h>
#include <stdio.h>

enum { VALUE_UNSIGNED = 1, VALUE_UNSIGNED_LONG_LONG = 3, VALUE_SIGNED = 5 };

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

/* The link that an NVLink field speaks of, or -1 where the field is not of one link. 161 to 166 name it in their scope:
 * ERROR_DL_REPLAY, _RECOVERY, _CRC, GET_SPEED, GET_STATE, GET_VERSION. */
static int link_of_field(const struct field *field) {
    if (field->id >= 84 && field->id <= 89) return (int)field->id - 84;     /* SPEED_MBPS_L0..L5 */
    if (field->id >= 132 && field->id <= 137) return (int)field->id - 126;  /* SPEED_MBPS_L6..L11 */
    return field->id >= 161 && field->id <= 166 ? (int)field->scope : -1;
}

static int link_field(Device device, struct field *field, unsigned link) {
    unsigned value = 0;
    Return code = nvmlDeviceGetNvLinkState(device, link, &value);
    if (code == SUCCESS && field->id == 166) code = nvml_unsigned_of(device, "nvlink.version", &value);
    else if (code == SUCCESS && field->id >= 161 && field->id <= 163) value = 0; /* no link has counted an error */
    else if (code == SUCCESS && field->id != 165 && value) code = nvml_unsigned_of(device, "nvlink.rate_mbps", &value);
    field->type = VALUE_UNSIGNED;
    field->value.number = value;
    return code;
}

static int switch_field(Device device, struct field *field) {
    field->type = VALUE_UNSIGNED;
    return nvml_switch_links(device, &field->value.number);
}

static int plain_field(Device device, struct field *field) {
    long long number = 0;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        if (fields[i].id != field->id) continue;
        Return code = nvml_number_of(device, fields[i].name, &number);
        field->type = fields[i].type;
        if (field->type == VALUE_SIGNED) field->value.small = (int)number;
        else if (field->type == VALUE_UNSIGNED) field->value.number = (unsigned)number;
        else field->value.large = (unsigned long long)number;
        return code;
    }
    return NOT_SUPPORTED;
}

Return nvmlDeviceGetFieldValues(Device device, int count, struct field *values) {
    Return code = nvml_usable(device);
    if (code) return code;
    for (int i = 0; i < count; i++) {
        int link = link_of_field(&values[i]);
        values[i].value.large = 0;
        if (values[i].id == 147) values[i].code = switch_field(device, &values[i]);
        else if (link >= 0) values[i].code = link_field(device, &values[i], (unsigned)link);
        else values[i].code = plain_field(device, &values[i]);
    }
    return SUCCESS;
}
