/* What no program should do: an error each time, or nothing. */
#include <millpond.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures = 0;

#define EXPECT(wanted, call)                                                                   \
    do {                                                                                       \
        mp_status got = (call);                                                                \
        if (got != (wanted)) {                                                                 \
            failures++;                                                                        \
            fprintf(stderr, "%d: %s is %s, not %s (%s)\n", __LINE__, #call,                    \
                    mp_status_name(got), mp_status_name(wanted), mp_error_message());          \
        }                                                                                      \
    } while (0)

#define EXPECT_MESSAGE(part)                                                                   \
    do {                                                                                       \
        if (strstr(mp_error_message(), (part)) == NULL) {                                      \
            failures++;                                                                        \
            fprintf(stderr, "%d: '%s' is not in: %s\n", __LINE__, (part), mp_error_message()); \
        }                                                                                      \
    } while (0)

static int32_t fails(mp_txn *txn, void *user) {
    (void)txn;
    return *(int32_t *)user;
}

static int32_t fails_in_a_call(mp_txn *txn, void *user) {
    static char large[100000];
    return mp_put(user, txn, large, sizeof large, "v", 1);
}

static int32_t waits_for_itself(mp_txn *txn, void *user) {
    mp_tree *tree = user;
    EXPECT(MP_OK, mp_put(tree, txn, "k", 1, "v", 1));
    return mp_put(tree, NULL, "k", 1, "w", 1);
}

static int32_t ends_it(mp_txn *txn, void *user) {
    mp_tree *tree = user;
    EXPECT(MP_OK, mp_put(tree, txn, "ended", 5, "x", 1));
    EXPECT(MP_OK, mp_txn_commit(txn));
    EXPECT(MP_TRANSACTION_FAILED, mp_put(tree, txn, "late", 4, "x", 1));
    EXPECT(MP_TRANSACTION_FAILED, mp_txn_abort(txn));
    return MP_OK;
}

static int32_t stop(const char *name, size_t len, void *user) {
    (void)name;
    (void)len;
    return ++*(int *)user == 2;
}

