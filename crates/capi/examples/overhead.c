/* The arm in C of overhead.rs: nanoseconds of CPU time per call, one line for each kind of call.
 *
 *   overhead KEYS CALLS
 */
#define _POSIX_C_SOURCE 200809L
#include <millpond.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void must(mp_status status) {
    if (status >= 0) return;
    fprintf(stderr, "%s: %s\n", mp_status_name(status), mp_error_message());
    exit(1);
}

static double now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1e9 + now.tv_nsec;
}

/* The next of a series of numbers, as overhead.rs has it. */
static uint64_t draw(uint64_t *state, uint64_t below) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state % below;
}

/* Keys are big-endian, so that they are in the order of the numbers. */
static uint64_t key_of(uint64_t number) { return __builtin_bswap64(number); }

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    uint64_t keys = strtoull(argv[1], NULL, 10), calls = strtoull(argv[2], NULL, 10);
    mp_store *store;
    mp_tree *tree;
    mp_txn *txn;
    mp_buffer value = MP_BUFFER_INIT;
    mp_options *options = mp_options_new();
    must(mp_options_memory(options, 256 << 20));
    must(mp_open_memory(options, &store));
    mp_options_free(options);
    must(mp_tree_open(store, "tree", MP_OPEN_OR_CREATE, &tree));
    for (uint64_t number = 0; number < keys; number++) {
        uint64_t key = key_of(number);
        must(mp_put(tree, NULL, &key, sizeof key, &number, sizeof number));
    }
    for (int in_txn = 0; in_txn < 2; in_txn++) {
        for (int writes = 0; writes < 2; writes++) {
            uint64_t state = 88172645463325252u, sum = 0;
            txn = NULL;
            if (in_txn) must(mp_txn_begin(store, NULL, &txn));
            double begun = now_ns();
            for (uint64_t call = 0; call < calls; call++) {
                uint64_t key = key_of(draw(&state, keys));
                if (writes) {
                    must(mp_put(tree, txn, &key, sizeof key, &call, sizeof call));
                } else {
                    if (mp_get(tree, txn, &key, sizeof key, &value) != MP_OK) return 1;
                    sum += *(const uint64_t *)value.data;
                }
            }
            double ns = (now_ns() - begun) / calls;
            if (txn != NULL) must(mp_txn_commit(txn));
            if (!writes && sum == 0) return 1;
            printf("%.3f\n", ns);
        }
    }
    mp_buffer_free(&value);
    mp_tree_close(tree);
    must(mp_close(store));
    return 0;
}
