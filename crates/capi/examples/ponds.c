/* A first program: open a store, write, read, look around, close.
 *
 *   cc ponds.c $(pkg-config --cflags --libs millpond) -o ponds && ./ponds shop.mp
 */
#include <millpond.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What most programs want: a call that must succeed. */
static void check(mp_status status, const char *what) {
    if (status < 0) {
        fprintf(stderr, "%s: %s: %s\n", what, mp_status_name(status), mp_error_message());
        exit(1);
    }
}

static void put(const mp_tree *tree, const mp_txn *txn, const char *key, const char *value) {
    check(mp_put(tree, txn, key, strlen(key), value, strlen(value)), "put");
}

/* Two trees changed in one transaction: run again if it loses in a deadlock. */
struct trees {
    mp_tree *stock, *orders;
};

static int32_t order(mp_txn *txn, void *user) {
    struct trees *trees = user;
    mp_buffer count = MP_BUFFER_INIT;
    mp_status status = mp_get_for_update(trees->stock, txn, "bolts", 5, &count);
    if (status == MP_OK) status = mp_put(trees->stock, txn, "bolts", 5, "200", 3);
    if (status == MP_OK) status = mp_put(trees->orders, txn, "order 1", 7, count.data, count.len);
    mp_buffer_free(&count);
    return status; /* anything but MP_OK aborts it */
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: %s FILE\n", argv[0]);
        return 2;
    }
    mp_options *options = mp_options_new();
    check(mp_options_memory(options, 64 << 20), "memory");
    mp_store *store = NULL;
    check(mp_open(argv[1], options, &store), "open");
    mp_options_free(options);

    struct trees trees = {NULL, NULL};
    check(mp_tree_open(store, "stock", MP_OPEN_OR_CREATE, &trees.stock), "stock");
    check(mp_tree_open(store, "orders", MP_OPEN_OR_CREATE, &trees.orders), "orders");

    /* By itself each call is a transaction of its own. */
    put(trees.stock, NULL, "bolts", "1200");
    put(trees.stock, NULL, "nuts", "500");
    put(trees.stock, NULL, "washers", "80");

    mp_snapshot *before = NULL;
    check(mp_snapshot_begin(store, &before), "snapshot");
    check(mp_transact(store, NULL, order, &trees), "order");

    mp_buffer value = MP_BUFFER_INIT;
    check(mp_get(trees.stock, NULL, "bolts", 5, &value), "get");
    printf("bolts now: %s\n", (const char *)value.data); /* a zero follows each value */
    check(mp_snapshot_get(before, trees.stock, "bolts", 5, &value), "get then");
    printf("bolts before: %s\n", (const char *)value.data);
    mp_snapshot_end(before);

    if (mp_get(trees.stock, NULL, "screws", 6, &value) == MP_NOT_FOUND) printf("no screws\n");

    /* A range, from its end. */
    mp_range range = {{MP_INCLUDED, "c", 1}, {MP_UNBOUNDED, NULL, 0}};
    mp_cursor *cursor = NULL;
    check(mp_cursor_open(trees.stock, NULL, &range, &cursor), "cursor");
    mp_status at;
    for (at = mp_cursor_last(cursor); at == MP_OK; at = mp_cursor_prev(cursor)) {
        const void *key, *count;
        size_t key_len, count_len;
        check(mp_cursor_entry(cursor, &key, &key_len, &count, &count_len), "entry");
        printf("%.*s: %.*s\n", (int)key_len, (const char *)key, (int)count_len, (const char *)count);
    }
    check(at, "cursor");
    mp_cursor_close(cursor);

    uint64_t puts;
    check(mp_stat(store, "puts", &puts), "stat");
    printf("puts: %llu\n", (unsigned long long)puts);

    mp_buffer_free(&value);
    mp_tree_close(trees.stock);
    mp_tree_close(trees.orders);
    check(mp_close(store), "close");
    return 0;
}
