/* Closed descriptors, forks, and a store that is used while the process ends. */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <fcntl.h>
#include <millpond.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int failures = 0;
/* A bit for each place that found a standard descriptor open. */
static long closed_failures = 0;
static char other_path[4096];
static mp_store *store = NULL;
static mp_tree *tree = NULL;

#define EXPECT(wanted, call)                                                                   \
    do {                                                                                       \
        mp_status got = (call);                                                                \
        if (got != (wanted)) {                                                                 \
            failures++;                                                                        \
            printf("%d: %s is %s, not %s (%s)\n", __LINE__, #call, mp_status_name(got),        \
                   mp_status_name(wanted), mp_error_message());                                \
        }                                                                                      \
    } while (0)

static void open_it(const char *path) {
    mp_options *options = mp_options_new();
    EXPECT(MP_OK, mp_options_memory(options, 8 << 20));
    EXPECT(MP_OK, mp_open(path, options, &store));
    mp_options_free(options);
    EXPECT(MP_OK, mp_tree_open(store, "t", MP_OPEN_OR_CREATE, &tree));
}

/* Threads that are ending keep nothing of the store's for themselves any more. */
static void at_the_end(void) {
    EXPECT(MP_OK, mp_put(tree, NULL, "late", 4, "1", 1));
    mp_txn *txn = NULL;
    EXPECT(MP_OK, mp_txn_begin(store, NULL, &txn));
    EXPECT(MP_OK, mp_put(tree, txn, "late", 4, "2", 1));
    EXPECT(MP_OK, mp_txn_abort(txn));
    mp_tree_close(tree);
    EXPECT(MP_OK, mp_close(store));
    /* Another one can be opened yet. */
    open_it(other_path);
    EXPECT(MP_OK, mp_put(tree, NULL, "later", 5, "3", 1));
    mp_tree_close(tree);
    EXPECT(MP_OK, mp_close(store));
    fflush(stdout);
    if (failures != 0) _exit(1);
}

/* The standard descriptors are closed still: nothing that was opened took one of them. */
static void expect_closed(int line) {
    for (int fd = 0; fd < 3; fd++) {
        int is_closed = fcntl(fd, F_GETFD) == -1 && write(fd, "some text", 9) == -1;
        if (is_closed && errno == EBADF) continue;
        failures++;
        closed_failures |= 1L << (line % 60);
    }
}

static int32_t looking(uint64_t done, uint64_t total, void *user) {
    (void)done, (void)total, (void)user;
    expect_closed(__LINE__);
    return 0;
}

/* What a program does that is started with its standard descriptors closed: the files of the store
 * itself, of what a transaction spills, of a cache and of a backup stay above them. */
static void without_descriptors(const char *path) {
    char cache[4096], copy[4096], value[500] = {7};
    snprintf(cache, sizeof cache, "%s.cache", path);
    snprintf(copy, sizeof copy, "%s.copy", path);
    int kept = fcntl(1, F_DUPFD, 10);
    for (int fd = 0; fd < 3; fd++) close(fd);
    mp_options *options = mp_options_new();
    EXPECT(MP_OK, mp_options_memory(options, 8 << 20));
    EXPECT(MP_OK, mp_options_second_tier(options, cache, 1 << 20, "tq", false));
    EXPECT(MP_OK, mp_open(path, options, &store));
    mp_options_free(options);
    expect_closed(__LINE__);
    EXPECT(MP_OK, mp_tree_open(store, "t", MP_OPEN_OR_CREATE, &tree));
    EXPECT(MP_OK, mp_put(tree, NULL, "first", 5, "1", 1));
    mp_txn *txn = NULL;
    EXPECT(MP_OK, mp_txn_begin(store, NULL, &txn));
    for (int turn = 0; turn < 2; turn++) {
        for (uint32_t key = 0; key < 4000; key++)
            EXPECT(MP_OK, mp_put(tree, txn, &key, sizeof key, value, sizeof value));
        expect_closed(__LINE__);
    }
    EXPECT(MP_OK, mp_txn_abort(txn));
    EXPECT(MP_OK, mp_backup(store, copy, looking, NULL));
    EXPECT(MP_OK, mp_checkpoint(store));
    expect_closed(__LINE__);
    mp_tree_close(tree);
    EXPECT(MP_OK, mp_close(store));
    for (int fd = 0; fd < 3; fd++) dup2(kept, fd);
    close(kept);
    if (failures != 0) printf("%d failures without descriptors, %lx\n", failures, closed_failures);
}

static void in_the_child(mp_txn *txn, mp_snapshot *snapshot, mp_cursor *cursor) {
    mp_buffer value = MP_BUFFER_INIT;
    alarm(30);
    EXPECT(MP_IN_USE, mp_put(tree, NULL, "a", 1, "child", 5));
    EXPECT(MP_IN_USE, mp_get(tree, NULL, "a", 1, &value));
    EXPECT(MP_IN_USE, mp_put(tree, txn, "a", 1, "child", 5));
    EXPECT(MP_IN_USE, mp_flush(store));
    EXPECT(MP_IN_USE, mp_checkpoint(store));
    EXPECT(MP_IN_USE, mp_cursor_next(cursor));
    EXPECT(MP_IN_USE, mp_txn_commit(txn));
    mp_cursor_close(cursor);
    mp_snapshot_end(snapshot);
    mp_tree_close(tree);
    EXPECT(MP_IN_USE, mp_close(store));
    fflush(stdout);
    _exit(failures != 0);
}

int main(int count, char **arguments) {
    if (count != 2) return 2;
    const char *path = arguments[1];
    snprintf(other_path, sizeof other_path, "%s.other", path);
    without_descriptors(path);
    atexit(at_the_end);
    open_it(path);
    mp_buffer value = MP_BUFFER_INIT;
    EXPECT(MP_OK, mp_get(tree, NULL, "first", 5, &value));
    mp_buffer_free(&value);
    for (int turn = 0; turn < 3; turn++) {
        mp_txn *txn = NULL;
        mp_snapshot *snapshot = NULL;
        mp_cursor *cursor = NULL;
        EXPECT(MP_OK, mp_txn_begin(store, NULL, &txn));
        EXPECT(MP_OK, mp_put(tree, txn, "a", 1, "parent", 6));
        EXPECT(MP_OK, mp_snapshot_begin(store, &snapshot));
        EXPECT(MP_OK, mp_cursor_open(tree, NULL, NULL, &cursor));
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) in_the_child(txn, snapshot, cursor);
        int status = 0;
        if (waitpid(child, &status, 0) != child || status != 0) {
            failures++;
            printf("the child ended with status %d\n", status);
        }
        mp_cursor_close(cursor);
        mp_snapshot_end(snapshot);
        EXPECT(MP_OK, mp_txn_commit(txn));
    }
    EXPECT(MP_OK, mp_get(tree, NULL, "a", 1, &value));
    if (value.len != 6 || memcmp(value.data, "parent", 6) != 0) failures++;
    mp_buffer_free(&value);
    printf("%d failures\n", failures);
    return failures != 0;
}
