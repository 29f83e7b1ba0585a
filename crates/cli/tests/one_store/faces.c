/* Reads what Rust wrote into a store, and adds to it: see one_store.rs. */
#include <inttypes.h>
#include <millpond.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(mp_status status, const char *what) {
    if (status < 0) {
        fprintf(stderr, "%s: %s: %s\n", what, mp_status_name(status), mp_error_message());
        exit(1);
    }
}

static void refused(mp_status status, mp_status wanted, const char *what) {
    if (status != wanted) {
        fprintf(stderr, "%s: %s, and not %s\n", what, mp_status_name(status), mp_status_name(wanted));
        exit(1);
    }
}

static void print_hex(const void *data, size_t len) {
    for (size_t at = 0; at < len; at++) printf("%02x", ((const unsigned char *)data)[at]);
    printf("\n");
}

int main(int argc, char **argv) {
    if (argc < 2) return 2;
    mp_store *store, *second;
    mp_tree *stock, *numbers, *tree;
    mp_snapshot *before;
    mp_cursor *cursor;
    mp_buffer key = MP_BUFFER_INIT, name = MP_BUFFER_INIT, value = MP_BUFFER_INIT;
    mp_slice rest;
    const void *found;
    size_t len;
    uint64_t count = 0;

    check(mp_open(argv[1], NULL, &store), "open");
    refused(mp_open(argv[1], NULL, &second), MP_IN_USE, "a second handle");
    refused(mp_tree_open(store, "sessions", MP_OPEN, &tree), MP_OTHER_TYPE, "a hash index");
    refused(mp_tree_open(store, "none", MP_OPEN, &tree), MP_NO_SUCH, "no tree");

    check(mp_tree_open(store, "stock", MP_OPEN, &stock), "stock");
    check(mp_snapshot_begin(store, &before), "snapshot");
    check(mp_key_push_bytes(&key, "c", 1), "key");
    check(mp_key_push_u32(&key, 3), "key");
    check(mp_key_push_i64(&key, -3), "key");
    check(mp_key_push_bool(&key, true), "key");
    uint64_t more = 33; /* values are little-endian, as this machine is */
    check(mp_put(stock, NULL, key.data, key.len, &more, sizeof more), "put");
    check(mp_cursor_open(stock, NULL, NULL, &cursor), "cursor");
    while (mp_cursor_next(cursor) == MP_OK) {
        uint32_t size;
        int64_t shelf;
        bool is_new;
        check(mp_cursor_entry(cursor, &rest.data, &rest.len, &found, &len), "entry");
        check(mp_key_take_bytes(&rest, &name), "name");
        check(mp_key_take_u32(&rest, &size), "size");
        check(mp_key_take_i64(&rest, &shelf), "shelf");
        check(mp_key_take_bool(&rest, &is_new), "new");
        if (rest.len != 0 || len != sizeof count) return 1;
        memcpy(&count, found, len);
        printf("%.*s %" PRIu32 " %" PRId64 " %d %" PRIu64 "\n", (int)name.len,
               (const char *)name.data, size, shelf, is_new, count);
    }
    mp_cursor_close(cursor);
    check(mp_snapshot_count(before, stock, NULL, &count), "count");
    printf("before: %" PRIu64 "\n", count);
    mp_snapshot_end(before);

    check(mp_tree_open(store, "numbers", MP_OPEN, &numbers), "numbers");
    check(mp_cursor_open(numbers, NULL, NULL, &cursor), "cursor");
    while (mp_cursor_next(cursor) == MP_OK) {
        int64_t number;
        check(mp_cursor_entry(cursor, &rest.data, &rest.len, &found, &len), "entry");
        check(mp_key_take_i64(&rest, &number), "number");
        printf("%" PRId64 " %.*s\n", number, (int)len, (const char *)found);
    }
    mp_cursor_close(cursor);
    mp_tree_close(numbers);

    /* The values of further trees under the key 7u32, as bytes. */
    for (int at = 2; at < argc; at++) {
        check(mp_tree_open(store, argv[at], MP_OPEN, &tree), argv[at]);
        check(mp_key_clear(&key), "key");
        check(mp_key_push_u32(&key, 7), "key");
        if (mp_get(tree, NULL, key.data, key.len, &value) != MP_OK) return 1;
        printf("%s ", argv[at]);
        print_hex(value.data, value.len);
        mp_tree_close(tree);
    }
    mp_buffer_free(&key);
    mp_buffer_free(&name);
    mp_buffer_free(&value);
    check(mp_close(store), "a store whose tree is open");
    refused(mp_get(stock, NULL, "c", 1, &value), MP_CLOSED, "a tree whose store was closed");
    mp_tree_close(stock);
    return 0;
}
