// An engine in C on host memory: `ranks RANK WORLD RENDEZVOUS` checks every function with the other
// ranks, and ends with 0 or with the line of the first check that failed.

#include <crossover.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT 1200 // elements; every number of ranks from 1 to 6 divides it

static uint32_t rank, world;

#define CHECK(that)                                                                                \
    do {                                                                                           \
        if (!(that)) {                                                                             \
            fprintf(stderr, "rank %u, line %d: not so: %s (last error: %s)\n", rank, __LINE__,     \
                    #that, crossover_last_error());                                                \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

#define OK(call) CHECK((call) == CROSSOVER_STATUS_OK)
#define REFUSED(call, words)                                                                       \
    do {                                                                                           \
        CHECK((call) == CROSSOVER_STATUS_USAGE);                                                   \
        CHECK(strstr(crossover_last_error(), words) != NULL);                                      \
    } while (0)

static float input[COUNT], output[6 * COUNT];
static int32_t whole_in[COUNT], whole_out[COUNT];

static float value(uint32_t of, size_t at) { return (float)(of * 1000 + at % 97); }

static void fill(void) {
    for (size_t at = 0; at < COUNT; at++) {
        input[at] = value(rank, at);
        whole_in[at] = (int32_t)(rank * 100000 + at);
    }
    memset(output, 0xff, sizeof output);
    memset(whole_out, 0xff, sizeof whole_out);
}

static float sum(size_t at) {
    float all = 0;
    for (uint32_t of = 0; of < world; of++) all += value(of, at);
    return all;
}

static void collectives(crossover_group *group, uint32_t mode) {
    size_t part = COUNT / world;
    fill();
    OK(crossover_note_state(group, 7, 0x600D));
    OK(crossover_note_site(group, "L31.o_proj"));
    OK(crossover_all_reduce(group, input, output, COUNT, CROSSOVER_DTYPE_F32,
                            CROSSOVER_REDUCE_OP_SUM, mode, NULL));
    OK(crossover_note_site(group, NULL));
    OK(crossover_note_replay(group, 16));
    for (size_t at = 0; at < COUNT; at++) CHECK(output[at] == sum(at));
    OK(crossover_all_reduce(group, input, input, COUNT, CROSSOVER_DTYPE_F32,
                            CROSSOVER_REDUCE_OP_MAX, mode, NULL));
    for (size_t at = 0; at < COUNT; at++) CHECK(input[at] == value(world - 1, at));
    fill();
    OK(crossover_all_gather(group, input, output, COUNT, CROSSOVER_DTYPE_F32, mode, NULL));
    for (uint32_t of = 0; of < world; of++)
        for (size_t at = 0; at < COUNT; at++) CHECK(output[of * COUNT + at] == value(of, at));
    fill();
    OK(crossover_reduce_scatter(group, input, output, COUNT, CROSSOVER_DTYPE_F32,
                                CROSSOVER_REDUCE_OP_SUM, mode, NULL));
    for (size_t at = 0; at < part; at++) CHECK(output[at] == sum(rank * part + at));
    OK(crossover_broadcast(group, whole_in, whole_out, COUNT, CROSSOVER_DTYPE_I32, world - 1, mode,
                           NULL));
    for (size_t at = 0; at < COUNT; at++)
        CHECK(whole_out[at] == (int32_t)((world - 1) * 100000 + at));
    OK(crossover_all_to_all(group, whole_in, whole_out, COUNT, CROSSOVER_DTYPE_I32, mode, NULL));
    for (uint32_t of = 0; of < world; of++)
        for (size_t at = 0; at < part; at++)
            CHECK(whole_out[of * part + at] == (int32_t)(of * 100000 + rank * part + at));
    OK(crossover_all_reduce(group, NULL, NULL, 0, CROSSOVER_DTYPE_F32, CROSSOVER_REDUCE_OP_SUM,
                            mode, NULL));
}

// What is refused starts nothing: the group goes on.
static void refusals(crossover_group *group) {
    REFUSED(crossover_all_reduce(NULL, input, output, 1, 0, 0, 0, NULL), "`group` is null");
    REFUSED(crossover_all_reduce(group, NULL, output, 1, 0, 0, 0, NULL),
            "`input` of all_reduce is null, and it has 1 x f32");
    REFUSED(crossover_all_reduce(group, input, NULL, 1, 0, 0, 0, NULL), "`output` of all_reduce");
    REFUSED(crossover_all_reduce(group, input, output, 1, 12, 0, 0, NULL), "12 is no dtype");
    REFUSED(crossover_all_reduce(group, input, output, 1, 0, 5, 0, NULL), "5 is no reduce_op");
    REFUSED(crossover_all_reduce(group, input, output, 1, 0, 0, 2, NULL), "2 is no mode");
    REFUSED(crossover_all_reduce(group, input, output, SIZE_MAX, 0, 0, 0, NULL), "does not fit");
    REFUSED(crossover_broadcast(group, input, output, 1, 0, world, 0, NULL), "is not a rank");
    REFUSED(crossover_all_reduce(group, input, output, 1, 0, 0, 0, output),
            "`stream` of all_reduce is not null");
    REFUSED(crossover_group_rank(group, NULL), "`rank` is null");
    if (world > 1)
        REFUSED(crossover_all_to_all(group, input, output, world + 1, 0, 0, NULL), "split evenly");
}

static void calls_as_data(crossover_group *group) {
    crossover_call calls[2] = {{.size = sizeof(crossover_call), .count = COUNT},
                               {.size = sizeof(crossover_call), .count = COUNT}};
    calls[1].op = CROSSOVER_OP_ALL_GATHER;
    OK(crossover_prepare(group, calls, 2));
    OK(crossover_prepare(group, NULL, 0));
    if (world == 1) { // it copies, in any mode
        collectives(group, CROSSOVER_MODE_GRAPH);
        OK(crossover_commit(group));
        OK(crossover_all_reduce(group, input, output, 8, 0, 0, CROSSOVER_MODE_GRAPH, NULL));
    } else { // host memory has no graphs
        calls[0].mode = CROSSOVER_MODE_GRAPH;
        CHECK(crossover_prepare(group, calls, 2) == CROSSOVER_STATUS_NOTHING_ELIGIBLE);
        CHECK(strstr(crossover_last_error(), "nothing serves all_reduce sum of 1200 x f32 (graph)"));
        calls[0].mode = CROSSOVER_MODE_EAGER;
    }
    OK(crossover_discard(group));
    OK(crossover_commit(group));

    char *text = NULL;
    OK(crossover_explain(group, calls, &text));
    CHECK(strstr(text, "\"chosen\":{\"use\":\"") != NULL);
    crossover_text_free(text);
    OK(crossover_counters(group, &text));
    CHECK(strstr(text, "{\"op\":\"all_gather\",\"use\":\"") != NULL);
    crossover_text_free(text);
    OK(crossover_facts(group, &text));
    CHECK(strstr(text, "\"tag\":\"c-test\"") != NULL);
    crossover_text_free(text);

    calls[1].size += 8;
    REFUSED(crossover_prepare(group, calls, 2), "call 1 of `calls` says that it has 48 bytes");
    calls[0].size = SIZE_MAX;
    REFUSED(crossover_prepare(group, calls, 2), "no crossover_call has more than 4096");
    REFUSED(crossover_prepare(group, NULL, 1), "`calls` is null");
    calls[0].size = sizeof(crossover_call);
    calls[0].op = 5;
    REFUSED(crossover_explain(group, calls, &text), "5 is no op");
    REFUSED(crossover_explain(group, NULL, &text), "`call` is null");
    REFUSED(crossover_counters(group, NULL), "`text` is null");
}

static void descriptions(crossover_config config) {
    crossover_group *group = (crossover_group *)&config;
    crossover_config wrong = config;
    wrong.size = 8;
    REFUSED(crossover_group_create(&wrong, &group), "set its size to sizeof(crossover_config)");
    CHECK(group == NULL);
    wrong.size = SIZE_MAX;
    REFUSED(crossover_group_create(&wrong, &group), "no crossover_config has more than 4096");
    wrong = config;
    wrong.world = UINT32_MAX;
    REFUSED(crossover_group_create(&wrong, &group), "a group has at most 65536 ranks");
    wrong = config;
    wrong.rank = world;
    REFUSED(crossover_group_create(&wrong, &group), "there is no rank");
    wrong = config;
    wrong.world = wrong.rank = 0;
    REFUSED(crossover_group_create(&wrong, &group), "`world` is 0");
    wrong = config;
    wrong.rendezvous = "udp:here";
    REFUSED(crossover_group_create(&wrong, &group), "`rendezvous` = `udp:here`");
    wrong = config;
    wrong.setting_count = 1;
    wrong.settings = NULL;
    REFUSED(crossover_group_create(&wrong, &group), "`settings` is null, and 1 are announced");
    REFUSED(crossover_group_create(&config, NULL), "`group` is null");
}

// Of all ranks: a commit is an exchange.
static void closed(crossover_config config) {
    crossover_group *group = NULL;
    config.attempt = 1;
    OK(crossover_group_create(&config, &group));
    OK(crossover_group_close(group));
    REFUSED(crossover_all_reduce(group, input, output, COUNT, 0, 0, 0, NULL), "is closed");
    REFUSED(crossover_commit(group), "is closed");
    REFUSED(crossover_check(group), "is closed");
    REFUSED(crossover_note_replay(group, 16), "is closed");
    REFUSED(crossover_note_state(NULL, 1, 1), "`group` is null");
    crossover_group_free(group);
}

// Of all ranks: what one refuses is told on all where calls are compared.
static void compared(crossover_config config) {
    crossover_setting settings[] = {{"call_timeout", "30s"}, {"use", "host"}, {"check", "args"}};
    crossover_group *group = NULL;
    config.attempt = 2;
    config.settings = settings;
    config.setting_count = 3;
    OK(crossover_group_create(&config, &group));
    OK(crossover_all_reduce(group, input, output, COUNT, 0, 0, 0, NULL));
    float *mine = rank == 0 ? NULL : input;
    crossover_status status = crossover_all_reduce(group, mine, output, COUNT, 0, 0, 0, NULL);
    CHECK(status == (world > 1 ? CROSSOVER_STATUS_FAILED : CROSSOVER_STATUS_USAGE));
    CHECK(strstr(crossover_last_error(), "`input` of all_reduce is null") != NULL);
    CHECK(world == 1 || strstr(crossover_last_error(), "rank 0 cannot make its call") != NULL);
    crossover_group_free(group);
}

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    rank = (uint32_t)atoi(argv[1]);
    world = (uint32_t)atoi(argv[2]);
    CHECK(crossover_api_version() == 1 && crossover_version()[0] != 0);
    CHECK(crossover_last_error()[0] == 0);

    crossover_setting settings[] = {{"call_timeout", "30s"}, {"use", "host"}};
    crossover_config config = {.size = sizeof config, .tag = "c-test", .device = "host"};
    config.rank = rank;
    config.world = world;
    config.rendezvous = argv[3];
    config.job = "c-test";
    config.settings = settings;
    config.setting_count = 2;
    descriptions(config);

    crossover_group *group = NULL;
    OK(crossover_group_create(&config, &group));
    uint32_t told[2] = {99, 99};
    OK(crossover_group_rank(group, &told[0]));
    OK(crossover_group_world(group, &told[1]));
    CHECK(told[0] == rank && told[1] == world);
    collectives(group, CROSSOVER_MODE_EAGER);
    refusals(group);
    collectives(group, CROSSOVER_MODE_EAGER);
    OK(crossover_check(group));
    calls_as_data(group);

    // One rank gives up; the others are in a call, or come to one.
    crossover_status status;
    if (rank == 0 && world > 1) {
        OK(crossover_abort(group, "seen enough"));
    }
    status = crossover_all_reduce(group, input, output, COUNT, 0, 0, 0, NULL);
    if (world > 1) {
        CHECK(status == CROSSOVER_STATUS_PEER_LOST);
        CHECK(strstr(crossover_last_error(), "rank 0 aborted the group: seen enough") != NULL);
    } else {
        OK(status);
    }
    CHECK(crossover_check(group) == status);
    OK(crossover_group_close(group));
    CHECK(crossover_all_reduce(group, input, output, COUNT, 0, 0, 0, NULL) != 0);
    crossover_group_free(group);
    closed(config);
    compared(config);
    crossover_group_free(NULL);
    crossover_text_free(NULL);
    return 0;
}
