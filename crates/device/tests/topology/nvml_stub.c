/* A management library of a machine that is not there, with what the real ones are known for:
 * questions about links that a GPU does not have are answered, all but the one on their state.
 *
 * GPU 0: 18 links to switches, up. GPU 1: the same, and link 3 is down. GPU 2: divided in two;
 * one link straight to GPU 0. Only GPU 0 and 1 know a fabric.
 *
 * GPU 1 is hot and slow and has lost bits; GPU 2 tells nothing of how it is. */

#include <stdio.h>
#include <string.h>

enum { OK = 0, INVALID = 2, UNSUPPORTED = 3, MISMATCH = 25 };
#ifndef START
#define START OK /* what the library says when it is started */
#endif

enum { GPUS = 3, PARTS = 2 };

typedef struct device {
    int gpu;  /* -1: an instance */
    int part;
} device;

static device gpus[GPUS] = {{0, 0}, {1, 0}, {2, 0}};
static device parts[PARTS] = {{-1, 0}, {-1, 1}};

typedef struct {
    char legacy[16];
    unsigned domain, bus, device, id, subsystem;
    char bus_id[32];
} pci_info;

typedef struct {
    unsigned version;
    unsigned char cluster[16];
    unsigned status, clique;
    unsigned char state;
    unsigned health;
} fabric_info;

static void pci(int gpu, pci_info *info) {
    memset(info, 0, sizeof *info);
    info->bus = 0x19 + (unsigned)gpu;
    snprintf(info->legacy, sizeof info->legacy, "0000:%02X:00.0", info->bus);
    snprintf(info->bus_id, sizeof info->bus_id, "00000000:%02X:00.0", info->bus);
}

static int there(const device *d, unsigned link) { return d->gpu == 2 ? link == 0 : link < 18; }

const char *nvmlErrorString(int status) { return status == OK ? "success" : "failure"; }
int nvmlInit_v2(void) { return START; }
int nvmlShutdown(void) { return OK; }
int nvmlSystemGetDriverVersion(char *text, unsigned size) {
    return snprintf(text, size, "580.65.06") < 0 ? INVALID : OK;
}
int nvmlDeviceGetCount_v2(unsigned *count) { return *count = GPUS, OK; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, device **d) {
    return index < GPUS ? (*d = &gpus[index], OK) : INVALID;
}
int nvmlDeviceGetUUID(device *d, char *text, unsigned size) {
    int done = d->gpu < 0 ? snprintf(text, size, "MIG-%d", d->part)
                          : snprintf(text, size, "GPU-%d", d->gpu);
    return done < 0 ? INVALID : OK;
}
int nvmlDeviceGetHandleByUUID(const char *text, device **d) {
    int gpu;
    return sscanf(text, "GPU-%d", &gpu) == 1 && gpu < GPUS ? (*d = &gpus[gpu], OK) : INVALID;
}
int nvmlDeviceGetName(device *d, char *text, unsigned size) {
    (void)d;
    return snprintf(text, size, "NVIDIA Stub") < 0 ? INVALID : OK;
}
int nvmlDeviceGetPciInfo_v3(device *d, pci_info *info) { return pci(d->gpu, info), OK; }

int nvmlDeviceGetMigMode(device *d, unsigned *current, unsigned *pending) {
    if (d->gpu == 1) return UNSUPPORTED;
    return *current = *pending = d->gpu == 2, OK;
}
int nvmlDeviceGetMaxMigDeviceCount(device *d, unsigned *count) { (void)d; return *count = 7, OK; }
/* Places 1 and 4 of 7 are taken. */
int nvmlDeviceGetMigDeviceHandleByIndex(device *d, unsigned index, device **part) {
    (void)d;
    return index == 1 ? (*part = &parts[0], OK) : index == 4 ? (*part = &parts[1], OK) : INVALID;
}
int nvmlDeviceGetGpuInstanceId(device *d, unsigned *id) { return *id = 9 + (unsigned)d->part, OK; }
int nvmlDeviceGetComputeInstanceId(device *d, unsigned *id) { (void)d; return *id = 0, OK; }

int nvmlDeviceGetNvLinkState(device *d, unsigned link, int *up) {
    if (!there(d, link)) return link < 36 ? UNSUPPORTED : INVALID;
    return *up = !(d->gpu == 1 && link == 3), OK;
}
int nvmlDeviceGetNvLinkRemoteDeviceType(device *d, unsigned link, int *kind) {
    (void)link;
    return *kind = d->gpu == 2 ? 0 : 2, OK;
}
int nvmlDeviceGetNvLinkRemotePciInfo_v2(device *d, unsigned link, pci_info *info) {
    (void)d, (void)link;
    return pci(0, info), OK;
}
int nvmlDeviceGetP2PStatus(device *a, device *b, int what, int *status) {
    /* The reads of GPU 1 from GPU 0 are a question that fails. */
    if (a->gpu == 1 && b->gpu == 0 && what == 0) return UNSUPPORTED;
    return *status = a->gpu == 2 || b->gpu == 2 ? 4 : 0, OK;
}
int nvmlDeviceGetTopologyCommonAncestor(device *a, device *b, int *level) {
    return *level = a->gpu + b->gpu == 1 ? 10 : 50, OK;
}

int nvmlDeviceGetGpuFabricInfoV(device *d, fabric_info *info) {
    if (info->version != (sizeof *info | 2u << 24)) return MISMATCH;
    if (d->gpu == 2) return UNSUPPORTED;
    memset(info->cluster, 0xab, sizeof info->cluster);
    info->status = 0, info->clique = 5, info->state = 3, info->health = d->gpu == 1;
    return OK;
}

int nvmlDeviceGetClockInfo(device *d, int domain, unsigned *mhz) {
    if (d->gpu == 2) return UNSUPPORTED;
    return *mhz = domain == 2 ? 3201 : d->gpu == 1 ? 990 : 1980, OK;
}
int nvmlDeviceGetMaxClockInfo(device *d, int domain, unsigned *mhz) {
    if (d->gpu == 2) return UNSUPPORTED;
    return *mhz = domain == 2 ? 3201 : 1980, OK;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(device *d, unsigned long long *reasons) {
    /* Nothing to do; and the limit of power, a hardware slowdown by heat, and a bit of tomorrow. */
    if (d->gpu == 2) return UNSUPPORTED;
    return *reasons = d->gpu == 1 ? 0x4 | 0x8 | 0x40 | 1ull << 40 : 0x1, OK;
}
int nvmlDeviceGetPersistenceMode(device *d, int *mode) {
    return d->gpu == 2 ? UNSUPPORTED : (*mode = d->gpu == 0, OK);
}
int nvmlDeviceGetEccMode(device *d, int *current, int *pending) {
    return d->gpu == 2 ? UNSUPPORTED : (*current = *pending = 1, OK);
}
int nvmlDeviceGetTotalEccErrors(device *d, int kind, int counter, unsigned long long *count) {
    /* Asked: uncorrected (1), since the driver was loaded (0). */
    if (d->gpu == 2 || kind != 1 || counter != 0) return UNSUPPORTED;
    return *count = d->gpu == 1 ? 3 : 0, OK;
}
int nvmlDeviceGetComputeMode(device *d, int *mode) {
    return d->gpu == 2 ? UNSUPPORTED : (*mode = d->gpu == 1 ? 3 : 0, OK);
}