static int32_t cancel(uint64_t done, uint64_t total, void *user) {
    (void)done;
    (void)total;
    (void)user;
    return 1;
}

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    mp_store *store = NULL, *again = NULL;
    mp_tree *tree = NULL, *other = NULL;
    mp_txn *txn = NULL;
    mp_cursor *cursor = NULL;
    mp_buffer buffer = MP_BUFFER_INIT, second = MP_BUFFER_INIT;
    uint64_t count = 7;
    bool done = true;
    char path[4096];
    snprintf(path, sizeof path, "%s/misuse.mp", argv[1]);

    /* Nothing is there. */
    EXPECT(MP_MISUSE, mp_open(NULL, NULL, &store));
    EXPECT(MP_MISUSE, mp_open(path, NULL, NULL));
    EXPECT(MP_MISUSE, mp_tree_open(NULL, "t", MP_OPEN, &tree));
    EXPECT(MP_MISUSE, mp_get(NULL, NULL, "k", 1, &buffer));
    EXPECT(MP_MISUSE, mp_cursor_next(NULL));
    EXPECT(MP_MISUSE, mp_txn_commit(NULL));
    EXPECT(MP_MISUSE, mp_options_memory(NULL, 1));
    EXPECT(MP_OK, mp_close(NULL));
    EXPECT(MP_OK, mp_txn_abort(NULL));
    mp_tree_close(NULL);
    mp_cursor_close(NULL);
    mp_snapshot_end(NULL);
    mp_options_free(NULL);
    mp_buffer_free(NULL);

    /* Options that are not possible. */
    mp_options *options = mp_options_new();
    EXPECT(MP_MISUSE, mp_options_policy(options, NULL));
    EXPECT(MP_MISUSE, mp_options_policy(options, "\xff\xfe"));
    EXPECT(MP_MISUSE, mp_options_durability(options, 17));
    EXPECT(MP_OK, mp_options_policy(options, "no-such-policy"));
    EXPECT(MP_INVALID, mp_open_memory(options, &store));
    EXPECT(MP_OK, mp_options_policy(options, "lru"));
    EXPECT(MP_OK, mp_options_memory(options, 16 << 20));
    EXPECT(MP_OK, mp_options_create_if_missing(options, false));
    EXPECT(MP_NO_SUCH, mp_open(path, options, &store));
    EXPECT(MP_OK, mp_options_create_if_missing(options, true));
    if (store != NULL) return 1; /* it was left alone */
    EXPECT(MP_OK, mp_open(path, options, &store));
    EXPECT(MP_IN_USE, mp_open(path, options, &again));

    /* Trees. */
    EXPECT(MP_NO_SUCH, mp_tree_open(store, "t", MP_OPEN, &tree));
    EXPECT(MP_INVALID, mp_tree_open(store, "", MP_OPEN_OR_CREATE, &tree));
    EXPECT(MP_MISUSE, mp_tree_open(store, "t", 9, &tree));
    EXPECT(MP_OK, mp_tree_open(store, "t", MP_CREATE, &tree));
    EXPECT(MP_EXISTS, mp_tree_open(store, "t", MP_CREATE, &other));
    EXPECT(MP_OK, mp_tree_open(store, "u", MP_CREATE, &other));
    EXPECT(MP_IN_USE, mp_tree_drop(store, "u"));
    mp_tree_close(other);
    int visited = 0;
    EXPECT(MP_CANCELLED, mp_tree_names(store, stop, &visited));
    EXPECT(MP_MISUSE, mp_tree_names(store, NULL, NULL));
    EXPECT(MP_OK, mp_tree_drop(store, "u"));

    /* Entries. */
    char *large = calloc(1, 100000);
    EXPECT(MP_TOO_LONG, mp_put(tree, NULL, large, 100000, "v", 1));
    size_t megabytes = 64 << 20;
    char *huge = calloc(1, megabytes);
    EXPECT(MP_TOO_LONG, mp_put(tree, NULL, huge, megabytes, "v", 1));
    EXPECT(MP_NOT_FOUND, mp_get(tree, NULL, huge, megabytes, &buffer));
    EXPECT(MP_NOT_FOUND, mp_delete(tree, NULL, huge, megabytes));
    EXPECT(MP_OK, mp_txn_begin(store, NULL, &txn));
    EXPECT(MP_NOT_FOUND, mp_get_for_update(tree, txn, huge, megabytes, &buffer));
    EXPECT(MP_TOO_LONG, mp_put(tree, txn, huge, megabytes, "v", 1));
    EXPECT(MP_OK, mp_txn_abort(txn));
    free(huge);
    EXPECT(MP_MISUSE, mp_put(tree, NULL, NULL, 1, "v", 1));
    EXPECT(MP_MISUSE, mp_put(tree, NULL, "k", (size_t)-1, "v", 1));
    EXPECT(MP_OK, mp_put(tree, NULL, NULL, 0, NULL, 0)); /* the empty key, and an empty value */
    EXPECT(MP_OK, mp_get(tree, NULL, "", 0, &buffer));
    if (buffer.len != 0) failures++;
    EXPECT(MP_OK, mp_put(tree, NULL, "large", 5, large, 100000));
    EXPECT(MP_OK, mp_get(tree, NULL, "large", 5, &buffer));
    if (buffer.len != 100000 || memcmp(buffer.data, large, 100000) != 0) failures++;
    EXPECT(MP_NOT_FOUND, mp_get(tree, NULL, "none", 4, &buffer));
    if (buffer.len != 100000) failures++; /* it is as it was */
    EXPECT(MP_MISUSE, mp_get_for_update(tree, NULL, "large", 5, &buffer));
    EXPECT(MP_MISUSE, mp_pop_first(tree, NULL, &buffer, &buffer));
    EXPECT(MP_OK, mp_pop_first(tree, NULL, &buffer, &second));
    EXPECT(MP_OK, mp_insert_if_absent(tree, NULL, "large", 5, "w", 1, &done));
    if (done) failures++;
    EXPECT(MP_OK, mp_replace(tree, NULL, "large", 5, "w", 1, NULL));
    mp_slice w = {"w", 1}, x = {"x", 1};
    EXPECT(MP_OK, mp_compare_and_swap(tree, NULL, "large", 5, &x, &w, &done));
    if (done) failures++;
    EXPECT(MP_OK, mp_compare_and_swap(tree, NULL, "large", 5, &w, NULL, &done));
    if (!done) failures++;
    EXPECT(MP_NOT_FOUND, mp_delete(tree, NULL, "large", 5));
    mp_range range = {{MP_PREFIX, "a", 1}, {MP_INCLUDED, "b", 1}};
    EXPECT(MP_MISUSE, mp_count(tree, NULL, &range, &count));
    range.high.kind = 77;
    range.low.kind = MP_UNBOUNDED;
    EXPECT(MP_MISUSE, mp_count(tree, NULL, &range, &count));
    if (count != 7) failures++;
    free(large);

    /* Transactions and cursors, whichever goes first. */
    mp_txn_options bad = {-1, 9, -1}, brief = {MP_ASYNC, MP_SERIALIZABLE, 5};
    EXPECT(MP_MISUSE, mp_txn_begin(store, &bad, &txn));
    bad.isolation = MP_SERIALIZABLE;
    bad.wait_ms = -2;
    EXPECT(MP_MISUSE, mp_txn_begin(store, &bad, &txn));
    EXPECT(MP_OK, mp_txn_begin(store, &brief, &txn));
    EXPECT(MP_OK, mp_put(tree, txn, "k", 1, "v", 1));
    size_t savepoint = 99;
    EXPECT(MP_OK, mp_txn_savepoint(txn, &savepoint));
    EXPECT(MP_TRANSACTION_FAILED, mp_txn_rollback_to(txn, 5));
    EXPECT(MP_OK, mp_cursor_open(tree, txn, NULL, &cursor));
    EXPECT(MP_NOT_FOUND, mp_cursor_entry(cursor, NULL, NULL, NULL, NULL));
    EXPECT(MP_OK, mp_cursor_first(cursor));
    EXPECT(MP_OK, mp_cursor_entry(cursor, NULL, NULL, NULL, NULL));
    EXPECT(MP_OK, mp_txn_rollback_to(txn, savepoint));
    EXPECT(MP_TRANSACTION_FAILED, mp_cursor_next(cursor));
    EXPECT(MP_OK, mp_txn_commit(txn));
    EXPECT(MP_TRANSACTION_FAILED, mp_cursor_first(cursor));
    mp_cursor_close(cursor);
    int32_t returned = MP_IO;
    EXPECT(MP_MISUSE, mp_get(NULL, NULL, "stale", 5, &buffer));
    EXPECT(MP_IO, mp_transact(store, NULL, fails, &returned));
    EXPECT_MESSAGE("callback returned MP_IO");
    EXPECT(MP_TOO_LONG, mp_transact(store, NULL, fails_in_a_call, tree));
    EXPECT_MESSAGE("key");
    EXPECT(MP_OWN_TRANSACTION, mp_transact(store, NULL, waits_for_itself, tree));
    returned = MP_NOT_FOUND;
    EXPECT(MP_NOT_FOUND, mp_transact(store, NULL, fails, &returned));
    returned = 12345;
    EXPECT(MP_CANCELLED, mp_transact(store, NULL, fails, &returned));
    EXPECT_MESSAGE("callback returned MP_CANCELLED");
    EXPECT(MP_MISUSE, mp_transact(store, NULL, NULL, NULL));
    EXPECT(MP_OK, mp_transact(store, NULL, ends_it, tree));
    EXPECT(MP_OK, mp_contains(tree, NULL, "ended", 5));

    /* Keys that are none. */
    mp_slice rest = {"abc", 3};
    uint64_t number = 7;
    EXPECT(MP_MISUSE, mp_key_take_u64(&rest, &number));
    EXPECT(MP_MISUSE, mp_key_take_bytes(&rest, &buffer));
    if (rest.len != 3 || number != 7) failures++;

    /* A part of a key that is the key itself. */
    mp_buffer key = MP_BUFFER_INIT;
    EXPECT(MP_OK, mp_key_push_bytes(&key, "mill pond", 9));
    for (int doubled = 0; doubled < 12; doubled++) {
        mp_slice taken;
        size_t before = key.len;
        EXPECT(MP_OK, mp_key_push_bytes(&key, key.data, key.len));
        taken.data = (char *)key.data + before;
        taken.len = key.len - before;
        EXPECT(MP_MISUSE, mp_key_take_bytes(&taken, &key));
        EXPECT(MP_OK, mp_key_take_bytes(&taken, &second));
        if (second.len != before || memcmp(second.data, key.data, before) != 0) failures++;
    }
    mp_buffer_free(&key);

    /* Statistics, checks, backups. */
    EXPECT(MP_NO_SUCH, mp_stat(store, "no such", &count));
    EXPECT(MP_OK, mp_check(store, &done, &buffer));
    if (!done || buffer.len == 0) failures++;
    snprintf(path, sizeof path, "%s/backup.mp", argv[1]);
    EXPECT(MP_CANCELLED, mp_backup(store, path, cancel, NULL));
    EXPECT(MP_OK, mp_backup(store, path, NULL, NULL));
    EXPECT(MP_EXISTS, mp_backup(store, path, NULL, NULL));
    EXPECT(MP_OK, mp_open(path, options, &again));
    EXPECT(MP_OK, mp_close(again));

    /* The store before what is of it. */
    EXPECT(MP_OK, mp_cursor_open(tree, NULL, NULL, &cursor));
    EXPECT(MP_OK, mp_txn_begin(store, NULL, &txn));
    EXPECT(MP_OK, mp_put(tree, txn, "never", 5, "v", 1));
    EXPECT(MP_OK, mp_close(store));
    EXPECT(MP_CLOSED, mp_put(tree, NULL, "k", 1, "v", 1));
    mp_tree_close(tree);
    EXPECT(MP_CLOSED, mp_cursor_first(cursor));
    EXPECT(MP_CLOSED, mp_txn_commit(txn));
    mp_cursor_close(cursor);
    snprintf(path, sizeof path, "%s/misuse.mp", argv[1]);
    /* The transaction that was left is undone by an opening for writing. */
    EXPECT(MP_OK, mp_open(path, options, &store));
    EXPECT(MP_OK, mp_close(store));
    EXPECT(MP_OK, mp_options_read_only(options, true));
    EXPECT(MP_OK, mp_open(path, options, &store));
    EXPECT(MP_OK, mp_tree_open(store, "t", MP_OPEN, &tree));
    EXPECT(MP_READ_ONLY, mp_put(tree, NULL, "k", 1, "v", 1));
    EXPECT(MP_NOT_FOUND, mp_contains(tree, NULL, "never", 5));
    mp_tree_close(tree);
    EXPECT(MP_OK, mp_close(store));

    mp_options_free(options);
    mp_buffer_free(&buffer);
    mp_buffer_free(&buffer);
    mp_buffer_free(&second);
    if (strcmp(mp_status_name(12345), "unknown") != 0) failures++;
    return failures == 0 ? 0 : 1;
}
