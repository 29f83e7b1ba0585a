/* Reads a tree of (String, u32, i64, bool) → u64 that Rust wrote, and adds to it. */
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

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    mp_store *store;
    mp_tree *tree;
    mp_cursor *cursor;
    mp_buffer key = MP_BUFFER_INIT, name = MP_BUFFER_INIT;
    check(mp_open(argv[1], NULL, &store), "open");
    check(mp_tree_open(store, "stock", MP_OPEN, &tree), "tree");
    check(mp_cursor_open(tree, NULL, NULL, &cursor), "cursor");
    while (mp_cursor_next(cursor) == MP_OK) {
        mp_slice rest;
        uint32_t size;
        int64_t shelf;
        bool is_new;
        const void *value;
        size_t len;
        uint64_t count = 0;
        check(mp_cursor_entry(cursor, &rest.data, &rest.len, &value, &len), "entry");
        check(mp_key_take_bytes(&rest, &name), "name");
        check(mp_key_take_u32(&rest, &size), "size");
        check(mp_key_take_i64(&rest, &shelf), "shelf");
        check(mp_key_take_bool(&rest, &is_new), "new");
        if (rest.len != 0 || len != sizeof count) return 1;
        memcpy(&count, value, len); /* values are little-endian */
        fwrite(name.data, 1, name.len, stdout); /* it may have zeros */
        printf(" %u %lld %d %llu\n", size, (long long)shelf, is_new, (unsigned long long)count);
    }
    mp_cursor_close(cursor);
    uint64_t count = 77;
    check(mp_key_push_bytes(&key, "c\0d", 3), "name");
    check(mp_key_push_u32(&key, 9), "size");
    check(mp_key_push_i64(&key, -5), "shelf");
    check(mp_key_push_bool(&key, true), "new");
    check(mp_put(tree, NULL, key.data, key.len, &count, sizeof count), "put");
    mp_buffer_free(&key);
    mp_buffer_free(&name);
    mp_tree_close(tree);
    check(mp_close(store), "close");
    return 0;
}
