/*
 * An OpenCL layer that presents a processor as the graphics device which OpenVINO's GPU plugin looks for.
 *
 * The OpenCL loader hands a layer the table of the functions below it and takes a table of replacements;
 * where that is null, or ends early, the functions below stay in force. Order and signatures are those of
 * the Khronos ICD interface, which is frozen, so that the few that matter are declared here and no header
 * of OpenCL has to be installed. The numbers are those of CL/cl.h, cl_ext.h and cl_layer.h.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define EXPORTED __attribute__((visibility("default")))

enum { SUCCESS = 0, INVALID_VALUE = -30 };
enum { LAYER_API_VERSION = 0x4240, LAYER_NAME = 0x4241 };
enum { DEVICE_TYPE = 0x1000, DEVICE_EXTENSIONS = 0x1030, DEVICE_IP_VERSION = 0x4250 };

typedef struct program program;

struct functions {
    void *platforms_and_device_ids[3];
    int32_t (*device_info)(void *device, uint32_t what, size_t room, void *answer, size_t *length);
    void *contexts_to_samplers[22];
    program *(*program_from_source)(void *context, uint32_t count, const char **texts, const size_t *lengths,
                                    int32_t *error);
    program *(*program_from_binary)(void *context, uint32_t count, void *const *devices, const size_t *lengths,
                                    const unsigned char **binaries, int32_t *states, int32_t *error);
    int32_t (*retain_program)(program *);
};

enum { FUNCTIONS = sizeof(struct functions) / sizeof(void *) };

static const struct functions *below;

static int32_t reply(const void *value, size_t size, size_t room, void *answer, size_t *length) {
    if (length)
        *length = size;
    if (!answer)
        return SUCCESS;
    if (room < size)
        return INVALID_VALUE;
    memcpy(answer, value, size);
    return SUCCESS;
}

/*
 * This runtime forms subgroups along the first dimension only, the plugin's kernels along any. Without these
 * extensions the plugin takes its kernels that do without: slower ones, with the right values.
 */
static void hide_subgroups(char *extensions) {
    static const char prefix[] = "cl_intel_subgroups";
    for (char *found = extensions; (found = strstr(found, prefix));)
        memset(found, ' ', strcspn(found, " "));
}

/* The plugin skips a device that is no GPU, and one whose hardware it has never heard of. */
static int32_t device_info(void *device, uint32_t what, size_t room, void *answer, size_t *length) {
    const uint64_t gpu = 1u << 2;
    const uint32_t xe_lp = 12u << 22; /* architecture 12, release 0: without matrix units */
    if (what == DEVICE_TYPE)
        return reply(&gpu, sizeof gpu, room, answer, length);
    if (what == DEVICE_IP_VERSION)
        return reply(&xe_lp, sizeof xe_lp, room, answer, length);
    const int32_t error = below->device_info(device, what, room, answer, length);
    if (what == DEVICE_EXTENSIONS && answer && error == SUCCESS)
        hide_subgroups(answer);
    return error;
}

/*
 * A kernel keeps its program alive, says OpenCL. This runtime forgets a program with the last reference of
 * the caller, and the plugin asks the kernel for it later. A reference that nobody gives back mends that.
 */
static program *keep(program *made) {
    if (made)
        below->retain_program(made);
    return made;
}

static program *program_from_source(void *context, uint32_t count, const char **texts, const size_t *lengths,
                                    int32_t *error) {
    return keep(below->program_from_source(context, count, texts, lengths, error));
}

static program *program_from_binary(void *context, uint32_t count, void *const *devices, const size_t *lengths,
                                    const unsigned char **binaries, int32_t *states, int32_t *error) {
    return keep(below->program_from_binary(context, count, devices, lengths, binaries, states, error));
}

static const struct functions replaced = {
    .device_info = device_info,
    .program_from_source = program_from_source,
    .program_from_binary = program_from_binary,
};

EXPORTED int32_t clGetLayerInfo(uint32_t what, size_t room, void *answer, size_t *length) {
    static const char name[] = "ir_scatter: a GPU on the CPU";
    const uint32_t version = 100;
    if (what == LAYER_API_VERSION)
        return reply(&version, sizeof version, room, answer, length);
    if (what == LAYER_NAME)
        return reply(name, sizeof name, room, answer, length);
    return INVALID_VALUE;
}

/* What older loaders call. */
EXPORTED int32_t clInitLayer(uint32_t known, const void *target, uint32_t *count, const void **table) {
    if (known < FUNCTIONS || !target || !count || !table)
        return INVALID_VALUE;
    below = target;
    *count = FUNCTIONS;
    *table = &replaced;
    return SUCCESS;
}

/* What newer ones call. */
EXPORTED int32_t clInitLayerWithProperties(uint32_t known, const void *target, uint32_t *count, const void **table,
                                           const void *properties) {
    (void)properties;
    return clInitLayer(known, target, count, table);
}

EXPORTED int32_t clDeinitLayer(void) {
    return SUCCESS;
}
